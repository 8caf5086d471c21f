//! Encoding, checking and decoding, per message, each beside a limit measured in the same run: a copy of the same bytes,
//! the CRC of the same bodies, and a plain writer that knows nothing of limits or versions.

use std::hint::black_box;

use bytes::Bytes;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime};
use stormlog::codec::{
    Assigned, CheckOptions, Host, Message, Outcome, Properties, RecordHeader, RecordOptions, RecordTemplate,
    RecordView, SysFlag, batch, check, masked_crc, record,
};

/// (messages, bytes of body) of each batch.
const SHAPES: [(usize, usize); 5] = [(10, 128), (100, 128), (10, 1024), (100, 1024), (1, 2048)];
const TOPIC: &str = "BenchmarkTopic";

fn messages(count: usize, body_len: usize) -> Vec<Message> {
    let mut properties = Properties::new();
    properties.insert("TAGS", "TagA").expect("a plain property");
    properties.insert("WAIT", "true").expect("a plain property");
    let body = |n: usize| (0..body_len).map(|at| (at * 31 + n * 7) as u8).collect::<Bytes>();
    let message = |n| Message { topic: TOPIC.to_owned(), flag: 0, body: body(n), properties: properties.clone() };
    (0..count).map(message).collect()
}

fn template() -> RecordTemplate<'static> {
    let header = RecordHeader {
        topic: TOPIC,
        queue_id: 3,
        sys_flag: SysFlag(0),
        born_timestamp_ms: 1_700_000_000_000,
        born_host: Host::new([127, 0, 0, 1].into(), 40000),
        store_host: Host::new([10, 0, 0, 1].into(), 10911),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
    };
    RecordTemplate::new(&header, &RecordOptions::default()).expect("a plain header")
}

fn stored(messages: &[Message]) -> Vec<u8> {
    let mut records = Vec::new();
    for message in messages {
        template().encode_into(message.into(), &mut records).expect("a plain message");
    }
    record::assign(&mut records, Assigned { queue_offset: 0, physical_offset: 0, store_timestamp_ms: 1 }, false);
    records
}

/// The batch body by straight writes.
fn write_plainly(messages: &[Message], buffer: &mut [u8]) -> usize {
    let mut at = 0;
    for message in messages {
        let (body, properties) = (&message.body[..], message.properties.as_str().as_bytes());
        let (body_end, total) = (20 + body.len(), 22 + body.len() + properties.len());
        let out = &mut buffer[at..at + total];
        out[..4].copy_from_slice(&(total as i32).to_be_bytes());
        out[4..12].fill(0);
        out[12..16].copy_from_slice(&message.flag.to_be_bytes());
        out[16..20].copy_from_slice(&(body.len() as i32).to_be_bytes());
        out[20..body_end].copy_from_slice(body);
        out[body_end..body_end + 2].copy_from_slice(&(properties.len() as i16).to_be_bytes());
        out[body_end + 2..].copy_from_slice(properties);
        at += total;
    }
    at
}

fn each_shape(c: &mut Criterion, name: &str, bench: impl Fn(&mut BenchmarkGroup<'_, WallTime>, &str, &[Message])) {
    let mut group = c.benchmark_group(name);
    for (count, body_len) in SHAPES {
        group.throughput(Throughput::Elements(count as u64));
        bench(&mut group, &format!("{count}x{body_len}"), &messages(count, body_len));
    }
    group.finish();
}

fn client_encode(c: &mut Criterion) {
    each_shape(c, "client_encode", |group, shape, messages| {
        let len = batch::encoded_len(messages).expect("plain messages");
        let encoded = batch::encode(messages).expect("plain messages");
        let mut buffer = vec![0; len];
        group.bench_function(format!("{shape}/memcpy"), |b| {
            b.iter(|| black_box(&mut buffer[..]).copy_from_slice(&encoded))
        });
        group.bench_function(format!("{shape}/plain"), |b| {
            b.iter(|| write_plainly(black_box(messages), black_box(&mut buffer)));
        });
        group.bench_function(format!("{shape}/encode_into"), |b| {
            b.iter(|| {
                buffer.clear();
                batch::encode_into(black_box(messages), black_box(&mut buffer))
            });
        });
        group.bench_function(format!("{shape}/encode"), |b| b.iter(|| batch::encode(black_box(messages))));
    });
}

fn broker_batch_encode(c: &mut Criterion) {
    let template = template();
    each_shape(c, "broker_batch_encode", |group, shape, messages| {
        let encoded = batch::encode(messages).expect("plain messages");
        let records = stored(messages);
        let mut buffer = vec![0; records.len()];
        group.bench_function(format!("{shape}/memcpy_and_crc"), |b| {
            b.iter(|| {
                black_box(&mut buffer[..]).copy_from_slice(&records);
                black_box(messages).iter().map(|message| masked_crc(&message.body)).fold(0, |a, b| a ^ b)
            });
        });
        group.bench_function(format!("{shape}/encode_batch_into"), |b| {
            b.iter(|| {
                buffer.clear();
                template.encode_batch_into(black_box(&encoded), black_box(&mut buffer))
            });
        });
        group.bench_function(format!("{shape}/encode_into"), |b| {
            b.iter(|| {
                buffer.clear();
                for message in black_box(messages) {
                    template.encode_into(message.into(), black_box(&mut buffer)).expect("a plain message");
                }
            });
        });
        group.bench_function(format!("{shape}/assign"), |b| {
            let first = Assigned { queue_offset: 1, physical_offset: 2, store_timestamp_ms: 3 };
            b.iter(|| record::assign(black_box(&mut buffer), first, false));
        });
    });
}

/// Calls `found` with each record.
fn walk<'a>(records: &'a [u8], options: &CheckOptions, mut found: impl FnMut(&RecordView<'a>)) {
    let mut at = 0;
    while at < records.len() {
        let Outcome::Record(record) = check(&records[at..], at as i64, options) else { panic!("refused at {at}") };
        found(&record);
        at += record.bytes().len();
    }
}

fn validate(c: &mut Criterion) {
    let no_crc = CheckOptions { body_crc: false, ..CheckOptions::STRICT };
    each_shape(c, "validate", |group, shape, messages| {
        let records = stored(messages);
        group.bench_function(format!("{shape}/crc"), |b| {
            b.iter(|| black_box(messages).iter().map(|message| masked_crc(&message.body)).fold(0, |a, b| a ^ b));
        });
        group.bench_function(format!("{shape}/check"), |b| {
            b.iter(|| walk(black_box(&records), &CheckOptions::STRICT, |record| _ = black_box(record)));
        });
        group.bench_function(format!("{shape}/check_without_crc"), |b| {
            b.iter(|| walk(black_box(&records), &no_crc, |record| _ = black_box(record)));
        });
    });
}

fn decode(c: &mut Criterion) {
    each_shape(c, "decode", |group, shape, messages| {
        let records = stored(messages);
        let encoded = batch::encode(messages).expect("plain messages");
        group.bench_function(format!("{shape}/crc"), |b| {
            b.iter(|| black_box(messages).iter().map(|message| masked_crc(&message.body)).fold(0, |a, b| a ^ b));
        });
        group.bench_function(format!("{shape}/record"), |b| {
            b.iter(|| {
                walk(black_box(&records), &CheckOptions::STRICT, |record| {
                    black_box((record.topic(), record.body(), record.queue_id(), record.queue_offset()));
                    black_box((record.born_host(), record.store_host(), record.store_timestamp_ms(), record.flag()));
                    record.properties().iter().for_each(|pair| _ = black_box(pair));
                });
            });
        });
        group.bench_function(format!("{shape}/client_batch"), |b| {
            b.iter(|| {
                for message in batch::BatchReader::new(black_box(&encoded)) {
                    message.expect("a plain message").properties.iter().for_each(|pair| _ = black_box(pair));
                }
            });
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1))
        .without_plots();
    targets = client_encode, broker_batch_encode, validate, decode
}
criterion_main!(benches);
