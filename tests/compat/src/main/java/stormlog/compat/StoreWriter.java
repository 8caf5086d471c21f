package stormlog.compat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.Inside;
import org.apache.rocketmq.store.PutMessageResult;

/**
 * Has the reference write a small store: three segments full and one begun. The same every time: the clock is moved by
 * hand, and the index file, which is named by the host's clock, gets a name of the program's clock.
 */
final class StoreWriter {
    private static final int FULL_SEGMENTS = 3;
    private static final String LONG_TOPIC = "long-topic-" + "t".repeat(120);

    private final DefaultMessageStore store;
    private int count;

    private StoreWriter(DefaultMessageStore store) {
        this.store = store;
    }

    static void write(Path out) throws Exception {
        Path root = out.resolve("store");
        if (Files.exists(root)) {
            throw new IllegalArgumentException(root + " is there already");
        }
        Files.createDirectories(root);
        DefaultMessageStore store = Stores.open(Stores.config(root));
        if (!store.load()) {
            throw new IllegalStateException("the reference does not load an empty store");
        }
        store.start();
        new StoreWriter(store).fill();
        while (store.dispatchBehindBytes() > 0) {
            Thread.sleep(10);
        }
        store.shutdown();
        tidy(root);
        StoreReader.on(root, reader -> {
            Files.write(out.resolve("expected.jsonl"), reader.messages());
            Files.write(out.resolve("queues.jsonl"), reader.queues());
        });
    }

    /** Removes the key-value store that the reference always opens and here keeps nothing in. */
    private static void tidy(Path root) throws Exception {
        Stores.delete(root.resolve("rocksdbstore"));
        try (var files = Files.list(root.resolve("index"))) {
            for (Path file : files.toList()) {
                Files.move(file, file.resolveSibling("20231114221320000"));
            }
        }
    }

    private void fill() throws Exception {
        long end = (long) FULL_SEGMENTS * Stores.SEGMENT_SIZE + Stores.SEGMENT_SIZE / 4;
        while (store.getMaxPhyOffset() < end) {
            int n = count++;
            if (n % 9 == 8) {
                batch(n);
            } else if (n % 13 == 12) {
                transaction(n);
            } else {
                single(n, 0, 0);
            }
        }
    }

    private void single(int n, int transaction, long prepared) throws Exception {
        MessageExtBrokerInner message = common(new MessageExtBrokerInner(), n);
        message.setFlag(n);
        message.setSysFlag(message.getSysFlag() | transaction);
        message.setPreparedTransactionOffset(prepared);
        message.setReconsumeTimes(n % 3);
        message.setBody(ClientVectors.pattern(n % 11 == 10 ? 0 : (n * 37) % 500));
        List<String> properties = new ArrayList<>(List.of("UNIQ_KEY", String.format("%032X", n)));
        if (n % 4 != 3) {
            properties.addAll(List.of("TAGS", "Tag" + (char) ('A' + n % 3)));
        }
        if (n % 2 == 0) {
            properties.addAll(List.of("KEYS", n % 6 == 0 ? "order-" + n + " all" : "order-" + n));
        }
        if (n % 10 == 5) {
            properties.addAll(List.of("note", "\u4f60\u597d \ud83d\ude00"));
        }
        MessageAccessor.setProperties(message, ClientVectors.properties(properties.toArray(String[]::new)));
        message.setPropertiesString(MessageDecoder.messageProperties2String(message.getProperties()));
        put(store.putMessage(message));
    }

    private void batch(int n) throws Exception {
        MessageExtBatch batch = common(new MessageExtBatch(), n);
        List<Message> messages = new ArrayList<>();
        for (int i = 0; i < 2 + n % 4; i++) {
            messages.add(ClientVectors.message(-i, ClientVectors.pattern(i * 20), "TAGS", "batch", "KEYS", n + "-" + i));
        }
        batch.setBody(MessageDecoder.encodeMessages(messages));
        put(store.putMessages(batch));
    }

    private void transaction(int n) throws Exception {
        long prepared = store.getMaxPhyOffset();
        single(n, Records.PREPARED, 0);
        single(n, n % 2 == 0 ? Records.COMMIT : Records.ROLLBACK, prepared);
    }

    private <M extends MessageExtBrokerInner> M common(M message, int n) throws Exception {
        String[] topics = {"TopicTest", "orders", "TopicTest", LONG_TOPIC};
        message.setTopic(topics[n % topics.length]);
        message.setQueueId(n / topics.length % 3);
        message.setBornTimestamp(Inside.clockMs - 5);
        Records.hosts(message, Records.address(n % 5 == 4 ? "[2001:db8::1]:40000" : "127.0.0.1:40000"),
            Records.address(n % 7 == 6 ? "[2001:db8::2]:10911" : "10.0.0.1:10911"));
        return message;
    }

    private void put(PutMessageResult result) {
        if (!result.isOk()) {
            throw new IllegalStateException("put said " + result.getPutMessageStatus());
        }
        Inside.clockMs += 7;
    }
}
