package stormlog.compat;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;

/** The wire body of a client: single messages, batches, property strings; and what its decoder refuses. */
final class ClientVectors {
    private static final String ARTEFACT = "rocketmq-common";
    private static final String FILE = "client.jsonl";

    private final Vectors vectors;

    private ClientVectors(Vectors vectors) {
        this.vectors = vectors;
    }

    static void add(Vectors vectors) {
        ClientVectors client = new ClientVectors(vectors);
        client.messages();
        client.batches();
        client.propertyStrings();
        client.refusedByEncoder();
        client.refusedByDecoder();
    }

    static Message message(int flag, byte[] body, String... properties) {
        Message message = new Message();
        message.setFlag(flag);
        message.setBody(body);
        MessageAccessor.setProperties(message, properties(properties));
        return message;
    }

    static Map<String, String> properties(String... namesAndValues) {
        Map<String, String> properties = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            properties.put(namesAndValues[i], namesAndValues[i + 1]);
        }
        return properties;
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static byte[] pattern(int length) {
        byte[] bytes = new byte[length];
        for (int i = 0; i < length; i++) {
            bytes[i] = (byte) (i * 31 + 7);
        }
        return bytes;
    }

    static Map<String, Object> input(Message message) {
        return Json.object("flag", message.getFlag(), "body", Json.hex(message.getBody()),
            "properties", MessageDecoder.messageProperties2String(message.getProperties()));
    }

    private void messages() {
        message("hi", message(0x01020304, utf8("hi"), "TAGS", "TagA", "KEYS", "k1"));
        Message bare = new Message();
        bare.setFlag(-1);
        bare.setBody(utf8("hi"));
        MessageAccessor.setProperties(bare, null);
        message("null-properties", bare);
        message("empty-body", message(0, new byte[0]));
        message("empty-body-with-properties", message(0, new byte[0], "TAGS", "TagA"));
        for (int flag : new int[] {0, 1, -1, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
            message("flag-" + flag, message(flag, utf8("x")));
        }
        message("properties-order-kept", message(0, utf8("x"), "z", "1", "a", "2", "m", "3"));
        message("properties-usual", message(0, utf8("order 1"), "KEYS", "k1 k2", "UNIQ_KEY",
            "7F00000100002A9F0000000000000001", "WAIT", "true", "TAGS", "TagA"));
        message("properties-cjk", message(0, utf8("\u4f60\u597d"), "\u540d", "\u503c", "TAGS", "\u6807\u7b7e"));
        message("properties-astral", message(0, utf8("\ud83d\ude00"), "g", "\ud83d\ude00", "\ud834\udd1e", "clef"));
        message("properties-combining", message(0, utf8("x"), "e\u0301", "\u00e9"));
        message("properties-empty-value", message(0, utf8("x"), "e", "", "a", "1"));
        message("properties-empty-name", message(0, utf8("x"), "", "v"));
        message("properties-value-with-name-separator", message(0, utf8("x"), "a", "b\u0001c"));
        message("properties-value-with-property-separator", message(0, utf8("x"), "a", "b\u0002c"));
        message("properties-zero-character", message(0, utf8("x"), "z", "\u0000"));
        message("properties-32767-bytes", message(0, utf8("x"), "a", "v".repeat(32764)));
        message("body-1-byte-zero", message(0, new byte[1]));
        message("body-every-byte", message(7, pattern(256)));
        message("body-4096", message(7, pattern(4096), "TAGS", "TagA", "KEYS", "k1"));
        Message hashed = new Message("T", "TagA", "k1", 5, utf8("x"), false);
        hashed.putUserProperty("trace", "on");
        hashed.putUserProperty("region", "eu");
        message("properties-in-map-order", hashed);
    }

    private void message(String name, Message message) {
        vectors.add(FILE, "client/" + name, "client-message", ARTEFACT, "input", input(message),
            "hex", Json.hex(MessageDecoder.encodeMessage(message)));
    }

    private void batches() {
        batch("empty", List.of());
        batch("one", List.of(message(9, utf8("hi"), "TAGS", "x")));
        batch("two", List.of(message(9, utf8("hi"), "TAGS", "x"), message(0, utf8("yo"))));
        batch("all-empty", List.of(message(0, new byte[0]), message(0, new byte[0]), message(0, new byte[0])));
        batch("mixed", List.of(message(Integer.MIN_VALUE, pattern(300), "KEYS", "k1 k2"), message(1, new byte[0]),
            message(-1, utf8("\ud83d\ude00"), "g", "\ud83d\ude00", "e", "")));
        List<Message> hundred = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            hundred.add(message(i, pattern(i), "KEYS", "k" + i, "TAGS", "Tag" + i % 3));
        }
        batch("hundred", hundred);
    }

    private void batch(String name, List<Message> messages) {
        vectors.add(FILE, "client-batch/" + name, "client-batch", ARTEFACT,
            "input", Json.object("messages", messages.stream().map(ClientVectors::input).toList()),
            "hex", Json.hex(MessageDecoder.encodeMessages(messages)));
    }

    private void propertyStrings() {
        encodedProperties("none");
        encodedProperties("two", "TAGS", "TagA", "KEYS", "k1");
        encodedProperties("empty-value", "e", "", "a", "1");
        encodedProperties("astral", "\ud834\udd1e", "\ud83d\ude00");
        encodedProperties("lone-surrogate-as-question-mark", "a", "?b");
        String[][] strings = {
            {"empty", ""}, {"unterminated", "a\u0001b"}, {"empty-name", "\u0001b\u0002"},
            {"empty-value", "a\u0001\u0002"}, {"separator-late", "ab\u0001\u0002c\u0001d\u0002"},
            {"separator-in-value", "a\u0001b\u0001c\u0002"}, {"no-separator", "abc\u0002d\u0001e\u0002"},
            {"empty-segments", "\u0002\u0002a\u0001b"}, {"later-wins", "a\u00011\u0002a\u00012\u0002"},
            {"short-segment", "a\u0001\u0002b\u00012\u0002"}, {"astral-name", "\ud83d\ude00\u0001v\u0002"},
            {"astral-alone-is-two-units", "\ud83d\ude00\u0001\u0002"},
            {"only-separators", "\u0001\u0001\u0001\u0002"}, {"name-with-spaces", " a \u0001 b \u0002"},
        };
        for (String[] string : strings) {
            decodedProperties(string[0], utf8(string[1]));
        }
        decodedProperties("invalid-utf8", new byte[] {'a', 1, (byte) 0xFF, 'b', 2});
        decodedProperties("truncated-utf8", new byte[] {'a', 1, 'x', (byte) 0xE4, (byte) 0xBD});
        decodedProperties("overlong-utf8", new byte[] {'a', 1, (byte) 0xC0, (byte) 0x80, 2});
        decodedProperties("surrogate-in-utf8", new byte[] {'a', 1, (byte) 0xED, (byte) 0xA0, (byte) 0x80, 'x', 2});
    }

    private void encodedProperties(String name, String... properties) {
        Map<String, String> map = properties(properties);
        vectors.add(FILE, "properties/" + name, "properties-encode", ARTEFACT, "input", Json.object("list",
            Json.pairs(map)), "hex", Json.hex(utf8(MessageDecoder.messageProperties2String(map))));
    }

    private void decodedProperties(String name, byte[] bytes) {
        Map<String, String> map = MessageDecoder.string2messageProperties(new String(bytes, StandardCharsets.UTF_8));
        vectors.add(FILE, "properties-decode/" + name, "properties-decode", ARTEFACT, "hex", Json.hex(bytes),
            "output", Json.object("sorted", Json.pairs(new TreeMap<>(map))));
    }

    private void refusedByEncoder() {
        refused("properties-32768-bytes", message(0, utf8("x"), "a", "v".repeat(32765)));
        refused("properties-65535-bytes", message(0, utf8("x"), "a", "v".repeat(65532)));
        refused("properties-65536-bytes", message(0, utf8("x"), "a", "v".repeat(65533)));
    }

    private void refused(String name, Message message) {
        try {
            MessageDecoder.encodeMessage(message);
        } catch (RuntimeException refusal) {
            vectors.add(FILE, "client-refused/" + name, "client-refused", ARTEFACT, "input", input(message),
                "outcome", Json.object("success", false, "reason", refusal.getClass().getSimpleName()));
            return;
        }
        throw new IllegalStateException("encoded after all: " + name);
    }

    private void refusedByDecoder() {
        byte[] good = MessageDecoder.encodeMessage(message(5, utf8("hello"), "TAGS", "TagA"));
        decoded("good", good);
        decoded("nothing", new byte[0]);
        for (int length : new int[] {1, 3, 4, 8, 12, 16, 19, 20, 24, 25, 26, 27, good.length - 1}) {
            decoded("cut-at-" + length, java.util.Arrays.copyOf(good, length));
        }
        decoded("one-byte-behind", java.util.Arrays.copyOf(good, good.length + 1));
        decoded("zeros-behind", java.util.Arrays.copyOf(good, good.length + 22));
        int left = good.length - 20;
        for (int length : new int[] {Integer.MIN_VALUE, -1, 0, 1, 4, 6, left - 1, left, left + 1, Integer.MAX_VALUE}) {
            decoded("body-length-" + length, ByteBuffer.wrap(good.clone()).putInt(16, length).array());
        }
        for (int length : new int[] {Short.MIN_VALUE, -1, 0, 1, 9, 11, Short.MAX_VALUE}) {
            decoded("properties-length-" + length, ByteBuffer.wrap(good.clone()).putShort(25, (short) length).array());
        }
        for (int size : new int[] {Integer.MIN_VALUE, -1, 0, 21, good.length - 1, good.length + 1, Integer.MAX_VALUE}) {
            decoded("total-size-" + size, ByteBuffer.wrap(good.clone()).putInt(0, size).array());
        }
        decoded("magic-set", ByteBuffer.wrap(good.clone()).putInt(4, MessageDecoder.MESSAGE_MAGIC_CODE).array());
        decoded("crc-set", ByteBuffer.wrap(good.clone()).putInt(8, 1).array());
    }

    private void decoded(String name, byte[] bytes) {
        Map<String, Object> outcome;
        // The reference allocates the length that it reads: 2^31-1 is more than any virtual machine has.
        try {
            int count = MessageDecoder.decodeMessages(ByteBuffer.wrap(bytes)).size();
            outcome = Json.object("success", true, "messages", count);
        } catch (Exception | OutOfMemoryError refusal) {
            outcome = Json.object("success", false, "reason", refusal.getClass().getSimpleName());
        }
        vectors.add(FILE, "client-check/" + name, "client-check", ARTEFACT, "hex", Json.hex(bytes), "outcome", outcome);
    }
}
