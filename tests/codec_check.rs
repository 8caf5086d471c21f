//! The record check against the facts known of upstream's: a table of corrupt lengths, each rejection once, and a model
//! of upstream's check, step by step, on mutated records.

use proptest::prelude::*;
use stormlog::codec::check::{Field, PropertyCrc};
use stormlog::codec::{
    Assigned, CheckOptions, Host, MessageRef, Outcome, PropertiesRef, RecordHeader, RecordOptions, RecordTemplate,
    RecordView, Rejection, SysFlag, check, masked_crc, record,
};

const V1: [u8; 4] = [0xDA, 0xA3, 0x20, 0xA7];
const V2: [u8; 4] = [0xDA, 0xA3, 0x20, 0xAB];
const BLANK: [u8; 4] = [0xCB, 0xD4, 0x31, 0x94];

const BODY_LEN: usize = 84;

#[derive(Clone, Copy, Debug)]
struct Shape {
    topic: &'static str,
    sys_flag: i32,
    born_host: &'static str,
    store_host: &'static str,
    property_crc: bool,
}

const PLAIN: Shape =
    Shape { topic: "T", sys_flag: 0, born_host: "10.0.0.1", store_host: "10.0.0.2", property_crc: false };

fn encode(shape: Shape, body: &[u8], properties: &[u8]) -> Vec<u8> {
    let header = RecordHeader {
        topic: shape.topic,
        queue_id: 1,
        sys_flag: SysFlag(shape.sys_flag),
        born_timestamp_ms: 1,
        born_host: Host::new(shape.born_host.parse().unwrap(), 1),
        store_host: Host::new(shape.store_host.parse().unwrap(), 2),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
    };
    let options = RecordOptions { append_property_crc: shape.property_crc, ..RecordOptions::default() };
    let template = RecordTemplate::new(&header, &options).unwrap();
    let mut bytes = Vec::new();
    template.encode_into(MessageRef { flag: 0, body, properties: PropertiesRef(properties) }, &mut bytes).unwrap();
    let first = Assigned { queue_offset: 0, physical_offset: 0, store_timestamp_ms: 2 };
    record::assign(&mut bytes, first, shape.property_crc);
    bytes
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn rocketmq(bytes: &[u8]) -> (i32, bool) {
    check(bytes, 0, &CheckOptions::ROCKETMQ).to_rocketmq()
}

fn rejection(bytes: &[u8], options: &CheckOptions) -> Rejection {
    match check(bytes, 0, options) {
        Outcome::Rejected(rejection) => rejection,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn corrupt_total_sizes() {
    let good = encode(PLAIN, b"abc", b"");
    assert_eq!(good.len(), 95);
    for (total_size, magic, spare, expected) in [
        (-1, V1, 0, (-1, false)),
        (i32::MIN + 4, V1, 0, (-1, false)),
        (i32::MIN, V1, 0, (-1, false)),
        (i32::MIN + 3, V1, 0, (-1, false)),
        // Up to 5.4 these two were blanks; #10640 refuses a negative size before the magic is read.
        (-1, BLANK, 0, (-1, false)),
        (i32::MIN + 4, BLANK, 0, (-1, false)),
        (i32::MIN + 3, BLANK, 0, (-1, false)),
        (0, [0; 4], 0, (-1, false)),
        (0, V1, 0, (-1, false)),
        (0, BLANK, 0, (0, true)),
        (i32::MAX, V1, 0, (-1, false)),
        (96, V1, 0, (-1, false)),
        (96, BLANK, 0, (-1, false)),
        (96, V1, 1, (96, false)),
        (95, V1, 0, (95, true)),
        (95, V1, 7, (95, true)),
        (94, V1, 0, (94, false)),
        (90, V1, 0, (90, false)),
        (8, V1, 0, (8, false)),
        (7, V1, 0, (-1, false)),
        (4, V1, 0, (-1, false)),
        (7, BLANK, 0, (0, true)),
        (95, BLANK, 0, (0, true)),
    ] {
        let mut bytes = good.clone();
        bytes.extend(std::iter::repeat_n(0xAA, spare));
        put(&mut bytes, 0, &total_size.to_be_bytes());
        put(&mut bytes, 4, &magic);
        assert_eq!(rocketmq(&bytes), expected, "total size {total_size}, magic {magic:02x?}, {spare} spare bytes");
        assert_eq!(model(&bytes, &CheckOptions::ROCKETMQ), expected, "the model, total size {total_size}");
    }
    let mut bytes = encode(PLAIN, &[7; 40], b"");
    put(&mut bytes, 0, &39i32.to_be_bytes());
    assert_eq!(rocketmq(&bytes), (-1, false), "the body does not fit into the total size");
}

#[test]
fn accepted_oddities() {
    let mut negative_lengths = encode(PLAIN, b"", b"");
    put(&mut negative_lengths, BODY_LEN, &(-1i32).to_be_bytes());
    let properties_len = negative_lengths.len() - 2;
    put(&mut negative_lengths, properties_len, &(-1i16).to_be_bytes());
    put(&mut negative_lengths, 8, &[0xFF; 4]);
    let no_topic = encode(Shape { topic: "", ..PLAIN }, b"", b"");
    assert_eq!(no_topic.len(), 91);
    let bad_text = encode(PLAIN, b"b", b"TAGS\x01\xED\xA0\x80\x02");
    for bytes in [negative_lengths, no_topic, bad_text] {
        assert_eq!(rocketmq(&bytes), (bytes.len() as i32, true));
    }
}

#[test]
fn a_version_1_topic_of_more_than_127_bytes_cannot_be_read() {
    // Upstream writes this where a topic has few characters and many bytes.
    let long: &str = &"漢".repeat(60);
    let mut bytes = encode(PLAIN, b"b", b"");
    let topic_len = bytes.len() - 4;
    bytes.splice(topic_len.., [&[180], long.as_bytes(), &[0, 0]].concat());
    let total_size = bytes.len() as i32;
    put(&mut bytes, 0, &total_size.to_be_bytes());
    assert_eq!(rejection(&bytes, &CheckOptions::ROCKETMQ), Rejection::NegativeTopicLen { len: -76 });
    assert_eq!(rocketmq(&bytes), (-1, false));
}

#[test]
fn every_rejection_is_named() {
    use Rejection::{
        BeyondSize, BlankLen, BodyCrc, Cut, DelayLevel, DupInfo, InnerBatch, NegativeSize, NegativeTopicLen,
        PhysicalOffset, PropertyCrcMissing, SizeBeyondEnd, SizeMismatch, TooShort, UnknownMagic,
    };
    const PLAIN_CHECK: CheckOptions = CheckOptions::ROCKETMQ;
    let require = CheckOptions { property_crc: PropertyCrc::Require, ..PLAIN_CHECK };
    let where_present = CheckOptions { property_crc: PropertyCrc::WherePresent, ..PLAIN_CHECK };
    let dup_info = CheckOptions { dup_info: true, ..PLAIN_CHECK };
    let scheduled = Shape { topic: "SCHEDULE_TOPIC_XXXX", ..PLAIN };
    let with_crc = Shape { property_crc: true, ..PLAIN };
    let good = encode(PLAIN, b"body", b"a\x01b\x02");
    let len = good.len();
    let edit = |at: usize, value: &[u8]| {
        let mut bytes = good.clone();
        put(&mut bytes, at, value);
        bytes
    };
    let topic_len = 88 + 4;
    let properties_len = topic_len + 2;
    let huge = i32::MAX;
    let cases = [
        (good[..4].to_vec(), PLAIN_CHECK, TooShort { remaining: 4 }),
        (edit(0, &(-9i32).to_be_bytes()), PLAIN_CHECK, NegativeSize { total_size: -9 }),
        (edit(0, &huge.to_be_bytes()), PLAIN_CHECK, SizeBeyondEnd { total_size: huge, remaining: len as u64 }),
        (edit(4, &[0; 4]), PLAIN_CHECK, UnknownMagic { magic: 0 }),
        (vec![0, 0, 0, 4, 0xDA, 0xA3], PLAIN_CHECK, Cut { field: Field::Magic, needed: 4, remaining: 2 }),
        (
            [&[0, 0, 0, 9], &V1[..], &[0; 2]].concat(),
            PLAIN_CHECK,
            Cut { field: Field::Header, needed: 4, remaining: 2 },
        ),
        (edit(0, &7i32.to_be_bytes()), PLAIN_CHECK, BeyondSize { field: Field::BornHost, len: 8, total_size: 7 }),
        (
            edit(BODY_LEN, &huge.to_be_bytes()),
            PLAIN_CHECK,
            BeyondSize { field: Field::Body, len: huge, total_size: len as i32 },
        ),
        (
            edit(BODY_LEN, &50i32.to_be_bytes()),
            PLAIN_CHECK,
            Cut { field: Field::Body, needed: 50, remaining: len as u64 - 88 },
        ),
        (edit(88, b"B"), PLAIN_CHECK, BodyCrc { stored: masked_crc(b"body"), computed: masked_crc(b"Body") }),
        (edit(topic_len, &[0xB4]), PLAIN_CHECK, NegativeTopicLen { len: -76 }),
        (edit(topic_len, &[0x7F]), PLAIN_CHECK, BeyondSize { field: Field::Topic, len: 127, total_size: len as i32 }),
        (
            edit(properties_len, &99i16.to_be_bytes()),
            PLAIN_CHECK,
            Cut { field: Field::Properties, needed: 99, remaining: 4 },
        ),
        (
            edit(properties_len, &3i16.to_be_bytes()),
            PLAIN_CHECK,
            SizeMismatch { total_size: len as i32, computed: len as i64 - 1 },
        ),
        (encode(scheduled, b"b", b"DELAY\x01 3\x02"), PLAIN_CHECK, DelayLevel),
        (encode(PLAIN, b"b", b"INNER_NUM\x0132768\x02INNER_BASE\x010\x02"), PLAIN_CHECK, InnerBatch),
        (encode(PLAIN, b"b", b"DUP_INFO\x01a_\x02"), dup_info, DupInfo),
        (good.clone(), require, PropertyCrcMissing),
    ];
    for (bytes, options, expected) in cases {
        assert_eq!(rejection(&bytes, &options), expected);
        assert!(!expected.to_string().is_empty());
        let size = if let SizeMismatch { total_size, .. } = expected { total_size } else { -1 };
        assert_eq!(check(&bytes, 0, &options).to_rocketmq(), (size, false), "{expected}");
    }

    let mut damaged = encode(with_crc, b"b", b"a\x01b\x02");
    damaged[20] ^= 1;
    for options in [require, where_present] {
        assert!(
            matches!(rejection(&damaged, &options), Rejection::PropertyCrc { .. }),
            "a byte that only the record's CRC covers"
        );
    }
    assert!(matches!(check(&damaged, 0, &PLAIN_CHECK), Outcome::Record(_)));
    assert!(matches!(check(&good, 0, &where_present), Outcome::Record(_)), "R03: records from before the option");

    let strict = check(&good, 3, &CheckOptions::STRICT);
    assert_eq!(strict, Outcome::Rejected(PhysicalOffset { stored: 0, at: 3, total_size: len as i32 }));
    assert_eq!(strict.to_rocketmq(), (len as i32, true), "upstream believes the record");

    let mut blank = record::blank(9, stormlog::planted::Planted::NONE).to_vec();
    let strict = check(&blank, 3, &CheckOptions::STRICT);
    assert_eq!(strict, Outcome::Rejected(SizeBeyondEnd { total_size: 9, remaining: 8 }));
    blank.extend([0; 4]);
    let strict = check(&blank, 3, &CheckOptions::STRICT);
    assert_eq!(strict, Outcome::Rejected(BlankLen { stated: 9, remaining: 12 }));
    assert_eq!(strict.to_rocketmq(), (0, true));
}

#[test]
fn properties_that_must_be_numbers() {
    let scheduled = Shape { topic: "SCHEDULE_TOPIC_XXXX", ..PLAIN };
    for (shape, properties, accepted) in [
        (scheduled, &b"DELAY\x013\x02"[..], true),
        (scheduled, b"DELAY\x01+3\x02", true),
        (scheduled, b"DELAY\x01-3\x02", true),
        (scheduled, b"DELAY\x01x\x02DELAY\x013\x02", true),
        (scheduled, b"DELAY\x012147483648\x02", false),
        (PLAIN, b"DELAY\x01x\x02", true),
        (PLAIN, b"INNER_NUM\x01x\x02", true),
        (PLAIN, b"INNER_NUM\x0132767\x02INNER_BASE\x019223372036854775807\x02", true),
        (PLAIN, b"INNER_BASE\x019223372036854775808\x02INNER_NUM\x011\x02", false),
    ] {
        let bytes = encode(shape, b"b", properties);
        assert_eq!(rocketmq(&bytes).1, accepted, "{}", properties.escape_ascii());
    }
    let options = CheckOptions { dup_info: true, ..CheckOptions::ROCKETMQ };
    for (properties, accepted) in [
        (&b""[..], true),
        (b"a\x01b\x02", false),
        (b"DUP_INFO\x01a_b\x02", true),
        (b"DUP_INFO\x01a_b__\x02", true),
        (b"DUP_INFO\x01_b\x02", true),
        (b"DUP_INFO\x01a_b_c\x02", false),
        (b"DUP_INFO\x01__\x02", false),
        (b"DUP_INFO\x01ab\x02", false),
    ] {
        let bytes = encode(PLAIN, b"b", properties);
        let outcome = check(&bytes, 0, &options);
        assert_eq!(outcome.to_rocketmq().1, accepted, "{}", properties.escape_ascii());
        assert_eq!(outcome.to_rocketmq(), model(&bytes, &options), "{}", properties.escape_ascii());
    }
}

#[test]
fn r02_what_a_lost_tail_shows() {
    let properties = b"TAGS\x01TagA\x02KEYS\x01k1\x02";
    for property_crc in [false, true] {
        let good = encode(Shape { property_crc, ..PLAIN }, b"body", properties);
        let stored_len = properties.len() + if property_crc { 20 } else { 0 };
        let options = CheckOptions {
            property_crc: if property_crc { PropertyCrc::Require } else { PropertyCrc::Ignore },
            ..CheckOptions::STRICT
        };
        for lost in 1..=stored_len + 2 {
            let mut bytes = good.clone();
            let end = bytes.len();
            bytes[end - lost..].fill(0);
            let refused = matches!(check(&bytes, 0, &options), Outcome::Rejected(_));
            // Without its own CRC a record shows the loss only once the length of its properties is gone.
            assert_eq!(refused, property_crc || lost > stored_len, "{lost} bytes lost, CRC {property_crc}");
        }
    }
}

#[test]
fn r04_a_record_of_an_earlier_life_is_refused() {
    let base = 1 << 20;
    let mut good = encode(PLAIN, b"body", b"");
    let place = |bytes: &mut [u8], physical_offset| {
        record::assign(bytes, Assigned { queue_offset: 0, physical_offset, store_timestamp_ms: 2 }, false);
    };
    place(&mut good, base);
    assert!(matches!(check(&good, base, &CheckOptions::STRICT), Outcome::Record(_)));
    for stale in [0, base + 1, base - 1, i64::MIN] {
        place(&mut good, stale);
        let outcome = check(&good, base, &CheckOptions::STRICT);
        assert!(
            matches!(outcome, Outcome::Rejected(Rejection::PhysicalOffset { stored, at, .. }) if stored == stale && at == base)
        );
        assert_eq!(outcome.to_rocketmq(), (good.len() as i32, true));
    }
    let blank = record::blank(8, stormlog::planted::Planted::NONE);
    assert_eq!(check(&blank, base, &CheckOptions::STRICT), Outcome::Blank { stated_len: 8 });
}

/// Upstream's check, step by step, by a thread that has not checked anything before.
fn model(bytes: &[u8], options: &CheckOptions) -> (i32, bool) {
    try_model(bytes, options).unwrap_or((-1, false))
}

fn try_model(bytes: &[u8], options: &CheckOptions) -> Option<(i32, bool)> {
    struct Buffer<'a>(&'a [u8], usize);
    impl<'a> Buffer<'a> {
        fn take(&mut self, n: usize) -> Option<&'a [u8]> {
            let taken = self.0.get(self.1..)?.get(..n)?;
            self.1 += n;
            Some(taken)
        }
        fn int(&mut self) -> Option<i32> {
            Some(i32::from_be_bytes(self.take(4)?.try_into().unwrap()))
        }
        fn short(&mut self) -> Option<i16> {
            Some(i16::from_be_bytes(self.take(2)?.try_into().unwrap()))
        }
    }
    if bytes.len() <= 4 {
        return None;
    }
    let mut buffer = Buffer(bytes, 0);
    let total = buffer.int()?;
    if total < 0 || ((bytes.len() - 4) as i64) < i64::from(total) - 4 {
        return None;
    }
    let magic = buffer.take(4)?;
    if magic == BLANK {
        return Some((0, true));
    }
    if magic != V1 && magic != V2 {
        return None;
    }
    let scratch = |n: i32| (0..=total).contains(&n).then_some(n as usize);
    let body_crc = buffer.int()?;
    buffer.take(4 + 4 + 8 + 8)?;
    let sys_flag = buffer.int()?;
    buffer.take(8)?;
    let (born, store) = (if sys_flag & 0x10 == 0 { 8 } else { 20 }, if sys_flag & 0x20 == 0 { 8 } else { 20 });
    buffer.take(scratch(born)?)?;
    buffer.take(8)?;
    buffer.take(scratch(store)?)?;
    buffer.take(4 + 8)?;
    let body_len = buffer.int()?;
    let force = options.property_crc == PropertyCrc::Require;
    if body_len > 0 {
        let body = buffer.take(scratch(body_len)?)?;
        if options.body_crc && !force && (crc32fast::hash(body) & 0x7FFF_FFFF) as i32 != body_crc {
            return None;
        }
    }
    let topic_len = if magic == V1 { i32::from(buffer.take(1)?[0] as i8) } else { i32::from(buffer.short()?) };
    let topic = buffer.take(scratch(topic_len)?)?;
    let properties_len = buffer.short()?;
    let mut map: Vec<(String, String)> = Vec::new();
    if properties_len > 0 {
        let text = String::from_utf8_lossy(buffer.take(scratch(i32::from(properties_len))?)?).into_owned();
        for segment in text.split('\u{2}') {
            if let Some((name, value)) = segment.split_once('\u{1}')
                && !name.is_empty()
                && !value.is_empty()
            {
                map.retain(|pair| pair.0 != name);
                map.push((name.to_owned(), value.to_owned()));
            }
        }
    }
    let get = |name: &str| map.iter().find(|pair| pair.0 == name).map(|pair| pair.1.as_str());
    if properties_len > 0 && options.dup_info {
        let mut parts: Vec<&str> = get("DUP_INFO")?.split('_').collect();
        while parts.last() == Some(&"") {
            parts.pop();
        }
        if parts.len() != 2 {
            return None;
        }
    }
    if topic == b"SCHEDULE_TOPIC_XXXX"
        && let Some(delay) = get("DELAY")
    {
        delay.parse::<i32>().ok()?;
    }
    if force {
        let expected = get("__CRC32#")?
            .encode_utf16()
            .collect::<Vec<u16>>()
            .into_iter()
            .rev()
            .fold(0i32, |crc, unit| crc.wrapping_mul(10).wrapping_add(i32::from(unit) - 48));
        let start = buffer.1.checked_sub(total as usize)?;
        let covered = bytes.get(start..(start + total as usize).checked_sub(20)?)?;
        if expected < 0 || (crc32fast::hash(covered) & 0x7FFF_FFFF) as i32 != expected {
            return None;
        }
    }
    let topic_width = if magic == V1 { 1 } else { 2 };
    let fields = 4 * 8 + 8 * 5 + born + store + body_len.max(0) + topic_width + topic_len + 2;
    let fields = fields + i32::from(properties_len.max(0));
    if fields != total {
        return Some((total, false));
    }
    if let (Some(num), Some(base)) = (get("INNER_NUM"), get("INNER_BASE")) {
        base.parse::<i64>().ok()?;
        num.parse::<i16>().ok()?;
    }
    Some((total, true))
}

fn any_shape() -> impl Strategy<Value = Shape> {
    let long = Box::leak("t".repeat(200).into_boxed_str()) as &'static str;
    (
        prop::sample::select(vec!["T", "", "SCHEDULE_TOPIC_XXXX", long]),
        0..0x100i32,
        prop::sample::select(vec!["10.0.0.1", "2001:db8::1"]),
        prop::sample::select(vec!["10.0.0.2", "2001:db8::2"]),
        any::<bool>(),
    )
        .prop_map(|(topic, sys_flag, born_host, store_host, property_crc)| Shape {
            topic,
            sys_flag,
            born_host,
            store_host,
            property_crc,
        })
}

fn any_properties() -> impl Strategy<Value = Vec<u8>> {
    let name = prop::sample::select(vec!["TAGS", "KEYS", "DELAY", "DUP_INFO", "INNER_NUM", "INNER_BASE", "__CRC32#"]);
    let pair = (name, prop::sample::select(vec!["1", "a_b", "x", "0000000000"]));
    prop_oneof![
        prop::collection::vec(pair, 0..4).prop_map(|pairs| {
            pairs.iter().flat_map(|(name, value)| format!("{name}\u{1}{value}\u{2}").into_bytes()).collect()
        }),
        prop::collection::vec(prop_oneof![Just(1u8), Just(2), Just(b'I'), any::<u8>()], 0..60),
    ]
}

fn any_options() -> impl Strategy<Value = CheckOptions> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(body_crc, require, dup_info)| CheckOptions {
        // Upstream has one switch for both CRCs.
        body_crc: body_crc || require,
        property_crc: if require { PropertyCrc::Require } else { PropertyCrc::Ignore },
        dup_info,
        ..CheckOptions::ROCKETMQ
    })
}

proptest! {
    #[test]
    fn the_check_answers_as_the_model_does(
        shape in any_shape(),
        body in prop::collection::vec(any::<u8>(), 0..80),
        properties in any_properties(),
        options in any_options(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        word in prop::option::of((
            prop::sample::select(vec![0usize, 4, 36, 84, 96, 108]),
            prop::sample::select(vec![-1i32, 0, 1, 7, 8, 90, 91, 95, 127, 200, i32::MIN, i32::MAX, 0xCBD4_3194_u32 as i32]),
        )),
        extra in 0..40usize,
        cut in any::<prop::sample::Index>(),
        whole in any::<bool>(),
    ) {
        let mut bytes = encode(shape, &body, &properties);
        bytes.extend(std::iter::repeat_n(0x33, extra));
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some((at, value)) = word.filter(|word| word.0 + 4 <= bytes.len()) {
            put(&mut bytes, at, &value.to_be_bytes());
        }
        if !whole {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        let outcome = check(&bytes, 0, &options);
        prop_assert_eq!(outcome.to_rocketmq(), model(&bytes, &options), "{:?}", outcome);
        let strict = check(&bytes, 0, &CheckOptions { property_crc: PropertyCrc::WherePresent, ..CheckOptions::STRICT });
        if let Outcome::Record(view) = strict {
            prop_assert_eq!(RecordView::parse(&bytes), Ok(view));
            prop_assert!(!view.to_string().is_empty());
        }
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300), options in any_options()) {
        prop_assert_eq!(check(&bytes, 0, &options).to_rocketmq(), model(&bytes, &options));
        let _ = RecordView::parse(&bytes);
    }
}
