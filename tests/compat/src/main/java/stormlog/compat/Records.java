package stormlog.compat;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Inet6Address;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.common.message.MessageVersion;
import org.apache.rocketmq.store.AppendMessageResult;
import org.apache.rocketmq.store.AppendMessageStatus;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.Inside;
import org.apache.rocketmq.store.MessageExtEncoder;
import org.apache.rocketmq.store.PutMessageContext;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/**
 * Makes stored records with the reference's encoder and append callback. What a broker assigns (store time, hosts,
 * offsets) is given.
 */
final class Records {
    static final int COMPRESSED = 0x1;
    static final int PREPARED = 0x4;
    static final int COMMIT = 0x8;
    static final int ROLLBACK = 0xC;

    private final DefaultMessageStore plain;
    private final DefaultMessageStore withPropertyCrc;

    Records(DefaultMessageStore plain, DefaultMessageStore withPropertyCrc) {
        this.plain = plain;
        this.withPropertyCrc = withPropertyCrc;
    }

    /** Parses {@code 1.2.3.4:5} or {@code [::1]:5}; asks no name service. */
    static InetSocketAddress address(String host) throws Exception {
        int colon = host.lastIndexOf(':');
        String ip = host.substring(0, colon).replace("[", "").replace("]", "");
        return new InetSocketAddress(InetAddress.getByName(ip), Integer.parseInt(host.substring(colon + 1)));
    }

    /** What one record is made from. */
    static final class Spec {
        String topic = "TopicTest";
        int queueId = 3;
        long queueOffset = 6;
        long physicalOffset = 1336;
        int flag = 5;
        int sysFlag = 0;
        long bornTimestamp = 0x0102030405060708L;
        String bornHost = "127.0.0.1:40000";
        long storeTimestamp = 0x1112131415161718L;
        String storeHost = "10.0.0.1:10911";
        int reconsumeTimes = 2;
        long preparedTransactionOffset = 0;
        byte[] body = ClientVectors.utf8("hello");
        String properties = "TAGS\u0001TagA\u0002KEYS\u0001k1\u0002";
        boolean propertyCrc = false;

        Spec ipv6(boolean born, boolean store) {
            bornHost = born ? "[2001:db8::1]:40000" : bornHost;
            storeHost = store ? "[2001:db8::2]:10911" : storeHost;
            return this;
        }

        Spec topic(String value) {
            topic = value;
            return this;
        }

        Spec body(byte[] value) {
            body = value;
            return this;
        }

        Spec properties(String value) {
            properties = value;
            return this;
        }

        Spec propertyCrc() {
            propertyCrc = true;
            return this;
        }

        Spec transaction(int bits, long prepared) {
            sysFlag |= bits;
            preparedTransactionOffset = prepared;
            return this;
        }
    }

    /** A record, with the flags and queue offset that it was stored with. */
    record Stored(byte[] bytes, int version, int sysFlag, long queueOffset) {
    }

    Stored record(Spec spec) throws Exception {
        DefaultMessageStore store = spec.propertyCrc ? withPropertyCrc : plain;
        MessageExtBrokerInner message = new MessageExtBrokerInner();
        common(message, spec);
        message.setFlag(spec.flag);
        message.setBody(spec.body);
        message.setBodyCRC(UtilAll.crc32(spec.body));
        message.setPreparedTransactionOffset(spec.preparedTransactionOffset);
        MessageAccessor.setProperties(message, MessageDecoder.string2messageProperties(spec.properties));
        message.setPropertiesString(spec.properties);
        MessageExtEncoder encoder = new MessageExtEncoder(store.getMessageStoreConfig());
        PutMessageResult refusal = encoder.encode(message);
        if (refusal != null) {
            throw new IllegalStateException("refused: " + refusal.getPutMessageStatus());
        }
        message.setEncodedBuff(encoder.getEncoderBuffer());
        ByteBuffer segment = ByteBuffer.allocate(1 << 20);
        AppendMessageResult result =
            Inside.append(store.getCommitLog(), store, spec.physicalOffset, segment, message);
        expect(result, AppendMessageStatus.PUT_OK);
        return new Stored(Arrays.copyOf(segment.array(), segment.position()), version(message), message.getSysFlag(),
            result.getLogicsOffset());
    }

    byte[] batch(Spec spec, List<Message> messages) throws Exception {
        DefaultMessageStore store = spec.propertyCrc ? withPropertyCrc : plain;
        MessageExtBatch batch = new MessageExtBatch();
        common(batch, spec);
        batch.setBody(MessageDecoder.encodeMessages(messages));
        PutMessageContext context = new PutMessageContext(spec.topic + "-" + spec.queueId);
        batch.setEncodedBuff(new MessageExtEncoder(store.getMessageStoreConfig()).encode(batch, context));
        ByteBuffer segment = ByteBuffer.allocate(1 << 20);
        expect(Inside.append(store.getCommitLog(), store, spec.physicalOffset, segment, batch, context),
            AppendMessageStatus.PUT_OK);
        return Arrays.copyOf(segment.array(), segment.position());
    }

    /** What a segment with {@code room} bytes left gets when a record does not fit. */
    byte[] blank(int room) throws Exception {
        Spec spec = new Spec().body(new byte[room]);
        MessageExtBrokerInner message = new MessageExtBrokerInner();
        common(message, spec);
        message.setBody(spec.body);
        MessageExtEncoder encoder = new MessageExtEncoder(plain.getMessageStoreConfig());
        encoder.encode(message);
        message.setEncodedBuff(encoder.getEncoderBuffer());
        ByteBuffer segment = ByteBuffer.allocate(room);
        expect(Inside.append(plain.getCommitLog(), plain, spec.physicalOffset, segment, message),
            AppendMessageStatus.END_OF_FILE);
        return Arrays.copyOf(segment.array(), segment.position());
    }

    /** The status that the encoder refuses a record with, or null. */
    static String refusal(Spec spec, int maxMessageSize) throws Exception {
        MessageStoreConfig config = new MessageStoreConfig();
        config.setMaxMessageSize(maxMessageSize);
        config.setEnabledAppendPropCRC(spec.propertyCrc);
        MessageExtBrokerInner message = new MessageExtBrokerInner();
        common(message, spec);
        message.setBody(spec.body);
        message.setPropertiesString(spec.properties);
        PutMessageResult refusal = new MessageExtEncoder(config).encode(message);
        return refusal == null ? null : refusal.getPutMessageStatus().name();
    }

    private static int version(MessageExtBrokerInner message) {
        return message.getVersion() == MessageVersion.MESSAGE_VERSION_V2 ? 2 : 1;
    }

    private static void common(MessageExtBrokerInner message, Spec spec) throws Exception {
        message.setTopic(spec.topic);
        message.setVersion(spec.topic.length() > Byte.MAX_VALUE ? MessageVersion.MESSAGE_VERSION_V2
            : MessageVersion.MESSAGE_VERSION_V1);
        message.setQueueId(spec.queueId);
        message.setQueueOffset(spec.queueOffset);
        message.setSysFlag(spec.sysFlag);
        message.setBornTimestamp(spec.bornTimestamp);
        message.setStoreTimestamp(spec.storeTimestamp);
        message.setReconsumeTimes(spec.reconsumeTimes);
        hosts(message, address(spec.bornHost), address(spec.storeHost));
    }

    static void hosts(MessageExt message, InetSocketAddress born, InetSocketAddress store) {
        message.setBornHost(born);
        if (born.getAddress() instanceof Inet6Address) {
            message.setBornHostV6Flag();
        }
        message.setStoreHost(store);
        if (store.getAddress() instanceof Inet6Address) {
            message.setStoreHostAddressV6Flag();
        }
    }

    private static void expect(AppendMessageResult result, AppendMessageStatus status) {
        if (result.getStatus() != status) {
            throw new IllegalStateException("append said " + result.getStatus());
        }
    }

    /** The fields of a record as they are stored, and whether a property CRC was asked for. */
    static Map<String, Object> input(Spec spec, Stored stored) {
        return Json.object("version", stored.version(), "topic", spec.topic, "queueId", spec.queueId,
            "queueOffset", stored.queueOffset(), "physicalOffset", spec.physicalOffset, "flag", spec.flag,
            "sysFlag", stored.sysFlag(), "bornTimestamp", spec.bornTimestamp, "bornHost", spec.bornHost,
            "storeTimestamp", spec.storeTimestamp, "storeHost", spec.storeHost, "reconsumeTimes", spec.reconsumeTimes,
            "preparedTransactionOffset", spec.preparedTransactionOffset, "body", Json.hex(spec.body),
            "properties", spec.properties, "propertyCrc", spec.propertyCrc);
    }
}
