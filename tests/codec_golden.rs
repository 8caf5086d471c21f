//! Bytes that the Java implementation wrote, made again field by field and read back.

use bytes::Bytes;
use stormlog::codec::{
    Assigned, BLANK_LEN, CheckOptions, Host, Message, MessageRef, Outcome, Properties, PropertiesRef, PropertyCrc,
    RecordHeader, RecordOptions, RecordTemplate, SysFlag, batch, check, record,
};
use stormlog::planted::Planted;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn properties(pairs: &[(Option<&str>, Option<&str>)]) -> Properties {
    let mut properties = Properties::new();
    pairs.iter().for_each(|&(name, value)| properties.push_as_upstream(name, value));
    properties
}

fn message(flag: i32, body: &'static [u8], properties: Properties) -> Message {
    Message { topic: "T".to_owned(), flag, body: Bytes::from_static(body), properties }
}

fn tags_and_keys() -> Properties {
    properties(&[(Some("TAGS"), Some("TagA")), (Some("KEYS"), Some("k1"))])
}

#[test]
fn client_messages() {
    let cases = [
        (
            message(0x0102_0304, b"hi", tags_and_keys()),
            "0000002a 00000000 00000000 01020304 00000002 6869 0012 54414753015461674102 4b455953016b3102",
        ),
        (message(-1, b"hi", Properties::new()), "00000018 00000000 00000000 ffffffff 00000002 6869 0000"),
        (message(0, b"", Properties::new()), "00000016 00000000 00000000 00000000 00000000 0000"),
        (
            message(0, b"", properties(&[(None, Some("v")), (Some("x"), None), (Some("e"), Some(""))])),
            "00000020 00000000 00000000 00000000 00000000 000a 6e756c6c017602 650102",
        ),
        (
            // Java writes a lone surrogate as `?`; a Rust string cannot hold one.
            message(
                0,
                b"",
                properties(&[(Some("a"), Some("?b")), (Some("g"), Some("\u{1F600}")), (Some("z"), Some("\0"))]),
            ),
            "00000026 00000000000000000000000000000000 0010 61013f6202 6701f09f988002 7a010002",
        ),
    ];
    let mut all = Vec::new();
    for (message, expected) in &cases {
        let encoded = batch::encode(std::slice::from_ref(message)).unwrap();
        assert_eq!(encoded, hex(expected));
        let read: Vec<_> = batch::BatchReader::new(&encoded).collect();
        assert_eq!(read, [Ok(MessageRef::from(message))]);
        all.extend(encoded);
    }
    let messages: Vec<Message> = cases.into_iter().map(|case| case.0).collect();
    assert_eq!(batch::encode(&messages).unwrap(), all, "a batch is the concatenation of its messages");
    assert_eq!(batch::count(&all), Ok(5));
    assert_eq!(batch::encode::<Message>(&[]).unwrap(), []);
}

fn header(topic: &str) -> RecordHeader<'_> {
    RecordHeader {
        topic,
        queue_id: 3,
        sys_flag: SysFlag(0),
        born_timestamp_ms: 0x0102_0304_0506_0708,
        born_host: Host::new("127.0.0.1".parse().unwrap(), 40000),
        store_host: Host::new("10.0.0.1".parse().unwrap(), 10911),
        reconsume_times: 2,
        prepared_transaction_offset: 0,
    }
}

const STORE_TIMESTAMP_MS: i64 = 0x1112_1314_1516_1718;

/// Encodes one message, into a poisoned buffer, and lets the log assign.
fn store(
    header: &RecordHeader<'_>,
    options: &RecordOptions,
    message: MessageRef<'_>,
    queue_offset: i64,
    physical_offset: i64,
) -> Vec<u8> {
    let template = RecordTemplate::new(header, options).unwrap();
    let prepared = template.prepare(message).unwrap();
    let mut record = vec![0xAA; prepared.encoded_len()];
    prepared.write_to(&mut record);
    let first = Assigned { queue_offset, physical_offset, store_timestamp_ms: STORE_TIMESTAMP_MS };
    assert_eq!(record::assign(&mut record, first, options.append_property_crc), 1);
    record
}

fn assert_accepted(record: &[u8], at: i64, property_crc: PropertyCrc) {
    let outcome = check(record, at, &CheckOptions { property_crc, ..CheckOptions::STRICT });
    assert!(matches!(outcome, Outcome::Record(view) if view.bytes() == record), "{outcome:?}");
    assert_eq!(outcome.to_rocketmq(), (record.len() as i32, true));
}

const V1: &str = "
    0000007b daa320a7 3610a686 00000003 00000005 0000000000000000 0000000000000000 00000000 0102030405060708
    7f000001 00009c40 1112131415161718 0a000001 00002a9f 00000002 0000000000000000 00000005 68656c6c6f
    09 546f70696354657374 0012 54414753015461674102 4b455953016b3102";

#[test]
fn a_record() {
    let properties = tags_and_keys();
    let message = MessageRef { flag: 5, body: b"hello", properties: properties.view() };
    let record = store(&header("TopicTest"), &RecordOptions::default(), message, 0, 0);
    assert_eq!(record, hex(V1));
    assert_accepted(&record, 0, PropertyCrc::WherePresent);
}

#[test]
fn a_record_with_its_own_crc() {
    let properties = tags_and_keys();
    let options = RecordOptions { append_property_crc: true, ..RecordOptions::default() };
    let mut expected = hex(V1);
    expected[3] = 0x8F;
    let properties_len = expected.len() - 19;
    expected[properties_len] = 0x26;
    expected.extend(hex("5f5f435243333223 01 31393436353633393231 02"));
    for sent_along in ["", "__CRC32#\u{1}0000000000\u{2}"] {
        let with_crc = format!("{}{sent_along}", properties.as_str());
        let message = MessageRef { flag: 5, body: b"hello", properties: PropertiesRef(with_crc.as_bytes()) };
        let record = store(&header("TopicTest"), &options, message, 0, 0);
        assert_eq!(record, expected);
        assert_accepted(&record, 0, PropertyCrc::Require);
        assert_accepted(&record, 0, PropertyCrc::WherePresent);
    }
}

#[test]
fn a_record_with_ipv6_hosts() {
    let header = RecordHeader {
        born_host: Host::new("2001:db8::1".parse().unwrap(), 40000),
        store_host: Host::new("2001:db8::2".parse().unwrap(), 10911),
        ..header("T")
    };
    let message = MessageRef { flag: 5, body: b"x", properties: PropertiesRef(b"") };
    let record = store(&header, &RecordOptions::default(), message, 0, 311);
    assert_eq!(
        record,
        hex("
        00000075 daa320a7 0cdc1683 00000003 00000005 0000000000000000 0000000000000137 00000030 0102030405060708
        20010db8000000000000000000000001 00009c40 1112131415161718 20010db8000000000000000000000002 00002a9f
        00000002 0000000000000000 00000001 78 01 54 0000")
    );
    assert_accepted(&record, 311, PropertyCrc::Ignore);
}

#[test]
fn a_batch_becomes_records() {
    let messages = [message(9, b"hi", properties(&[(Some("TAGS"), Some("x"))])), message(0, b"yo", Properties::new())];
    let batch = batch::encode(&messages).unwrap();
    let header = RecordHeader { prepared_transaction_offset: 77, ..header("T") };
    let template = RecordTemplate::new(&header, &RecordOptions::default()).unwrap();
    let prepared = template.prepare_batch(&batch).unwrap();
    assert_eq!(prepared.message_count(), 2);
    let mut records = vec![0xAA; prepared.encoded_len()];
    prepared.write_to(&mut records);
    let first = Assigned { queue_offset: 6, physical_offset: 0x538, store_timestamp_ms: STORE_TIMESTAMP_MS };
    assert_eq!(record::assign(&mut records, first, false), 2);
    assert_eq!(
        records,
        hex("
        00000065 daa320a7 58932aac 00000003 00000009 0000000000000006 0000000000000538 00000000 0102030405060708
        7f000001 00009c40 1112131415161718 0a000001 00002a9f 00000002 0000000000000000 00000002 6869 01 54
        0007 54414753017802
        0000005e daa320a7 6229ac89 00000003 00000000 0000000000000007 000000000000059d 00000000 0102030405060708
        7f000001 00009c40 1112131415161718 0a000001 00002a9f 00000002 0000000000000000 00000002 796f 01 54 0000")
    );
    let mut appended = b"before".to_vec();
    assert_eq!(template.encode_batch_into(&batch, &mut appended), Ok(records.len()));
    record::assign(&mut appended[6..], first, false);
    assert_eq!(appended[6..], records);
}

#[test]
fn a_topic_of_128_bytes_makes_a_version_2_record() {
    let message = MessageRef { flag: 0, body: b"", properties: PropertiesRef(b"") };
    for (len, magic, topic_len) in [(127, "daa320a7", "7f"), (128, "daa320ab", "0080")] {
        let topic = "t".repeat(len);
        let record = store(&header(&topic), &RecordOptions::default(), message, 0, 0);
        assert_eq!(record[4..8], hex(magic));
        assert_eq!(record[88..][..topic_len.len() / 2], hex(topic_len));
        assert_accepted(&record, 0, PropertyCrc::Ignore);
    }
}

#[test]
fn only_a_committed_transaction_gets_a_queue_offset() {
    let message = MessageRef { flag: 0, body: b"b", properties: PropertiesRef(b"") };
    for (sys_flag, queue_offset) in [(0x4, 0), (0x8, 41), (0xC, 0)] {
        let header = RecordHeader {
            sys_flag: SysFlag(sys_flag),
            prepared_transaction_offset: 0x0102_0304_0506_0708,
            ..header("T")
        };
        let record = store(&header, &RecordOptions::default(), message, 41, 7);
        let Outcome::Record(view) = check(&record, 7, &CheckOptions::STRICT) else { panic!("refused") };
        assert_eq!(view.queue_offset(), queue_offset);
        assert_eq!(view.prepared_transaction_offset(), 0x0102_0304_0506_0708);
    }
}

#[test]
fn a_blank() {
    let blank = record::blank(12, Planted::NONE);
    assert_eq!(blank, *hex("0000000c cbd43194"));
    let tail = [&blank[..], &[0xAA; 4]].concat();
    assert_eq!(check(&tail, 4084, &CheckOptions::STRICT), Outcome::Blank { stated_len: 12 });
    assert!(record::fits(4088, 4096) && !record::fits(4089, 4096));
    assert_eq!(BLANK_LEN, 8);
}
