//! Speed of the simulated disk at its face, with latency draws and the record on.
//!
//! Design targets on one core: 5 000 seeds/s of 1 000 appends of 158 bytes with a sync every 10 and a read back; 2 million
//! operations/s, flat from 10 to 10 000 unsynced writes. Beside it stand two floors: the draws and record entries that such
//! a run makes, without a disk; and the record entries alone, of which the target is 5 %.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use stormlog::env::OpenOptions;
use stormlog_sim::choices::{Actor, Family, Overrides};
use stormlog_sim::context::Context;
use stormlog_sim::disk::{Disk, DiskProfile, Handle, Owner, SyncKind};
use stormlog_sim::record::Op;

const RECORD: [u8; 158] = [7; 158];
const APPENDS: u64 = 1000;
const APPENDS_PER_SYNC: u64 = 10;
const READ: usize = 4096;
const LATENCY_NS: u64 = 100_000;

fn new_context(seed: u64) -> Context {
    Context::new(seed, Overrides::new(), false, false)
}

fn open(disk: &mut Disk, ctx: &mut Context) -> Handle {
    disk.open(ctx, Owner(1), "log", OpenOptions::CREATE).expect("an empty disk")
}

fn sync(disk: &mut Disk, ctx: &mut Context, file: Handle) {
    let ticket = disk.sync_begin(ctx, file, SyncKind::Data).expect("an open file");
    disk.sync_end(ctx, ticket).expect("no faults");
}

/// One seed: appends, syncs, and a read back. Gives the number of operations, and of events in the record.
fn run_seed(seed: u64) -> (u64, u64) {
    let mut ctx = new_context(seed);
    let mut disk = Disk::new(DiskProfile::default());
    let latency = ctx.stream(Family::Latency, Actor::RUN);
    let file = open(&mut disk, &mut ctx);
    let mut operations = 1;
    for n in 0..APPENDS {
        disk.write_at(&mut ctx, file, &RECORD, n * RECORD.len() as u64).expect("no faults");
        ctx.now_ns += ctx.below(latency, LATENCY_NS);
        if (n + 1) % APPENDS_PER_SYNC == 0 {
            sync(&mut disk, &mut ctx, file);
            ctx.now_ns += ctx.below(latency, LATENCY_NS);
            operations += 1;
        }
        operations += 1;
    }
    let mut bytes = [0; READ];
    let mut offset = 0;
    loop {
        let count = disk.read_at(&mut ctx, file, &mut bytes, offset).expect("no faults");
        ctx.now_ns += ctx.below(latency, LATENCY_NS);
        operations += 1;
        if count == 0 {
            return (operations, ctx.recorder.count());
        }
        offset += count as u64;
    }
}

/// The draws and record entries of a seed alone.
fn run_floor(seed: u64, operations: u64) -> u64 {
    const FLOOR: Op = Op::new("floor");
    let mut ctx = new_context(seed);
    let latency = ctx.stream(Family::Latency, Actor::RUN);
    for n in 0..operations {
        ctx.record(Actor::RUN, FLOOR, [n, 158], n);
        ctx.now_ns += ctx.below(latency, LATENCY_NS);
    }
    ctx.now_ns
}

/// The record entries of a seed alone: the digest.
fn run_record(events: u64) -> u64 {
    const FLOOR: Op = Op::new("floor");
    let mut ctx = new_context(0);
    for n in 0..events {
        ctx.record(Actor::RUN, FLOOR, [n, 158], n);
    }
    ctx.recorder.digest().0
}

fn seeds(c: &mut Criterion) {
    let (operations, events) = run_seed(0);
    let mut group = c.benchmark_group("disk/seed");
    group.throughput(Throughput::Elements(operations));
    let mut seed = 0;
    group.bench_function("run", |b| {
        b.iter(|| {
            seed += 1;
            run_seed(seed)
        })
    });
    group.bench_function("floor", |b| {
        b.iter(|| {
            seed += 1;
            run_floor(seed, operations)
        })
    });
    group.bench_function("record", |b| b.iter(|| run_record(events)));
    group.finish();
}

/// Overwrites in a synced file of 1 MiB, so many of them unsynced at a time.
fn unsynced(c: &mut Criterion) {
    const LEN: u64 = 1 << 20;
    let mut group = c.benchmark_group("disk/write");
    for count in [10, 100, 1000, 10_000] {
        let mut ctx = new_context(1);
        let mut disk = Disk::new(DiskProfile::default());
        let file = open(&mut disk, &mut ctx);
        disk.zero_range(&mut ctx, file, 0, LEN).expect("no faults");
        group.throughput(Throughput::Elements(count + 1));
        group.bench_with_input(BenchmarkId::new("unsynced", count), &count, |b, count| {
            b.iter(|| {
                for n in 0..*count {
                    let offset = n * RECORD.len() as u64 % (LEN - RECORD.len() as u64);
                    disk.write_at(&mut ctx, file, &RECORD, offset).expect("no faults");
                }
                sync(&mut disk, &mut ctx, file);
            })
        });
    }
    group.finish();
}

/// Crash images of a store of 1 MiB with some unsynced writes.
fn images(c: &mut Criterion) {
    let mut group = c.benchmark_group("disk/crash-image");
    for count in [1, 10, 100, 1000] {
        let mut ctx = new_context(1);
        let mut disk = Disk::new(DiskProfile::default());
        let file = open(&mut disk, &mut ctx);
        disk.write_at(&mut ctx, file, &vec![1; 1 << 20], 0).expect("no faults");
        sync(&mut disk, &mut ctx, file);
        for n in 0..count {
            disk.write_at(&mut ctx, file, &RECORD, n * RECORD.len() as u64).expect("no faults");
        }
        group.throughput(Throughput::Elements(1));
        let mut n = 0;
        group.bench_with_input(BenchmarkId::new("unsynced", count), &count, |b, _| {
            b.iter(|| {
                n += 1;
                // A run makes few thousand images; a fresh context keeps its streams as few.
                if n % 1000 == 0 {
                    ctx = new_context(n);
                }
                disk.crash_image(&mut ctx, Actor::RUN.child("image", n))
            })
        });
    }
    group.finish();
}

criterion_group!(benches, seeds, unsynced, images);
criterion_main!(benches);
