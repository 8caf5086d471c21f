package stormlog.compat;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.apache.rocketmq.common.message.Message;

import stormlog.compat.Records.Spec;
import stormlog.compat.Records.Stored;

/** Records as they lie in a commit log, blanks, and what the encoder of the store refuses. */
final class StoredVectors {
    private static final String ARTEFACT = "rocketmq-store";
    private static final String FILE = "stored.jsonl";

    private final Vectors vectors;
    private final Records records;

    private StoredVectors(Vectors vectors, Records records) {
        this.vectors = vectors;
        this.records = records;
    }

    static void add(Vectors vectors, Records records) throws Exception {
        StoredVectors stored = new StoredVectors(vectors, records);
        stored.everyForm();
        stored.edges();
        stored.batches();
        stored.blanks();
        stored.refused();
    }

    private void everyForm() throws Exception {
        Map<String, Integer> transactions = new java.util.LinkedHashMap<>();
        transactions.put("none", 0);
        transactions.put("prepared", Records.PREPARED);
        transactions.put("commit", Records.COMMIT);
        transactions.put("rollback", Records.ROLLBACK);
        for (int version : new int[] {1, 2}) {
            for (int hosts = 0; hosts < 4; hosts++) {
                for (boolean propertyCrc : new boolean[] {false, true}) {
                    for (Map.Entry<String, Integer> transaction : transactions.entrySet()) {
                        Spec spec = new Spec().ipv6((hosts & 1) != 0, (hosts & 2) != 0)
                            .transaction(transaction.getValue(), transaction.getValue() >= Records.COMMIT ? 1200 : 0);
                        spec.topic = version == 1 ? spec.topic : "t".repeat(128);
                        spec.propertyCrc = propertyCrc;
                        String name = "v" + version + "/born-ipv" + ((hosts & 1) != 0 ? 6 : 4) + "/store-ipv"
                            + ((hosts & 2) != 0 ? 6 : 4) + (propertyCrc ? "/property-crc/" : "/plain/")
                            + transaction.getKey();
                        record(name, spec);
                    }
                }
            }
        }
    }

    private void edges() throws Exception {
        record("body/empty", new Spec().body(new byte[0]));
        record("body/4096", new Spec().body(ClientVectors.pattern(4096)));
        record("body/crc-top-bit-cleared", new Spec().body(topBitBody()));
        record("body/compressed-bit", new Spec().transaction(Records.COMPRESSED | 0x300, 0));
        record("properties/none", new Spec().properties(""));
        record("properties/none-with-crc", new Spec().properties("").propertyCrc());
        record("properties/unterminated", new Spec().properties("a\u0001b"));
        record("properties/unterminated-with-crc", new Spec().properties("a\u0001b").propertyCrc());
        record("properties/astral", new Spec().properties("g\u0001\ud83d\ude00\u0002"));
        record("properties/32767-bytes", new Spec().properties("a\u0001" + "v".repeat(32764) + "\u0002"));
        record("properties/32747-bytes-with-crc",
            new Spec().properties("a\u0001" + "v".repeat(32744) + "\u0002").propertyCrc());
        record("topic/1", new Spec().topic("T").body(ClientVectors.utf8("x")).properties(""));
        record("topic/127", new Spec().topic("t".repeat(127)));
        record("topic/255", new Spec().topic("t".repeat(255)));
        record("topic/cjk-40-characters", new Spec().topic("\u4e3b".repeat(40)));
        record("topic/retry", new Spec().topic("%RETRY%group"));
        for (int flag : new int[] {0, 1, -1, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
            Spec spec = new Spec();
            spec.flag = flag;
            record("flag/" + flag, spec);
        }
        Spec limits = new Spec();
        limits.queueId = Integer.MAX_VALUE;
        limits.queueOffset = Long.MAX_VALUE;
        limits.physicalOffset = Long.MAX_VALUE - 1000;
        limits.bornTimestamp = -1;
        limits.storeTimestamp = Long.MAX_VALUE;
        limits.reconsumeTimes = Integer.MAX_VALUE;
        limits.bornHost = "0.0.0.0:0";
        limits.storeHost = "255.255.255.255:65535";
        record("limits", limits);
        Spec mapped = new Spec();
        mapped.bornHost = "[::ffff:1.2.3.4]:40000";
        mapped.storeHost = "[::ffff:10.0.0.1]:10911";
        record("host/ipv4-mapped", mapped);
    }

    /** A body whose CRC has its top bit set, which the store clears. */
    private static byte[] topBitBody() {
        for (int i = 0;; i++) {
            byte[] body = ClientVectors.utf8("body " + i);
            java.util.zip.CRC32 crc = new java.util.zip.CRC32();
            crc.update(body);
            if (crc.getValue() > Integer.MAX_VALUE) {
                return body;
            }
        }
    }

    private void record(String name, Spec spec) throws Exception {
        Stored stored = records.record(spec);
        vectors.add(FILE, "stored/" + name, "stored-record", ARTEFACT, "input", Records.input(spec, stored),
            "hex", Json.hex(stored.bytes()));
    }

    private void batches() throws Exception {
        List<Message> two = List.of(ClientVectors.message(9, ClientVectors.utf8("hi"), "TAGS", "x"),
            ClientVectors.message(0, ClientVectors.utf8("yo")));
        batch("two", new Spec(), two);
        batch("two-ipv6", new Spec().ipv6(true, true), two);
        batch("two-v2", new Spec().topic("t".repeat(128)), two);
        batch("two-property-crc", new Spec().propertyCrc(), two);
        batch("empty-bodies", new Spec(), List.of(ClientVectors.message(0, new byte[0]),
            ClientVectors.message(-1, new byte[0], "KEYS", "k")));
        List<Message> many = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            many.add(ClientVectors.message(i, ClientVectors.pattern(i), "KEYS", "k" + i));
        }
        batch("twenty", new Spec(), many);
    }

    private void batch(String name, Spec spec, List<Message> messages) throws Exception {
        byte[] bytes = records.batch(spec, messages);
        spec.body = new byte[0];
        spec.properties = "";
        spec.flag = 0;
        boolean born6 = spec.bornHost.startsWith("[");
        boolean store6 = spec.storeHost.startsWith("[");
        Map<String, Object> input = Records.input(spec, new Stored(bytes, spec.topic.length() > 127 ? 2 : 1,
            (born6 ? 0x10 : 0) | (store6 ? 0x20 : 0), spec.queueOffset));
        List.of("flag", "body", "properties").forEach(input::remove);
        input.put("messages", messages.stream().map(ClientVectors::input).toList());
        vectors.add(FILE, "stored-batch/" + name, "stored-batch", ARTEFACT, "input", input, "hex", Json.hex(bytes));
    }

    private void blanks() throws Exception {
        for (int room : new int[] {8, 9, 12, 100, 65536}) {
            vectors.add(FILE, "blank/" + room, "blank", ARTEFACT, "input", Json.object("size", room), "hex",
                Json.hex(records.blank(room)));
        }
    }

    private void refused() throws Exception {
        refused("properties-32768-bytes", new Spec().properties("a\u0001" + "v".repeat(32765) + "\u0002"), 4096);
        refused("properties-32748-bytes-with-crc",
            new Spec().properties("a\u0001" + "v".repeat(32745) + "\u0002").propertyCrc(), 4096);
        refused("properties-32747-bytes-unterminated-with-crc",
            new Spec().properties("a\u0001" + "v".repeat(32745)).propertyCrc(), 4096);
        refused("body-over-limit", new Spec().body(new byte[4097]), 4096);
        refused("properties-before-body",
            new Spec().properties("a\u0001" + "v".repeat(32765) + "\u0002").body(new byte[4097]), 4096);
    }

    private void refused(String name, Spec spec, int maxMessageSize) throws Exception {
        String status = Records.refusal(spec, maxMessageSize);
        if (status == null) {
            throw new IllegalStateException("encoded after all: " + name);
        }
        vectors.add(FILE, "stored-refused/" + name, "stored-refused", ARTEFACT, "input",
            Records.input(spec, new Stored(new byte[0], 1, 0, spec.queueOffset)),
            "options", Json.object("maxMessageSize", maxMessageSize),
            "outcome", Json.object("success", false, "reason", status));
    }
}
