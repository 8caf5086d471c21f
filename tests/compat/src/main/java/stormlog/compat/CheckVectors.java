package stormlog.compat;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;

import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.store.CommitLog;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.DispatchRequest;
import org.apache.rocketmq.store.Inside;

import stormlog.compat.Records.Spec;

/**
 * What {@code checkMessageAndReturnSize} answers to damaged records. Its scratch buffer is kept by the thread and only
 * grows, so that an answer can depend on what the thread checked before: each vector is run in a new thread, and in one
 * whose buffer has grown to its cap; {@code grownOutcome} is there where the two differ.
 */
final class CheckVectors {
    private static final Options RECOVERY = new Options(true, false, true, false);
    private static final Options DISPATCH = new Options(false, false, false, false);
    private static final Options DUPLICATION = new Options(true, true, true, false);
    private static final Options PROPERTY_CRC = new Options(true, false, true, true);
    private static final int BLANK_MAGIC = -875286124;

    private record Options(boolean checkCrc, boolean checkDupInfo, boolean readBody, boolean forceVerifyPropCrc) {
    }

    private final Vectors vectors;
    private final Records records;
    private final DefaultMessageStore store;

    private CheckVectors(Vectors vectors, Records records, DefaultMessageStore store) {
        this.vectors = vectors;
        this.records = records;
        this.store = store;
    }

    static void add(Vectors vectors, Records records, DefaultMessageStore store) throws Exception {
        CheckVectors check = new CheckVectors(vectors, records, store);
        check.whole();
        check.sizeFields();
        check.headers();
        check.cuts();
        check.contents();
        check.properties();
    }

    private void whole() throws Exception {
        for (int hosts = 0; hosts < 4; hosts++) {
            Spec spec = new Spec().ipv6((hosts & 1) != 0, (hosts & 2) != 0);
            check("whole/v1-hosts-" + hosts, records.record(spec).bytes(), RECOVERY);
            check("whole/v2-hosts-" + hosts, records.record(spec.topic("t".repeat(128))).bytes(), RECOVERY);
        }
        byte[] record = records.record(new Spec()).bytes();
        check("whole/dispatch", record, DISPATCH);
        check("whole/spare-behind", spare(record), RECOVERY);
        check("whole/empty-body", records.record(new Spec().body(new byte[0])).bytes(), RECOVERY);
        check("whole/no-properties", records.record(new Spec().properties("")).bytes(), RECOVERY);
        check("whole/property-crc", records.record(new Spec().propertyCrc()).bytes(), RECOVERY);
        check("whole/property-crc-forced", records.record(new Spec().propertyCrc()).bytes(), PROPERTY_CRC);
        check("whole/property-crc-forced-without-body", records.record(new Spec().propertyCrc()).bytes(),
            new Options(true, false, false, true));
        check("whole/4096", records.record(new Spec().body(ClientVectors.pattern(4096))).bytes(), RECOVERY);
    }

    private void sizeFields() throws Exception {
        for (String form : new String[] {"v1", "v2", "v1-ipv6"}) {
            Spec spec = new Spec().body(ClientVectors.pattern(40));
            int hostBytes = 16;
            if (form.equals("v2")) {
                spec.topic("t".repeat(128));
            } else if (form.equals("v1-ipv6")) {
                spec.ipv6(true, true);
                hostBytes = 40;
            }
            byte[] record = records.record(spec).bytes();
            int bodyAt = 68 + hostBytes;
            int topicAt = bodyAt + 4 + spec.body.length;
            int topicBytes = ClientVectors.utf8(spec.topic).length;
            int topicWidth = form.equals("v2") ? 2 : 1;
            int propertiesAt = topicAt + topicWidth + topicBytes;
            int least = record.length - spec.body.length - topicBytes - ClientVectors.utf8(spec.properties).length;

            for (int spareBytes : new int[] {0, 200}) {
                byte[] buffer = Arrays.copyOf(record, record.length + spareBytes);
                String place = "size/" + form + (spareBytes == 0 ? "/exact/" : "/spare/");
                int[] totals = {Integer.MIN_VALUE, Integer.MIN_VALUE + 3, Integer.MIN_VALUE + 4, -1, 0, 1, 7, 8, 20,
                    39, 40, least - 1, least, record.length - 1, record.length + 1, buffer.length - 1, buffer.length,
                    buffer.length + 1, Integer.MAX_VALUE};
                vary(place + "total", buffer, 0, 4, totals);
                int left = buffer.length - bodyAt - 4;
                vary(place + "body", buffer, bodyAt, 4, Integer.MIN_VALUE, -1, 0, 1, 39, 41, record.length - 1,
                    record.length, record.length + 1, left - 1, left, left + 1, Integer.MAX_VALUE);
                left = buffer.length - topicAt - topicWidth;
                vary(place + "topic", buffer, topicAt, topicWidth, Short.MIN_VALUE, Byte.MIN_VALUE, -1, 0, 1,
                    topicBytes - 1, topicBytes + 1, left - 1, left, left + 1, Byte.MAX_VALUE, Short.MAX_VALUE);
                left = buffer.length - propertiesAt - 2;
                vary(place + "properties", buffer, propertiesAt, 2, Short.MIN_VALUE, -1, 0, 1, 17, 19, left - 1, left,
                    left + 1, record.length, record.length + 1, Short.MAX_VALUE);
            }
        }
    }

    /** A vector for each value that fits the field's width and is not already there. */
    private void vary(String name, byte[] buffer, int at, int width, int... values) throws Exception {
        Set<Integer> distinct = new LinkedHashSet<>();
        for (int value : values) {
            int fitting = width == 1 ? (byte) value : width == 2 ? (short) value : value;
            if (fitting == value) {
                distinct.add(value);
            }
        }
        for (int value : distinct) {
            byte[] varied = buffer.clone();
            ByteBuffer bytes = ByteBuffer.wrap(varied);
            switch (width) {
                case 1 -> bytes.put(at, (byte) value);
                case 2 -> bytes.putShort(at, (short) value);
                default -> bytes.putInt(at, value);
            }
            if (!Arrays.equals(varied, buffer)) {
                check(name + "/" + value, varied, RECOVERY);
                check(name + "/" + value + "/dispatch", varied, DISPATCH);
            }
        }
    }

    private void headers() throws Exception {
        byte[] record = records.record(new Spec()).bytes();
        for (int magic : new int[] {0, -1, MessageDecoder.MESSAGE_MAGIC_CODE + 1,
            MessageDecoder.MESSAGE_MAGIC_CODE_V2 + 1, Integer.reverseBytes(MessageDecoder.MESSAGE_MAGIC_CODE)}) {
            check("magic/" + Integer.toHexString(magic), ByteBuffer.wrap(record.clone()).putInt(4, magic).array(),
                RECOVERY);
        }
        check("magic/v1-record-as-v2",
            ByteBuffer.wrap(record.clone()).putInt(4, MessageDecoder.MESSAGE_MAGIC_CODE_V2).array(), RECOVERY);
        for (int size : new int[] {Integer.MIN_VALUE, Integer.MIN_VALUE + 4, -1, 0, 1, 7, 8, 63, 64, 65,
            Integer.MAX_VALUE}) {
            check("blank/" + size, ByteBuffer.allocate(64).putInt(size).putInt(BLANK_MAGIC).array(), RECOVERY);
        }
        check("blank/least", ByteBuffer.allocate(8).putInt(8).putInt(BLANK_MAGIC).array(), RECOVERY);
        check("zeros/64", new byte[64], RECOVERY);
        check("ones/64", filled(64, 0xFF), RECOVERY);
    }

    private void cuts() throws Exception {
        byte[] record = records.record(new Spec()).bytes();
        for (int length : new int[] {0, 1, 3, 4, 5, 7, 8, 11, 12, 20, 28, 36, 40, 48, 56, 64, 72, 76, 84, 87, 88, 93,
            94, 103, 104, 105, record.length - 1}) {
            check("cut/" + length, Arrays.copyOf(record, length), RECOVERY);
            if (length >= 4) {
                byte[] sized = ByteBuffer.wrap(Arrays.copyOf(record, length)).putInt(0, length).array();
                check("cut-and-sized/" + length, sized, RECOVERY);
            }
        }
        byte[] torn = record.clone();
        Arrays.fill(torn, 100, torn.length, (byte) 0);
        check("torn/zeros-from-100", torn, RECOVERY);
        byte[] tornBody = record.clone();
        Arrays.fill(tornBody, 90, tornBody.length, (byte) 0);
        check("torn/zeros-from-90", tornBody, RECOVERY);
    }

    private void contents() throws Exception {
        byte[] record = records.record(new Spec()).bytes();
        ByteBuffer bytes = ByteBuffer.wrap(record);
        int crc = bytes.getInt(8);
        check("crc/off-by-one", ByteBuffer.wrap(record.clone()).putInt(8, crc + 1).array(), RECOVERY);
        check("crc/top-bit-set", ByteBuffer.wrap(record.clone()).putInt(8, crc | Integer.MIN_VALUE).array(), RECOVERY);
        check("crc/off-by-one-unchecked", ByteBuffer.wrap(record.clone()).putInt(8, crc + 1).array(),
            new Options(false, false, true, false));
        check("crc/off-by-one-dispatch", ByteBuffer.wrap(record.clone()).putInt(8, crc + 1).array(), DISPATCH);
        check("crc/off-by-one-checked-without-body", ByteBuffer.wrap(record.clone()).putInt(8, crc + 1).array(),
            new Options(true, false, false, false));
        byte[] empty = records.record(new Spec().body(new byte[0])).bytes();
        check("crc/any-with-empty-body", ByteBuffer.wrap(empty.clone()).putInt(8, 12345).array(), RECOVERY);
        check("body/length-minus-one-without-body", ByteBuffer.wrap(empty.clone()).putInt(84, -1).array(), RECOVERY);
        check("body/bit-flipped", flipped(record, 88), RECOVERY);
        check("topic/bit-flipped", flipped(record, 95), RECOVERY);
        check("properties/bit-flipped", flipped(record, record.length - 3), RECOVERY);
        check("flags/born-ipv6-set", flipped(record, 39, 0x10), RECOVERY);
        check("flags/store-ipv6-set", flipped(record, 39, 0x20), RECOVERY);
        check("flags/unknown-bits", flipped(record, 36, 0x40), RECOVERY);
        byte[] v6 = records.record(new Spec().ipv6(true, true)).bytes();
        check("flags/born-ipv6-cleared", flipped(v6, 39, 0x10), RECOVERY);
        check("flags/both-ipv6-cleared", flipped(v6, 39, 0x30), RECOVERY);
        check("physical-offset/wrong", ByteBuffer.wrap(record.clone()).putLong(28, 7).array(), RECOVERY);
        check("physical-offset/negative", ByteBuffer.wrap(record.clone()).putLong(28, -1).array(), RECOVERY);
        check("queue/negative", ByteBuffer.wrap(record.clone()).putInt(12, -1).putLong(20, -1).array(), RECOVERY);
        check("port/out-of-range", ByteBuffer.wrap(record.clone()).putInt(52, -1).array(), RECOVERY);
        check("topic/empty", records.record(new Spec().topic("")).bytes(), RECOVERY);
        check("topic/v1-200-utf8-bytes", records.record(new Spec().topic("\u4e3b".repeat(67))).bytes(), RECOVERY);
    }

    private void properties() throws Exception {
        byte[] none = records.record(new Spec().properties("")).bytes();
        check("properties/length-minus-one-without-properties",
            ByteBuffer.wrap(none.clone()).putShort(none.length - 2, (short) -1).array(), RECOVERY);
        byte[] record = records.record(new Spec()).bytes();
        byte[] malformed = record.clone();
        malformed[malformed.length - 3] = (byte) 0xFF;
        check("properties/invalid-utf8", malformed, RECOVERY);

        String[] dupInfos = {"a_b", "a_b_", "a_", "_b", "_", "a", "a_b_c", "a__b"};
        for (String value : dupInfos) {
            check("dup-info/" + value,
                records.record(new Spec().properties("DUP_INFO\u0001" + value + "\u0002")).bytes(), DUPLICATION);
        }
        check("dup-info/missing", record, DUPLICATION);
        check("dup-info/no-properties", none, DUPLICATION);

        String[] levels = {"1", "0", "-1", "18", "19", "2147483648", "x", " 1", "+1", ""};
        for (String level : levels) {
            check("delay/" + level, records.record(new Spec().topic("SCHEDULE_TOPIC_XXXX")
                .properties("DELAY\u0001" + level + "\u0002")).bytes(), RECOVERY);
        }
        check("delay/other-topic", records.record(new Spec().properties("DELAY\u0001x\u0002")).bytes(), RECOVERY);

        String[][] inner = {{"3", "7"}, {"32767", "0"}, {"32768", "0"}, {"x", "0"}, {"3", "x"},
            {"3", "9223372036854775808"}, {"-3", "-7"}};
        for (String[] numbers : inner) {
            check("inner/" + numbers[0] + "-from-" + numbers[1], records.record(new Spec().properties(
                "INNER_NUM\u0001" + numbers[0] + "\u0002INNER_BASE\u0001" + numbers[1] + "\u0002")).bytes(), RECOVERY);
        }
        check("inner/no-base", records.record(new Spec().properties("INNER_NUM\u0001x\u0002")).bytes(), RECOVERY);

        byte[] withCrc = records.record(new Spec().propertyCrc()).bytes();
        check("property-crc/missing", record, PROPERTY_CRC);
        check("property-crc/no-properties", none, PROPERTY_CRC);
        check("property-crc/digit-changed", flipped(withCrc, withCrc.length - 5), PROPERTY_CRC);
        check("property-crc/digit-changed-not-forced", flipped(withCrc, withCrc.length - 5), RECOVERY);
        check("property-crc/store-host-flipped", flipped(withCrc, 64), PROPERTY_CRC);
        check("property-crc/store-host-flipped-not-forced", flipped(withCrc, 64), RECOVERY);
        check("property-crc/body-flipped", flipped(withCrc, 88), PROPERTY_CRC);
        check("property-crc/body-crc-flipped", flipped(withCrc, 9), PROPERTY_CRC);
        check("property-crc/not-a-number", records.record(new Spec().properties("__CRC32#\u0001abc\u0002")).bytes(),
            PROPERTY_CRC);
        check("property-crc/in-the-middle",
            records.record(new Spec().properties("__CRC32#\u00010000000000\u0002a\u0001b\u0002")).bytes(), PROPERTY_CRC);
    }

    private static byte[] spare(byte[] record) {
        return Arrays.copyOf(record, record.length + 200);
    }

    private static byte[] filled(int length, int value) {
        byte[] bytes = new byte[length];
        Arrays.fill(bytes, (byte) value);
        return bytes;
    }

    private static byte[] flipped(byte[] record, int at) {
        return flipped(record, at, 1);
    }

    private static byte[] flipped(byte[] record, int at, int bits) {
        byte[] changed = record.clone();
        changed[at] ^= (byte) bits;
        return changed;
    }

    private void check(String name, byte[] bytes, Options options) throws Exception {
        Map<String, Object> outcome = run(bytes, options, 0);
        Map<String, Object> grown = run(bytes, options, store.getMessageStoreConfig().getMaxCheckMessageReuseBufferSize());
        Map<String, Object> asked = Json.object("checkCrc", options.checkCrc, "checkDupInfo", options.checkDupInfo,
            "readBody", options.readBody, "forceVerifyPropCrc", options.forceVerifyPropCrc);
        if (grown.equals(outcome)) {
            vectors.add("check.jsonl", "check/" + name, "check", "rocketmq-store", "hex", Json.hex(bytes), "options",
                asked, "outcome", outcome);
        } else {
            vectors.add("check.jsonl", "check/" + name, "check", "rocketmq-store", "hex", Json.hex(bytes), "options",
                asked, "outcome", outcome, "grownOutcome", grown);
        }
    }

    private Map<String, Object> run(byte[] bytes, Options options, int scratch) throws Exception {
        store.getMessageStoreConfig().setForceVerifyPropCRC(options.forceVerifyPropCrc);
        CommitLog log = store.getCommitLog();
        DispatchRequest result = Inside.inThread(log, scratch, () -> log.checkMessageAndReturnSize(
            ByteBuffer.wrap(bytes), options.checkCrc, options.checkDupInfo, options.readBody));
        return Json.object("size", result.getMsgSize(), "success", result.isSuccess());
    }
}
