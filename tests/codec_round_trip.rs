//! What is encoded is read back, in every shape; what is damaged is answered, whatever it is.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use stormlog::codec::{
    Assigned, CheckOptions, Host, Magic, Message, MessageId, MessageRef, Outcome, Properties, PropertiesRef,
    PropertyCrc, RecordHeader, RecordOptions, RecordTemplate, SysFlag, Transaction, batch, check, record,
};

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![".{1,20}", "[A-Z_]{1,12}", "\\PC{1,8}"].prop_map(|text| text.replace(['\u{1}', '\u{2}'], "-"))
}

fn any_properties() -> impl Strategy<Value = Properties> {
    prop::collection::vec((any_text(), any_text()), 0..6).prop_map(|pairs| {
        let mut properties = Properties::new();
        for (name, value) in pairs {
            properties.insert(&name, &value).expect("no separators, nothing empty");
        }
        properties
    })
}

fn any_message() -> impl Strategy<Value = Message> {
    (any::<i32>(), prop::collection::vec(any::<u8>(), 0..200), any_properties())
        .prop_map(|(flag, body, properties)| Message { topic: "T".to_owned(), flag, body: body.into(), properties })
}

fn any_host() -> impl Strategy<Value = Host> {
    (any::<std::net::IpAddr>(), any::<i32>()).prop_map(|(ip, port)| Host::new(ip, port))
}

fn any_topic() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zA-Z0-9%_-]{0,20}", "t{120,135}", "[漢字]{38,50}"]
}

prop_compose! {
    fn any_assigned()(
        queue_offset in 0..i64::MAX - 100,
        physical_offset in 0..i64::MAX - 100_000,
        store_timestamp_ms in any::<i64>(),
    ) -> Assigned {
        Assigned { queue_offset, physical_offset, store_timestamp_ms }
    }
}

fn any_transaction() -> impl Strategy<Value = Transaction> {
    prop::sample::select(vec![Transaction::None, Transaction::Prepared, Transaction::Commit, Transaction::Rollback])
}

/// The header's fields that are not borrowed; its topic is put in later.
fn any_header() -> impl Strategy<Value = RecordHeader<'static>> {
    (any::<i32>(), any::<i32>(), any::<i64>(), any_host(), any_host(), any::<i32>(), any::<i64>()).prop_map(
        |(queue_id, sys_flag, born_timestamp_ms, born_host, store_host, reconsume_times, prepared)| RecordHeader {
            topic: "",
            queue_id,
            sys_flag: SysFlag(sys_flag),
            born_timestamp_ms,
            born_host,
            store_host,
            reconsume_times,
            prepared_transaction_offset: prepared,
        },
    )
}

proptest! {
    #[test]
    fn properties(pairs in prop::collection::vec((any_text(), any_text()), 0..8)) {
        let mut properties = Properties::new();
        let mut expected: Vec<(Cow<'_, str>, Cow<'_, str>)> = Vec::new();
        for (name, value) in &pairs {
            properties.insert(name, value).unwrap();
            match expected.iter_mut().find(|pair| pair.0 == *name) {
                Some(pair) => pair.1 = value.into(),
                None => expected.push((name.into(), value.into())),
            }
        }
        prop_assert_eq!(properties.view().to_pairs(), &expected[..]);
        for (name, value) in &expected {
            prop_assert_eq!(properties.get(name), Some(&**value));
        }
        let length: usize = expected.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
        prop_assert_eq!(properties.as_str().len(), length);
    }

    #[test]
    fn any_bytes_are_properties(bytes in prop::collection::vec(prop_oneof![Just(1u8), Just(2), any::<u8>()], 0..80)) {
        let properties = PropertiesRef(&bytes);
        for (name, _) in properties.iter() {
            let last = properties.iter().filter(|pair| pair.0 == name).last().unwrap().1;
            if let Ok(name) = std::str::from_utf8(name) {
                prop_assert_eq!(properties.get(name), Some(last));
            }
        }
        prop_assert!(properties.to_pairs().len() <= properties.iter().count());
    }

    #[test]
    fn client_batch(messages in prop::collection::vec(any_message(), 0..6)) {
        let encoded = batch::encode(&messages).unwrap();
        prop_assert_eq!(encoded.len(), batch::encoded_len(&messages).unwrap());
        prop_assert_eq!(encoded.capacity(), encoded.len(), "one exact allocation");
        prop_assert_eq!(batch::count(&encoded), Ok(messages.len() as u32));
        let mut buffer = BytesMut::new();
        batch::encode_into(&messages, &mut buffer).unwrap();
        prop_assert_eq!(&buffer[..], &encoded[..]);
        let read: Vec<MessageRef<'_>> = batch::BatchReader::new(&encoded).collect::<Result<_, _>>().unwrap();
        let expected: Vec<MessageRef<'_>> = messages.iter().map(MessageRef::from).collect();
        prop_assert_eq!(read, expected);
        let shared = Bytes::from(encoded);
        for (read, message) in batch::read_shared(&shared).zip(&messages) {
            let read = read.unwrap();
            prop_assert_eq!(&read.body, &message.body);
            prop_assert!(shared.as_ptr_range().contains(&read.body.as_ptr()) || read.body.is_empty(), "no copy");
        }
    }

    #[test]
    fn damaged_batches_are_answered(
        messages in prop::collection::vec(any_message(), 0..4),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = batch::encode(&messages).unwrap();
        bytes.extend([0; 4]);
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        let read = batch::BatchReader::new(&bytes).count();
        prop_assert!(read <= bytes.len() / batch::MESSAGE_OVERHEAD + 1);
        let _ = batch::count(&bytes);
        let template = RecordTemplate::new(&RecordHeader { topic: "T", ..plain_header() }, &RecordOptions::default());
        let mut buffer = Vec::new();
        if template.unwrap().encode_batch_into(&bytes, &mut buffer).is_err() {
            prop_assert!(buffer.is_empty());
        }
    }

    #[test]
    fn stored_record(
        topic in any_topic(),
        header in any_header(),
        transaction in any_transaction(),
        message in any_message(),
        assigned in any_assigned(),
        append_property_crc in any::<bool>(),
    ) {
        let header = RecordHeader { topic: &topic, sys_flag: header.sys_flag.with_transaction(transaction), ..header };
        let options = RecordOptions { append_property_crc, ..RecordOptions::default() };
        let template = RecordTemplate::new(&header, &options).unwrap();
        let mut bytes = Vec::new();
        template.encode_into((&message).into(), &mut bytes).unwrap();
        prop_assert_eq!(record::assign(&mut bytes, assigned, append_property_crc), 1);
        let property_crc = if append_property_crc { PropertyCrc::Require } else { PropertyCrc::WherePresent };
        let outcome = check(&bytes, assigned.physical_offset, &CheckOptions { property_crc, ..CheckOptions::STRICT });
        let Outcome::Record(view) = outcome else { panic!("refused: {outcome:?}") };
        prop_assert_eq!(view.bytes().len(), bytes.len());
        prop_assert_eq!(view.magic(), if topic.len() > 127 { Magic::V2 } else { Magic::V1 });
        prop_assert_eq!(view.topic(), topic.as_bytes());
        prop_assert_eq!(view.queue_id(), header.queue_id);
        prop_assert_eq!(view.flag(), message.flag);
        let queued = matches!(transaction, Transaction::None | Transaction::Commit);
        prop_assert_eq!(view.queue_offset(), if queued { assigned.queue_offset } else { 0 });
        prop_assert_eq!(view.physical_offset(), assigned.physical_offset);
        prop_assert_eq!(view.store_timestamp_ms(), assigned.store_timestamp_ms);
        prop_assert_eq!(view.sys_flag(), header.sys_flag.with_hosts(header.born_host, header.store_host));
        prop_assert_eq!(view.born_timestamp_ms(), header.born_timestamp_ms);
        prop_assert_eq!(view.born_host(), header.born_host);
        prop_assert_eq!(view.store_host(), header.store_host);
        prop_assert_eq!(view.reconsume_times(), header.reconsume_times);
        prop_assert_eq!(view.prepared_transaction_offset(), header.prepared_transaction_offset);
        prop_assert_eq!(view.body(), &message.body[..]);
        let mut read = view.properties().to_pairs();
        if append_property_crc {
            prop_assert_eq!(read.pop().map(|pair| pair.0.into_owned()), Some("__CRC32#".to_owned()));
        } else {
            prop_assert_eq!(view.properties(), message.properties.view());
        }
        prop_assert_eq!(read, message.properties.view().to_pairs());
    }

    #[test]
    fn batch_to_stored_records(
        header in any_header(),
        messages in prop::collection::vec(any_message(), 0..5),
        assigned in any_assigned(),
        append_property_crc in any::<bool>(),
    ) {
        let header = RecordHeader { topic: "Topic", sys_flag: header.sys_flag.with_transaction(Transaction::None), ..header };
        let options = RecordOptions { append_property_crc, ..RecordOptions::default() };
        let template = RecordTemplate::new(&header, &options).unwrap();
        let encoded = batch::encode(&messages).unwrap();
        let mut together = Vec::new();
        template.encode_batch_into(&encoded, &mut together).unwrap();
        prop_assert_eq!(record::assign(&mut together, assigned, append_property_crc) as usize, messages.len());

        let one_by_one = RecordHeader { prepared_transaction_offset: 0, ..header };
        let template = RecordTemplate::new(&one_by_one, &options).unwrap();
        let mut apart = Vec::new();
        for (n, message) in messages.iter().enumerate() {
            let start = apart.len();
            template.encode_into(message.into(), &mut apart).unwrap();
            let assigned = Assigned {
                queue_offset: assigned.queue_offset + n as i64,
                physical_offset: assigned.physical_offset + start as i64,
                ..assigned
            };
            record::assign(&mut apart[start..], assigned, append_property_crc);
        }
        prop_assert_eq!(together, apart);
    }

    #[test]
    fn message_id(host in any_host(), physical_offset in any::<i64>(), text in "[0-9A-Fa-f]{0,60}|\\PC{0,60}") {
        let id = MessageId { store_host: host, physical_offset };
        prop_assert_eq!(id.to_string().parse(), Ok(id));
        if let Ok(id) = text.parse::<MessageId>() {
            prop_assert!(id.to_string() == text.to_uppercase() || text.len() == 56 && !id.store_host.is_v6());
        }
    }
}

fn plain_header() -> RecordHeader<'static> {
    RecordHeader {
        topic: "T",
        queue_id: 0,
        sys_flag: SysFlag(0),
        born_timestamp_ms: 0,
        born_host: Host::new("10.0.0.1".parse().unwrap(), 1),
        store_host: Host::new("10.0.0.2".parse().unwrap(), 1),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
    }
}
