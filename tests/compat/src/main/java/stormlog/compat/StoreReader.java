package stormlog.compat;

import java.net.InetSocketAddress;
import java.net.Inet6Address;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;

import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageVersion;
import org.apache.rocketmq.store.CommitLog;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.DispatchRequest;
import org.apache.rocketmq.store.MessageExtEncoder;
import org.apache.rocketmq.store.SelectMappedBufferResult;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.queue.ConsumeQueueInterface;
import org.apache.rocketmq.store.queue.CqUnit;

/**
 * What the reference sees in a store directory, once it has loaded and recovered a copy of it. Sizes of segments and of
 * queue files are taken from the files that are there; an index must have {@link Stores}' sizes.
 */
final class StoreReader {
    private static final int LONGEST_BODY_SHOWN = 256;

    interface Use {
        void with(StoreReader reader) throws Exception;
    }

    private final Path root;
    private final DefaultMessageStore store;
    private final boolean lastExitOk;

    private StoreReader(Path root, DefaultMessageStore store, boolean lastExitOk) {
        this.root = root;
        this.store = store;
        this.lastExitOk = lastExitOk;
    }

    static void on(Path dir, Use use) throws Exception {
        Path root = Stores.temporary().resolve("store");
        Stores.copy(dir, root);
        MessageStoreConfig config = Stores.config(root);
        config.setMappedFileSizeCommitLog(sizeOfFirst(root.resolve("commitlog"), Stores.SEGMENT_SIZE));
        config.setMappedFileSizeConsumeQueue(sizeOfFirst(root.resolve("consumequeue"), Stores.QUEUE_FILE_SIZE));
        boolean lastExitOk = Files.notExists(root.resolve("abort"));
        DefaultMessageStore store = Stores.open(config);
        if (!store.load()) {
            throw new IllegalStateException("the reference does not load " + dir);
        }
        use.with(new StoreReader(root, store, lastExitOk));
    }

    private static int sizeOfFirst(Path dir, int otherwise) throws Exception {
        if (Files.notExists(dir)) {
            return otherwise;
        }
        try (Stream<Path> files = Files.walk(dir)) {
            Path first = files.filter(Files::isRegularFile).sorted().findFirst().orElse(null);
            return first == null ? otherwise : Math.toIntExact(Files.size(first));
        }
    }

    List<String> messages() throws Exception {
        List<String> lines = new ArrayList<>();
        long end = walk(lines);
        if (end < store.getMaxPhyOffset()) {
            throw new IllegalStateException("no record at " + end);
        }
        return lines;
    }

    /** Adds a line for each message up to the first thing that is no record, and gives the offset where it stops. */
    private long walk(List<String> lines) throws Exception {
        CommitLog log = store.getCommitLog();
        int segmentSize = store.getMessageStoreConfig().getMappedFileSizeCommitLog();
        long offset = log.getMinOffset();
        while (offset < log.getMaxOffset()) {
            SelectMappedBufferResult data = log.getData(offset);
            ByteBuffer buffer = data.getByteBuffer();
            DispatchRequest checked = log.checkMessageAndReturnSize(buffer.duplicate(), true, false, true);
            if (!checked.isSuccess()) {
                data.release();
                return offset;
            }
            if (checked.getMsgSize() == 0) {
                offset += segmentSize - offset % segmentSize;
            } else {
                lines.add(Json.line(message(buffer.slice(0, checked.getMsgSize()))));
                offset += checked.getMsgSize();
            }
            data.release();
        }
        return offset;
    }

    private static Map<String, Object> message(ByteBuffer record) throws Exception {
        MessageExt message = MessageDecoder.decode(record.duplicate(), true, false);
        int magic = record.getInt(MessageDecoder.MESSAGE_MAGIC_CODE_POSITION);
        Map<String, Object> line = Json.object("version", magic == MessageDecoder.MESSAGE_MAGIC_CODE_V2 ? 2 : 1,
            "topic", message.getTopic(), "queueId", message.getQueueId(), "queueOffset", message.getQueueOffset(),
            "physicalOffset", message.getCommitLogOffset(), "size", message.getStoreSize(), "flag", message.getFlag(),
            "sysFlag", message.getSysFlag(), "bornTimestamp", message.getBornTimestamp(),
            "bornHost", host(message.getBornHost()), "storeTimestamp", message.getStoreTimestamp(),
            "storeHost", host(message.getStoreHost()), "reconsumeTimes", message.getReconsumeTimes(),
            "preparedTransactionOffset", message.getPreparedTransactionOffset(), "bodyCrc", message.getBodyCRC(),
            "properties", properties(record));
        byte[] body = message.getBody() == null ? new byte[0] : message.getBody();
        if (body.length <= LONGEST_BODY_SHOWN) {
            line.put("body", Json.hex(body));
        } else {
            line.put("bodyLength", body.length);
            line.put("bodySha256", Json.hex(MessageDigest.getInstance("SHA-256").digest(body)));
        }
        return line;
    }

    /** The properties string as it lies there; the reference's decoder gives a map only. */
    private static String properties(ByteBuffer record) {
        int magic = record.getInt(MessageDecoder.MESSAGE_MAGIC_CODE_POSITION);
        MessageVersion version = MessageVersion.valueOfMagicCode(magic);
        int sysFlag = record.getInt(MessageDecoder.SYSFLAG_POSITION);
        int topicAt = MessageExtEncoder.calMsgLength(version, sysFlag, 0, 0, 0) - 2 - version.getTopicLengthSize();
        topicAt += record.getInt(topicAt - 4);
        int topicEnd = topicAt + version.getTopicLengthSize() + version.getTopicLength(record, topicAt);
        byte[] properties = new byte[record.getShort(topicEnd)];
        record.get(topicEnd + 2, properties);
        return new String(properties, MessageDecoder.CHARSET_UTF8);
    }

    private static String host(SocketAddress address) {
        InetSocketAddress host = (InetSocketAddress) address;
        String ip = host.getAddress().getHostAddress();
        return (host.getAddress() instanceof Inet6Address ? "[" + ip + "]" : ip) + ":" + host.getPort();
    }

    List<String> queues() {
        List<String> lines = new ArrayList<>();
        new TreeMap<>(store.getConsumeQueueTable()).forEach((topic, queues) ->
            new TreeMap<>(queues).forEach((queueId, queue) -> lines.add(Json.line(queue(topic, queueId, queue)))));
        return lines;
    }

    private static Map<String, Object> queue(String topic, int queueId, ConsumeQueueInterface queue) {
        List<Object> units = new ArrayList<>();
        for (long offset = queue.getMinOffsetInQueue(); offset < queue.getMaxOffsetInQueue(); offset++) {
            CqUnit unit = queue.get(offset);
            units.add(List.of(unit.getPos(), unit.getSize(), unit.getTagsCode()));
        }
        return Json.object("topic", topic, "queueId", queueId, "minOffset", queue.getMinOffsetInQueue(),
            "maxOffset", queue.getMaxOffsetInQueue(), "units", units);
    }

    String recovered() throws Exception {
        List<String> segments;
        try (Stream<Path> files = Files.list(root.resolve("commitlog"))) {
            segments = files.map(file -> file.getFileName().toString()).sorted().toList();
        }
        List<String> messages = new ArrayList<>();
        long readable = walk(messages);
        return Json.line(Json.object("lastExitOk", lastExitOk, "minOffset", store.getMinPhyOffset(),
            "maxOffset", store.getMaxPhyOffset(), "flushedWhere", store.getCommitLog().getFlushedWhere(),
            "segments", segments, "messages", messages.size(), "readableTo", readable));
    }
}
