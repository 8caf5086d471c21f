package stormlog.compat;

import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;

import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.index.IndexFile;

/** Numbers derived from bytes and text: message ids, checksums, tag codes, key hashes. */
final class HashVectors {
    private static final String COMMON = "rocketmq-common";
    private static final String FILE = "hash.jsonl";

    private HashVectors() {
    }

    static void add(Vectors vectors, Path root) throws Exception {
        String[] hosts = {"10.0.0.1:10911", "127.0.0.1:0", "255.255.255.255:65535", "[2001:db8::2]:10911",
            "[::1]:65535", "[::ffff:1.2.3.4]:10911"};
        for (String host : hosts) {
            InetSocketAddress address = Records.address(host);
            for (long offset : new long[] {0, 123, Long.MAX_VALUE}) {
                vectors.add(FILE, "message-id/" + host + "/" + offset, "message-id", COMMON, "input",
                    Json.object("host", host, "physicalOffset", offset), "output",
                    MessageDecoder.createMessageId(address, offset));
            }
        }

        byte[][] inputs = {new byte[0], ClientVectors.utf8("123456789"), ClientVectors.utf8("hello"), new byte[1],
            new byte[4], ClientVectors.pattern(256), ClientVectors.pattern(4096), {(byte) 0xFF}};
        for (int i = 0; i < inputs.length; i++) {
            vectors.add(FILE, "crc32/" + i, "crc32", COMMON, "input", Json.object("bytes", Json.hex(inputs[i])),
                "output", UtilAll.crc32(inputs[i]));
        }

        String[] texts = {"", "TagA", "TagB", "a", "polygenelubricants", "*", "TagA || TagB", "\u6807\u7b7e",
            "\ud83d\ude00", "\u0000", "Aa", "BB", "t".repeat(100)};
        for (int i = 0; i < texts.length; i++) {
            vectors.add(FILE, "tags-code/" + i, "tags-code", COMMON, "input", Json.object("tags", texts[i]),
                "output", MessageExtBrokerInner.tagsString2tagsCode(texts[i]));
        }

        Path indexFile = root.resolve("hash").resolve("20000101000000000");
        Files.createDirectories(indexFile.getParent());
        IndexFile index = new IndexFile(indexFile.toString(), 5, 6, 0, 0);
        // The last one's hash is the least integer, which has no absolute value.
        String[][] keys = {{"T", "U1"}, {"T", "k1"}, {"TopicTest", "k1"}, {"TopicTest", ""}, {"", ""},
            {"T", "\u952e"}, {"T", "\ud83d\ude00"}, {"TopicTest", "T#TagA"}, {"\u4e3b\u9898", "k1"},
            {"T", "k".repeat(200)}, {"TopicTest", "aentnpwi"}};
        for (int i = 0; i < keys.length; i++) {
            vectors.add(FILE, "key-hash/" + i, "key-hash", "rocketmq-store",
                "input", Json.object("topic", keys[i][0], "key", keys[i][1]),
                "output", index.indexKeyHashMethod(keys[i][0] + "#" + keys[i][1]));
        }
    }
}
