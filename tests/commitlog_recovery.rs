//! Recovery of damaged directories by both policies: what RocketMQ was seen to do with each, and what the safe policy does
//! instead.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test damages files behind the store's back")]

mod store;

use std::fs;
use std::os::unix::fs::FileExt;

use store::{Copy, Original, SEGMENT, Store, bodies, compatible, header, message, options, try_open};
use stormlog::codec::Rejection;
use stormlog::commitlog::{CommitLogOptions, Flaw, Hole, OpenError, Proof, RecoveryReport, RocketMqView};
use stormlog::log::Level;

const BODY_AT: u64 = 88;

fn holes(report: &RecoveryReport) -> Vec<(u64, u64)> {
    report.holes.iter().map(|hole| (hole.begin, hole.end)).collect()
}

/// Opens, checks that a second recovery finds the same, and that the store takes messages at the reported end.
fn open_twice(copy: &Copy, options: &CommitLogOptions) -> (Store, RecoveryReport) {
    let (store, first) = copy.open(options);
    let served = bodies(&store);
    drop(store);
    let (store, second) = copy.open(options);
    assert_eq!(bodies(&store), served, "{first}{second}");
    assert_eq!((second.end, &second.holes), (first.end, &first.holes), "{first}{second}");
    assert_eq!(second.cut, None, "{second}");
    let appended = store.append(&header("New"), message(b"new"), Level::Durable).unwrap();
    store.wait(&appended).unwrap();
    drop(store);
    let (store, third) = copy.open(options);
    let mut wanted = served;
    wanted.push(b"new".to_vec());
    assert_eq!(bodies(&store), wanted, "{third}");
    drop(store);
    (copy.open(options).0, first)
}

fn served(store: &Store) -> Vec<Vec<u8>> {
    let mut served = bodies(store);
    assert_eq!(served.pop().as_deref(), Some(&b"new"[..]));
    served
}

#[test]
fn an_undamaged_store_is_whole_however_it_was_stopped() {
    let original = Original::make();
    for (copy, was_closed, is_ours) in
        [(original.copy(), true, true), (original.crashed(), false, true), (original.foreign(), false, false)]
    {
        let (store, report) = open_twice(&copy, &options());
        assert_eq!((report.was_closed, report.is_ours), (was_closed, is_ours));
        assert_eq!((report.end, report.records), (original.end, 100));
        assert_eq!(report.rocketmq, None);
        assert_eq!(served(&store), Original::bodies(0..100));
    }
    for copy in [original.copy(), original.crashed(), original.foreign()] {
        let (store, report) = open_twice(&copy, &compatible());
        assert_eq!((report.end, report.records), (original.end, 100));
        assert_eq!(served(&store), Original::bodies(0..100));
    }
}

#[test]
fn damage_in_the_last_segment() {
    let original = Original::make();
    let at = original.positions[95];
    for offset in [0, 4, BODY_AT] {
        for copy in [original.copy(), original.crashed()] {
            copy.flip(at + offset);
            let before = copy.read(at, 4 * original.len as usize);
            let (store, report) = copy.open(&compatible());
            assert_eq!((report.end, report.records), (at, 95));
            assert_eq!(bodies(&store), Original::bodies(0..95));
            drop(store);
            assert_eq!(copy.read(at, before.len()), before, "RocketMQ leaves what is behind the end");
        }
        for copy in [original.copy(), original.crashed()] {
            copy.flip(at + offset);
            let (store, report) = open_twice(&copy, &options());
            assert_eq!(holes(&report), [(at, at + original.len)], "{report}");
            assert_eq!(report.rocketmq, Some(RocketMqView { end: at, deleted_segments: 0 }));
            assert_eq!(served(&store), Original::bodies((0..95).chain(96..100)));
        }
    }
}

#[test]
fn damage_in_the_first_segment_costs_rocketmq_all_that_is_behind_it() {
    let original = Original::make();
    let at = original.positions[10];
    let copy = original.crashed();
    copy.flip(at + BODY_AT);
    let (store, report) = copy.open(&compatible());
    assert_eq!((report.end, report.records, report.removed.len()), (at, 10, 2));
    assert_eq!(bodies(&store), Original::bodies(0..10));

    let copy = original.crashed();
    copy.flip(at + BODY_AT);
    let (store, report) = open_twice(&copy, &options());
    assert!(matches!(
        &report.holes[..],
        [Hole { flaw: Flaw::Rejected(Rejection::BodyCrc { .. }), unproved_records: 0, .. }]
    ));
    assert_eq!(holes(&report), [(at, at + original.len)], "{report}");
    assert_eq!(report.rocketmq, Some(RocketMqView { end: at, deleted_segments: 2 }));
    assert_eq!(served(&store), Original::bodies((0..10).chain(11..100)));
}

#[test]
fn each_of_several_damaged_records_costs_itself_alone() {
    let original = Original::make();
    let copy = original.crashed();
    for n in [10, 11, 50, 80] {
        copy.flip(original.positions[n] + BODY_AT);
    }
    let (store, report) = open_twice(&copy, &options());
    assert_eq!(holes(&report).len(), 4, "{report}");
    assert_eq!(served(&store), Original::bodies((0..100).filter(|n| ![10, 11, 50, 80].contains(n))));
}

#[test]
fn what_no_chain_vouches_for_is_counted_and_not_served() {
    let original = Original::make();
    let copy = original.crashed();
    copy.flip(original.positions[10] + 4);
    copy.flip(original.positions[20] + 4);
    let (store, report) = open_twice(&copy, &options());
    assert_eq!(holes(&report), [(original.positions[10], original.positions[21])], "{report}");
    assert_eq!(report.holes[0].unproved_records, 9);
    assert_eq!(served(&store), Original::bodies((0..10).chain(21..100)));
}

#[test]
fn a_flipped_byte_costs_at_most_its_record() {
    let original = Original::make();
    let at = original.positions[10];
    for offset in 0..original.len {
        let copy = original.crashed();
        copy.flip(at + offset);
        let (store, report) = copy.open(&options());
        let served = bodies(&store);
        match &holes(&report)[..] {
            [] => assert_eq!(served, Original::bodies(0..100), "offset {offset}: not covered by the body's CRC"),
            found => {
                assert_eq!(found, [(at, at + original.len)], "offset {offset}: {report}");
                assert_eq!(served, Original::bodies((0..10).chain(11..100)), "offset {offset}");
            }
        }
    }
}

#[test]
fn a_body_that_holds_a_record_forges_none() {
    let original = Original::make();
    let copy = original.copy();
    let (store, _) = copy.open(&options());
    // A record for the place where it will stand inside of the body, with room behind it that breaks the chain.
    let forged_at = store.end() + BODY_AT;
    let mut body = copy.read(original.positions[1], original.len as usize);
    body[28..36].copy_from_slice(&forged_at.to_be_bytes());
    body.extend_from_slice(b"behind");
    let enclosing = store.append(&header("T"), message(&body), Level::Durable).unwrap();
    let next = store.append(&header("T"), message(b"next"), Level::Durable).unwrap();
    store.wait(&next).unwrap();
    store.close().unwrap();
    copy.flip(enclosing.receipt.position + 4);
    let (store, report) = open_twice(&copy, &options());
    assert_eq!(holes(&report), [(enclosing.receipt.position, enclosing.receipt.end)]);
    assert_eq!(report.holes[0].unproved_records, 1);
    let mut wanted = Original::bodies(0..100);
    wanted.push(b"next".to_vec());
    assert_eq!(served(&store), wanted);
}

#[test]
fn a_missing_last_segment() {
    let original = Original::make();
    let copy = original.copy();
    fs::remove_file(copy.segment(2 * SEGMENT)).unwrap();
    let count = original.positions.partition_point(|at| *at < 2 * SEGMENT);
    let (store, report) = copy.open(&compatible());
    assert_eq!(report.end, original.positions[count - 1] + original.len, "the blank is used again");
    assert_eq!(bodies(&store), Original::bodies(0..count));

    let copy = original.copy();
    fs::remove_file(copy.segment(2 * SEGMENT)).unwrap();
    let (store, report) = open_twice(&copy, &options());
    assert_eq!(holes(&report), [(2 * SEGMENT, 3 * SEGMENT)], "{report}");
    assert_eq!(report.holes[0].flaw, Flaw::MissingSegment);
    assert_eq!(served(&store), Original::bodies(0..count));
}

#[test]
fn a_missing_segment_in_the_middle() {
    let original = Original::make();
    let copy = original.crashed();
    fs::remove_file(copy.segment(SEGMENT)).unwrap();
    let (store, report) = open_twice(&copy, &options());
    assert_eq!(holes(&report), [(SEGMENT, 2 * SEGMENT)], "{report}");
    let is_left = |n: &usize| original.positions[*n] / SEGMENT != 1;
    assert_eq!(served(&store), Original::bodies((0..100).filter(is_left)));
}

#[test]
fn a_missing_first_segment() {
    let original = Original::make();
    for copy in [original.copy(), original.crashed()] {
        fs::remove_file(copy.segment(0)).unwrap();
        let (store, report) = open_twice(&copy, &options());
        assert_eq!(holes(&report), [(0, SEGMENT)], "{report}");
        let count = original.positions.partition_point(|at| *at < SEGMENT);
        assert_eq!(served(&store), Original::bodies(count..100));
    }
}

#[test]
fn a_store_that_has_lost_all_its_segments() {
    let original = Original::make();
    let copy = original.copy();
    for base in [0, SEGMENT, 2 * SEGMENT] {
        fs::remove_file(copy.segment(base)).unwrap();
    }
    let (store, report) = open_twice(&copy, &options());
    assert_eq!(holes(&report), [(0, 3 * SEGMENT)], "{report}");
    assert!(served(&store).is_empty());
}

#[test]
fn a_crash_is_seen_without_its_marker() {
    let original = Original::make();
    let copy = original.copy();
    drop(copy.open(&options()));
    fs::remove_file(copy.path().join("abort")).unwrap();
    copy.write(original.end + 200, b"behind the end");
    let (_, report) = open_twice(&copy, &options());
    assert!(!report.was_closed && report.cut.is_some(), "{report}");
}

#[test]
fn files_that_are_left_over() {
    let original = Original::make();
    for options in [options(), compatible()] {
        let copy = original.crashed();
        fs::write(copy.segment(3 * SEGMENT), vec![0; SEGMENT as usize]).unwrap();
        fs::write(copy.segment(4 * SEGMENT), "").unwrap();
        let (store, report) = copy.open(&options);
        assert_eq!(report.removed.len(), 1, "{report}");
        assert!(!copy.segment(3 * SEGMENT).exists() && !copy.segment(4 * SEGMENT).exists());
        assert_eq!(bodies(&store), Original::bodies(0..100));
        drop(store);

        let path = copy.segment(0);
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(SEGMENT - 1).unwrap();
        let refused = try_open(copy.path(), &options).err();
        assert_eq!(refused, Some(OpenError::SegmentLen { path, len: SEGMENT - 1, expected: SEGMENT }));
    }
    let copy = original.crashed();
    let path = copy.path().join("commitlog/notes.txt");
    fs::write(&path, "x").unwrap();
    let refused = try_open(copy.path(), &compatible()).err();
    assert_eq!(refused, Some(OpenError::SegmentName { path: path.clone() }));
    let (store, report) = open_twice(&copy, &options());
    assert_eq!(report.ignored, [path]);
    assert_eq!(served(&store), Original::bodies(0..100));
}

#[test]
fn a_torn_tail_is_cut_and_its_whole_records_are_kept() {
    let original = Original::make();
    let at = original.positions[95];
    let copy = original.foreign();
    copy.flip(at + BODY_AT);
    let bytes = copy.read(at, (original.end - at) as usize);
    let (store, report) = open_twice(&copy, &options());
    assert_eq!((report.end, report.proved.by), (at, Proof::Nothing));
    let cut = report.cut.as_ref().expect("the tail is cut");
    assert_eq!((cut.position, cut.content_end, cut.record_count), (at, original.end, 4));
    let cut_at: Vec<_> = cut.records.iter().map(|record| (record.position, record.queue_offset)).collect();
    assert_eq!(cut_at, (96..100).map(|n| (original.positions[n], n as i64)).collect::<Vec<_>>());
    assert_eq!(fs::read(cut.kept_as.as_ref().unwrap()).unwrap(), bytes);
    assert_eq!(served(&store), Original::bodies(0..95));
    assert_eq!(store.next_queue_offset("T", 0), 95);
    drop(store);
    let new_len = (original.len + 8) as usize;
    assert_eq!(copy.read(at + new_len as u64, 64), [0; 64], "what was behind the end is gone");
}

#[test]
fn a_torn_record_without_whole_ones_behind_it_is_cut_and_not_kept() {
    let original = Original::make();
    let copy = original.foreign();
    let at = original.positions[99];
    copy.write(at + BODY_AT + 4, &vec![0; (original.len - BODY_AT - 4) as usize]);
    let (store, report) = open_twice(&copy, &options());
    let cut = report.cut.as_ref().expect("the tail is cut");
    assert_eq!((cut.position, cut.record_count, &cut.kept_as), (at, 0, &None));
    assert!(!copy.path().join("salvage").exists());
    assert_eq!(served(&store), Original::bodies(0..99));
}

#[test]
fn segments_behind_a_cut_are_kept_aside() {
    let original = Original::make();
    let copy = original.foreign();
    let at = original.positions[10];
    copy.flip(at + BODY_AT);
    let last = fs::read(copy.segment(2 * SEGMENT)).unwrap();
    let (store, report) = open_twice(&copy, &options());
    assert_eq!((report.end, report.removed.len()), (at, 2), "{report}");
    assert_eq!(fs::read(report.removed[1].kept_as.as_ref().unwrap()).unwrap(), last);
    assert_eq!(served(&store), Original::bodies(0..10));
}

#[test]
fn without_its_mark_the_newest_segment_proves_the_ones_before() {
    let original = Original::make();
    let tear = |copy: &Copy| {
        fs::write(copy.path().join("durable"), vec![0xA5; 8192]).unwrap();
    };
    let copy = original.crashed();
    tear(&copy);
    copy.flip(original.positions[10] + BODY_AT);
    let (store, report) = open_twice(&copy, &options());
    assert_eq!((report.proved.by, report.proved.bound), (Proof::NewestSegment, 2 * SEGMENT));
    assert_eq!(served(&store), Original::bodies((0..10).chain(11..100)));
    let copy = original.crashed();
    tear(&copy);
    copy.flip(original.positions[95] + BODY_AT);
    let (store, report) = open_twice(&copy, &options());
    assert!(report.is_whole() && report.cut.is_some(), "{report}");
    assert_eq!(served(&store), Original::bodies(0..95));
}

#[test]
fn what_rocketmq_cuts_comes_back_and_what_the_safe_policy_cuts_does_not() {
    let original = Original::make();
    let at = original.positions[95];
    for (options, resurrected) in [(compatible(), 4), (options(), 0)] {
        let copy = original.foreign();
        copy.flip(at + BODY_AT);
        let (store, report) = copy.open(&options);
        assert_eq!(report.end, at);
        let appended = store.append(&header("T"), message(&Original::body(95)), Level::Durable).unwrap();
        store.wait(&appended).unwrap();
        store.close().unwrap();
        let (store, report) = copy.open(&options);
        assert_eq!(report.records, 96 + resurrected);
        assert_eq!(bodies(&store), Original::bodies(0..96 + resurrected as usize));
    }
}

#[test]
fn a_stale_record_passes_rocketmq_and_not_the_safe_policy() {
    let original = Original::make();
    for (options, count) in [(compatible(), 101), (options(), 100)] {
        let copy = original.crashed();
        let stale = copy.read(original.positions[3], original.len as usize);
        copy.write(original.end, &stale);
        let (_, report) = copy.open(&options);
        assert_eq!(report.records, count, "{report}");
        assert_eq!(report.cut.is_some(), count == 100);
    }
}

#[test]
fn a_total_size_hides_no_whole_record() {
    let original = Original::make();
    let at = original.positions[60];
    let rest = (SEGMENT - at % SEGMENT) as i64;
    let len = original.len as i64;
    for size in
        [i32::MIN.into(), -1, 0, 1, 90, len - 1, len + 1, 2 * len, rest - 8, rest - 1, rest, rest + 1, i32::MAX.into()]
    {
        // Once alone, and once behind other damage, where the chain to the bound is known already.
        for before in [None, Some(original.positions[10])] {
            let copy = original.crashed();
            copy.write(at, &(size as i32).to_be_bytes());
            before.inspect(|at| copy.flip(at + BODY_AT));
            let (store, report) = open_twice(&copy, &options());
            let mut wanted = vec![(at, at + original.len)];
            wanted.splice(0..0, before.map(|at| (at, at + original.len)));
            assert_eq!(holes(&report), wanted, "size {size}: {report}");
            let is_left = |n: &usize| *n != 60 && (*n != 10 || before.is_none());
            assert_eq!(served(&store), Original::bodies((0..100).filter(is_left)), "size {size}");
        }
    }
}

#[test]
fn a_body_length_hides_no_body() {
    let original = Original::make();
    let at = original.positions[60];
    for body_len in [i32::MIN, -1, 0, 1, 1000, i32::MAX] {
        let copy = original.crashed();
        copy.write(at + BODY_AT - 4, &body_len.to_be_bytes());
        let (store, report) = open_twice(&copy, &options());
        assert_eq!(holes(&report), [(at, at + original.len)], "body length {body_len}: {report}");
        assert_eq!(served(&store), Original::bodies((0..60).chain(61..100)));
    }
}

#[test]
fn a_record_torn_out_of_its_own_crc_is_cut() {
    let root = tempfile::tempdir().unwrap();
    let options = CommitLogOptions { enabled_append_prop_crc: true, ..options() };
    let (store, _) = store::open(root.path(), &options);
    for body in [b"one", b"two"] {
        store.wait(&store.append(&header("T"), message(body), Level::Durable).unwrap()).unwrap();
    }
    store.close().unwrap();
    let (store, _) = store::open(root.path(), &options);
    let torn = store.append(&header("T"), message(b"torn"), Level::Written).unwrap();
    store.wait(&torn).unwrap();
    drop(store);
    let segment = fs::OpenOptions::new().write(true).open(root.path().join(format!("commitlog/{:020}", 0))).unwrap();
    segment.write_all_at(&[0; 10], torn.receipt.end - 10).unwrap();
    let (store, report) = store::open(root.path(), &options);
    assert_eq!(report.end, torn.receipt.position, "{report}");
    assert_eq!(report.cut.unwrap().flaw, Flaw::Rejected(Rejection::PropertyCrcMissing));
    assert_eq!(bodies(&store), [b"one", b"two"]);
}

#[test]
fn a_blank_without_its_length_is_damage_to_the_safe_policy_alone() {
    let original = Original::make();
    let count = original.positions.partition_point(|at| *at < SEGMENT);
    let blank = original.positions[count - 1] + original.len;
    let copy = original.crashed();
    copy.write(blank, &[0; 4]);
    assert_eq!(copy.open(&compatible()).1.records, 100);
    let copy = original.crashed();
    copy.write(blank, &[0; 4]);
    let (store, report) = open_twice(&copy, &options());
    assert_eq!(holes(&report), [(blank, SEGMENT)], "{report}");
    assert_eq!(served(&store), Original::bodies(0..100));
}

#[test]
fn property_crcs_switched_on_cost_no_older_record() {
    let original = Original::make();
    let copy = original.copy();
    let on = CommitLogOptions { enabled_append_prop_crc: true, force_verify_prop_crc: true, ..options() };
    let (store, report) = open_twice(&copy, &on);
    assert!(report.is_whole() && report.cut.is_none(), "{report}");
    assert_eq!(served(&store), Original::bodies(0..100));
}

#[test]
fn a_checkpoint_points_into_the_log_and_keeps_its_later_field() {
    let original = Original::make();
    for confirmed in [i64::MIN, -1, original.end as i64 + 1, i64::MAX] {
        let copy = original.copy();
        let path = copy.path().join("checkpoint");
        let mut bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 4096);
        bytes[32..40].copy_from_slice(&confirmed.to_be_bytes());
        bytes[40..48].copy_from_slice(&7i64.to_be_bytes());
        fs::write(&path, &bytes).unwrap();
        copy.open(&options()).0.close().unwrap();
        let bytes = fs::read(&path).unwrap();
        let field = |at: usize| i64::from_be_bytes(bytes[at..at + 8].try_into().unwrap());
        assert!((0..=original.end as i64).contains(&field(32)), "{confirmed} -> {}", field(32));
        assert_eq!(field(40), 7);
    }
}

#[test]
fn the_report_is_readable() {
    let original = Original::make();
    let copy = original.foreign();
    copy.flip(original.positions[95] + BODY_AT);
    let (_, report) = copy.open(&options());
    let cut = report.to_string().replace(&copy.path().display().to_string(), "ROOT");
    let copy = original.crashed();
    copy.flip(original.positions[10] + 4);
    let (_, report) = copy.open(&options());
    insta::assert_snapshot!(cut + &report.to_string(), @r#"
    the store was not closed; recovered by policy Safe
    log 0..9707: 95 records in 3 segments
    nothing proves what was durable
    cut a torn tail at 9707 (505 bytes): body CRC is 0x5da743cf, the record says 0x033540c8
      whole record at 9808, 101 bytes, "T" queue 0 @ 96
      whole record at 9909, 101 bytes, "T" queue 0 @ 97
      whole record at 10010, 101 bytes, "T" queue 0 @ 98
      whole record at 10111, 101 bytes, "T" queue 0 @ 99
      its bytes are kept in ROOT/salvage/00000000000000009707.0
    the store was not closed; recovered by policy Safe
    log 0..10212: 99 records in 3 segments
    durable up to 10212, says the durable mark
    LOST 1010..1111 (101 bytes): magic 0x9aa320a7 is not a record's
    RocketMQ would end the log at 1010 and delete 2 segments behind it
    "#);
}

/// Damage, one opening by the compatible policy, and appends after it: what RocketMQ would cut is told, and the safe policy
/// brings none of it back behind what is appended then.
#[test]
fn what_the_compatible_policy_cut_is_told_and_stays_away() {
    let original = Original::make();
    let at = original.positions[45];
    let copy = original.copy();
    copy.flip(at + BODY_AT);
    let (store, report) = copy.open(&compatible());
    assert_eq!((report.end, report.proved.bound, report.proved.by), (at, original.end, Proof::DurableMark));
    let text = report.to_string();
    assert!(report.cut.is_some() && text.contains(&format!("LOST {at}..{}", original.end)), "{text}");
    store.close().unwrap();

    let (store, report) = copy.open(&options());
    assert!(!report.was_closed && report.cut.is_some(), "a dirty tail is no clean stop: {report}");
    let appended = store.append(&header("T"), message(&Original::body(45)), Level::Durable).unwrap();
    store.wait(&appended).unwrap();
    drop(store);
    let (store, report) = copy.open(&options());
    assert_eq!((report.records, report.holes), (46, vec![]));
    assert_eq!(bodies(&store), Original::bodies(0..46));
}

#[test]
fn a_durable_mark_that_makes_no_sense_is_told_and_not_believed() {
    let original = Original::make();
    let slot = |begin: u64, durable_end: u64| {
        let words = [u64::from_be_bytes(*b"STORMRK1"), u64::MAX - 1, begin, durable_end, 1];
        let mut slot: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        slot.extend(crc32fast::hash(&slot).to_be_bytes());
        slot
    };
    let absurd =
        [slot(0, u64::MAX), slot(u64::MAX, u64::MAX), slot(0, 1 << 63), slot(4096, 0), b"x".to_vec(), vec![7; 5000]];
    for mark in absurd {
        let copy = original.copy();
        fs::write(copy.path().join("durable"), &mark).unwrap();
        let (store, report) = copy.open(&options());
        assert!(report.mark_is_unreadable && report.to_string().contains("cannot be read"), "{report}");
        assert_eq!(bodies(&store), Original::bodies(0..Original::COUNT));
        store.close().unwrap();
        assert!(!copy.open(&options()).1.mark_is_unreadable, "it was written anew");
    }
}

#[test]
fn an_empty_file_that_is_no_segment_is_left_alone() {
    let original = Original::make();
    let copy = original.copy();
    let strange = copy.path().join("commitlog/zzz");
    fs::write(&strange, b"").unwrap();
    let (_, report) = copy.open(&options());
    assert_eq!((report.ignored, strange.exists()), (vec![strange.clone()], true));
}
