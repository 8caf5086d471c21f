//! What went wrong in RocketMQ's store, clients and ports, each as a test. The names are those of the collected reports;
//! W06, W12 and W18 stand beside the code that they are about, R02 and R04 with the record check.

use bytes::{Bytes, BytesMut};
use stormlog::codec::{
    Assigned, BatchError, CheckOptions, EncodeError, Host, Message, MessageRef, Outcome, Properties, PropertiesRef,
    PropertyCrc, RecordHeader, RecordOptions, RecordTemplate, RecordView, SysFlag, batch, check, record,
};

fn header<'a>(topic: &'a str, born: &str, store: &str) -> RecordHeader<'a> {
    RecordHeader {
        topic,
        queue_id: 0,
        sys_flag: SysFlag(0),
        born_timestamp_ms: 0,
        born_host: Host::new(born.parse().unwrap(), 1),
        store_host: Host::new(store.parse().unwrap(), 2),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
    }
}

fn template<'a>(topic: &'a str, options: &RecordOptions) -> RecordTemplate<'a> {
    RecordTemplate::new(&header(topic, "10.0.0.1", "10.0.0.2"), options).unwrap()
}

/// One property whose whole text is `len` bytes of UTF-8, made of characters of `width` bytes as far as they go.
fn property_of(len: usize, width: usize) -> Vec<u8> {
    let value = if width == 3 { "漢" } else { "v" };
    let count = (len - 3) / width;
    let text = format!("n\u{1}{}{}\u{2}", value.repeat(count), "w".repeat(len - 3 - count * width));
    assert_eq!(text.len(), len);
    text.into_bytes()
}

#[test]
fn w03_properties_over_the_limit_are_refused_before_any_byte_is_written() {
    let plain = RecordOptions::default();
    let with_crc = RecordOptions { append_property_crc: true, ..plain };
    for width in [1, 3] {
        for len in [32_747, 32_748, 32_766, 32_767, 32_768, 65_535, 65_536, 65_541] {
            let properties = property_of(len, width);
            let message = MessageRef { flag: 0, body: b"b", properties: PropertiesRef(&properties) };
            let refused = |len| EncodeError::PropertiesTooLong { len, limit: 32_767 };
            let mut buffer = b"as it was".to_vec();

            let result = batch::encode_into(&[message], &mut buffer);
            assert_eq!(result, if len > 32_767 { Err(refused(len)) } else { Ok(23 + len) });
            assert_eq!(buffer.len(), 9 + result.unwrap_or(0));

            buffer.truncate(9);
            let result = template("T", &plain).encode_into(message, &mut buffer);
            assert_eq!(result, if len > 32_767 { Err(refused(len)) } else { Ok(93 + len) });
            assert_eq!(buffer.len(), 9 + result.unwrap_or(0));

            buffer.truncate(9);
            let result = template("T", &with_crc).encode_into(message, &mut buffer);
            assert_eq!(result, if len > 32_747 { Err(refused(len + 20)) } else { Ok(113 + len) });
            assert_eq!(buffer.len(), 9 + result.unwrap_or(0));
        }
    }
}

#[test]
fn w03_a_batch_element_over_the_limit_is_refused_too() {
    let properties = property_of(32_750, 1);
    let message = MessageRef { flag: 0, body: b"b", properties: PropertiesRef(&properties) };
    let encoded = batch::encode(&[message, message]).unwrap();
    let options = RecordOptions { append_property_crc: true, ..RecordOptions::default() };
    let mut buffer = Vec::new();
    let result = template("T", &options).encode_batch_into(&encoded, &mut buffer);
    assert_eq!(result, Err(EncodeError::PropertiesTooLong { len: 32_770, limit: 32_767 }));
    assert_eq!(buffer, []);
}

#[test]
fn w04_a_reused_buffer_leaves_nothing_behind() {
    let long = property_of(4000, 1);
    let long = MessageRef { flag: -1, body: &[0xEE; 5000], properties: PropertiesRef(&long) };
    let short = MessageRef { flag: 1, body: b"b", properties: PropertiesRef(b"a\x01b") };
    for append_property_crc in [false, true] {
        let options = RecordOptions { append_property_crc, ..RecordOptions::default() };
        let template = template("T", &options);
        let mut fresh = Vec::new();
        template.encode_into(short, &mut fresh).unwrap();
        let mut reused = vec![0xAA; 20_000];
        reused.clear();
        template.encode_into(long, &mut reused).unwrap();
        reused.clear();
        template.encode_into(short, &mut reused).unwrap();
        assert_eq!(reused, fresh);
        let mut poisoned = vec![0xAA; fresh.len()];
        template.prepare(short).unwrap().write_to(&mut poisoned);
        assert_eq!(poisoned, fresh);

        let mut poisoned = BytesMut::zeroed(20_000);
        poisoned.fill(0xAA);
        poisoned.clear();
        batch::encode_into(&[short], &mut poisoned).unwrap();
        assert_eq!(poisoned, batch::encode(&[short]).unwrap());
    }
}

#[test]
fn w05_properties_are_read_from_the_properties() {
    let properties = b"TAGS\x01TagA\x02KEYS\x01k1 k2\x02UNIQ_KEY\x01u\x02";
    let mut bytes = Vec::new();
    let message = MessageRef { flag: 0, body: b"b", properties: PropertiesRef(properties) };
    template("T", &RecordOptions::default()).encode_into(message, &mut bytes).unwrap();
    let view = RecordView::parse(&bytes).unwrap();
    assert_eq!(view.topic(), b"T");
    assert_eq!(view.tags_code(), 2_598_919);
    assert_eq!(view.properties().get("KEYS"), Some(&b"k1 k2"[..]));
    assert_eq!(view.properties().get("UNIQ_KEY"), Some(&b"u"[..]));
}

#[test]
fn w08_messages_are_counted_by_total_sizes_that_count_themselves() {
    assert_eq!(batch::count(&[]), Ok(0));
    assert_eq!(batch::count(&[0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0]), Ok(2));
    for total_size in [0, 3, 4, 7, -1, i32::MIN, 9, i32::MAX] {
        let bytes = [&[0, 0, 0, 8, 0, 0, 0, 0][..], &total_size.to_be_bytes(), &[0; 4]].concat();
        assert_eq!(batch::count(&bytes), Err(BatchError::TotalSize { at: 8, total_size, remaining: 8 }));
    }
    assert_eq!(batch::count(&[0, 0, 0]), Err(BatchError::Cut { at: 0, needed: 4, remaining: 3 }));
}

#[test]
fn w09_the_store_timestamp_is_found_behind_either_born_host() {
    for born in ["10.0.0.1", "2001:db8::1", "::ffff:10.0.0.1"] {
        for store in ["10.0.0.2", "2001:db8::2"] {
            let header = header("T", born, store);
            let template = RecordTemplate::new(&header, &RecordOptions::default()).unwrap();
            let mut bytes = Vec::new();
            let message = MessageRef { flag: 0, body: b"b", properties: PropertiesRef(b"") };
            template.encode_into(message, &mut bytes).unwrap();
            let first = Assigned { queue_offset: 1, physical_offset: 2, store_timestamp_ms: 0x1112_1314_1516_1718 };
            record::assign(&mut bytes, first, false);
            let view = RecordView::parse(&bytes).unwrap();
            assert_eq!(view.store_timestamp_ms(), 0x1112_1314_1516_1718, "{born} {store}");
            assert_eq!((view.born_host(), view.store_host()), (header.born_host, header.store_host));
            assert_eq!((view.queue_offset(), view.physical_offset()), (1, 2));
        }
    }
}

#[test]
fn w17_a_framed_body_is_validated_before_use() {
    let message = MessageRef { flag: 1, body: b"body", properties: PropertiesRef(b"a\x01b\x02") };
    let good = batch::encode(&[message]).unwrap();
    let template = template("T", &RecordOptions::default());
    let refused = |bytes: &[u8], expected: BatchError| {
        let mut buffer = Vec::new();
        assert_eq!(template.encode_batch_into(bytes, &mut buffer), Err(EncodeError::Batch(expected)));
        assert_eq!(buffer, []);
        let read: Vec<_> = batch::BatchReader::new(bytes).collect();
        assert_eq!(read.last(), Some(&Err(expected)), "an error is the last item");
        assert_eq!(batch::read_shared(&Bytes::copy_from_slice(bytes)).last(), Some(Err(expected)));
    };
    let edit = |at: usize, value: &[u8]| {
        let mut bytes = good.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        bytes
    };
    for body_len in [-1, i32::MIN, 11, i32::MAX] {
        refused(&edit(16, &body_len.to_be_bytes()), BatchError::BodyLen { at: 0, body_len, remaining: 10 });
    }
    refused(&edit(16, &10i32.to_be_bytes()), BatchError::Cut { at: 0, needed: 32, remaining: 30 });
    for properties_len in [-1, i16::MIN, 5, i16::MAX] {
        let expected = BatchError::PropertiesLen { at: 0, properties_len, remaining: 4 };
        refused(&edit(24, &properties_len.to_be_bytes()), expected);
    }
    for trailing in 1..=3 {
        let bytes = [&good[..], &[0; 3][..trailing]].concat();
        refused(&bytes, BatchError::Cut { at: 30, needed: 22, remaining: trailing });
    }
    // The start of a zlib stream where a batch should be.
    let zlib = b"\x78\x9c\xcb\x48\xcd\xc9\xc9\x57\x28\xcf\x2f\xca\x49\xe1\x02\x00\x1e\x72\x04\x67\x00\x00";
    refused(zlib, BatchError::BodyLen { at: 0, body_len: 0x1E72_0467, remaining: 2 });
}

#[test]
fn w19_a_damaged_message_ends_the_batch_with_an_error() {
    let message = MessageRef { flag: 1, body: b"body", properties: PropertiesRef(b"") };
    let mut bytes = batch::encode(&[message; 3]).unwrap();
    bytes[26 + 16..26 + 20].copy_from_slice(&i32::MAX.to_be_bytes());
    let read: Vec<_> = batch::BatchReader::new(&bytes).collect();
    let error = BatchError::BodyLen { at: 26, body_len: i32::MAX, remaining: 32 };
    assert_eq!(read, [Ok(message), Err(error)]);
}

#[test]
fn w21_a_property_cannot_forge_another() {
    let mut properties = Properties::new();
    properties.insert("TAGS", "good").unwrap();
    properties.insert("user", "x\u{2}TAGS\u{1}evil").unwrap_err();
    assert_eq!(properties.get("TAGS"), Some("good"));
    assert_eq!(properties.get("user"), None);
}

#[test]
fn s06_the_version_follows_the_topics_bytes() {
    let topic = "漢".repeat(50);
    let message = MessageRef { flag: 0, body: b"b", properties: PropertiesRef(b"") };
    let mut bytes = Vec::new();
    template(&topic, &RecordOptions::default()).encode_into(message, &mut bytes).unwrap();
    let Outcome::Record(view) = check(&bytes, 0, &CheckOptions::STRICT) else { panic!("refused") };
    assert_eq!(view.topic(), topic.as_bytes());

    let only_v1 = RecordOptions { auto_message_version: false, ..RecordOptions::default() };
    let refused = RecordTemplate::new(&header(&topic, "10.0.0.1", "10.0.0.2"), &only_v1).unwrap_err();
    assert_eq!(refused, EncodeError::TopicTooLong { len: 150, limit: 127 });
    let topic = "t".repeat(32_768);
    let header = header(&topic, "10.0.0.1", "10.0.0.2");
    let refused = RecordTemplate::new(&header, &RecordOptions::default()).unwrap_err();
    assert_eq!(refused, EncodeError::TopicTooLong { len: 32_768, limit: 32_767 });
}

#[test]
fn bodies_records_and_batches_over_the_limit_are_refused() {
    let options = RecordOptions { max_message_size: 1000, ..RecordOptions::default() };
    let topic = "t".repeat(32_767);
    let properties = property_of(32_700, 1);
    let big = MessageRef { flag: 0, body: &[0; 1000], properties: PropertiesRef(&properties) };
    let mut buffer = Vec::new();
    let refused = template(&topic, &options).encode_into(big, &mut buffer);
    assert_eq!(refused, Err(EncodeError::RecordTooLarge { len: 92 + 32_767 + 32_700 + 1000, limit: 66_536 }));
    let body = MessageRef { flag: 0, body: &[0; 1001], properties: PropertiesRef(b"") };
    let refused = template("T", &options).encode_into(body, &mut buffer);
    assert_eq!(refused, Err(EncodeError::BodyTooLarge { len: 1001, limit: 1000 }));
    let batch_body = batch::encode(&[body]).unwrap();
    let refused = template("T", &options).encode_batch_into(&batch_body, &mut buffer);
    assert_eq!(refused, Err(EncodeError::BatchTooLarge { len: 1023, limit: 1000 }));
    assert_eq!(buffer, []);

    let empty = MessageRef { flag: 0, body: b"", properties: PropertiesRef(b"") };
    let many = batch::encode(&vec![empty; 32_768]).unwrap();
    let refused = template("", &RecordOptions::default()).encode_batch_into(&many, &mut buffer);
    assert_eq!(refused, Err(EncodeError::TooManyMessages { count: 32_768, limit: 32_767 }));
    let long_topic = "t".repeat(200);
    let refused = template(&long_topic, &RecordOptions::default()).encode_batch_into(&many[..22 * 20_000], &mut buffer);
    assert_eq!(refused, Err(EncodeError::BatchTooLarge { len: 292 * 20_000, limit: (4 << 20) + (64 << 10) }));
}

#[test]
fn a_batch_takes_no_part_in_a_transaction() {
    let header = RecordHeader { sys_flag: SysFlag(0x4), ..header("T", "10.0.0.1", "10.0.0.2") };
    let template = RecordTemplate::new(&header, &RecordOptions::default()).unwrap();
    assert_eq!(template.prepare_batch(b"").unwrap_err(), EncodeError::BatchInTransaction);
}

#[test]
fn a_batch_element_without_a_last_separator_gets_a_crc_that_can_be_read() {
    let message = Message {
        body: Bytes::from_static(b"b"),
        properties: Properties::from_encoded("a\u{1}b".to_owned()),
        ..Message::default()
    };
    let encoded = batch::encode(&[message]).unwrap();
    let options = RecordOptions { append_property_crc: true, ..RecordOptions::default() };
    let mut bytes = Vec::new();
    template("T", &options).encode_batch_into(&encoded, &mut bytes).unwrap();
    record::assign(&mut bytes, Assigned { queue_offset: 0, physical_offset: 0, store_timestamp_ms: 0 }, true);
    let require = CheckOptions { property_crc: PropertyCrc::Require, ..CheckOptions::STRICT };
    let Outcome::Record(view) = check(&bytes, 0, &require) else { panic!("refused") };
    assert_eq!(view.properties().get("a"), Some(&b"b"[..]));
}
