//! `commitlog-corrupt-size`: size fields of stored records, set to boundary values.
//!
//! Model: after a first life of the store, one size field (total size, body length, topic length, properties length) of
//! one record is overwritten on the disk, as no legal fault does. What the record check makes of it is the codec's
//! business; here it matters that the store tells the damage, loses that record alone, and stays within its budgets.

use stormlog::planted::Fault;

use super::drive::{Drive, ROOT};
use crate::choices::{Actor, Family};
use crate::history::Fate;
use crate::scenario::{ParameterError, RunOutcome, RunRequest};

pub(super) const HUNTS: &[Fault] = &[Fault::SizeCheckSkipped];

/// A size field of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    TotalSize,
    BodyLength,
    TopicLength,
    PropertiesLength,
}

/// Where a field is in a record, and how wide.
fn locate(field: Field, record: &[u8]) -> Option<(usize, usize)> {
    let sys_flag = i32::from_be_bytes(record.get(36..40)?.try_into().ok()?);
    let is_v2 = record.get(4..8)? == [0xDA, 0xA3, 0x20, 0xAB];
    let hosts = [0x10, 0x20].iter().map(|bit| if sys_flag & bit == 0 { 8 } else { 20 }).sum::<usize>();
    let body_length = 68 + hosts;
    let length = |at: usize, width: usize| {
        let bytes = record.get(at..at + width)?;
        Some(bytes.iter().fold(0usize, |value, byte| value << 8 | usize::from(*byte)))
    };
    let topic_length = body_length + 4 + length(body_length, 4)?;
    let topic_width = if is_v2 { 2 } else { 1 };
    let properties_length = topic_length + topic_width + length(topic_length, topic_width)?;
    Some(match field {
        Field::TotalSize => (0, 4),
        Field::BodyLength => (body_length, 4),
        Field::TopicLength => (topic_length, topic_width),
        Field::PropertiesLength => (properties_length, 2),
    })
}

/// The boundary values of a size, given what remains of the segment from the record on.
fn boundary(number: u64, remaining: u64) -> i64 {
    const SMALLEST_RECORD: i64 = 91;
    let remaining = remaining as i64;
    [-1, 0, 1, SMALLEST_RECORD - 1, remaining - 1, remaining, remaining + 1, i64::from(i32::MAX), i64::from(i32::MIN)]
        [number as usize]
}

pub(super) fn run(request: &RunRequest) -> Result<RunOutcome, ParameterError> {
    let mut drive = Drive::new(request, |_, _| ())?;
    let rounds = drive.parameters.rounds;
    for round in 0..rounds {
        // A life that only reads settles what the crash left, so that the damage is done to what is surely stored.
        if !drive.round(2 * round, true) || !drive.settle(2 * round + 1) {
            break;
        }
        // One record is damaged. With two, what lies between them is vouched for by no chain, and is not served.
        if drive.excused.is_empty() {
            damage(&mut drive, round);
        }
    }
    if drive.holds() {
        drive.settle(2 * rounds);
    }
    Ok(drive.outcome())
}

fn damage(drive: &mut Drive<'_>, round: u64) {
    let kept: Vec<u64> = drive.books.history.with(|history| {
        let fates = history.appends.iter().flat_map(|append| append.fates.iter());
        fates.filter_map(|fate| if let Fate::Kept(position) = fate { Some(*position) } else { None }).collect()
    });
    if kept.is_empty() {
        return;
    }
    let segment_bytes = drive.setup.options.mapped_file_size_commit_log;
    let actor = Actor::RUN.child("damage", round);
    let excused = drive.machine.with_disk(|disk, ctx| {
        let stream = ctx.stream(Family::Damage, actor);
        if ctx.operation(stream, &[1]) == 0 {
            return None;
        }
        let position = kept[ctx.below(stream, kept.len() as u64) as usize];
        let fields = [Field::TotalSize, Field::BodyLength, Field::TopicLength, Field::PropertiesLength];
        let field = fields[ctx.weighted(stream, &[4, 2, 1, 1])];
        let (base, offset) = (position - position % segment_bytes, position % segment_bytes);
        let path = format!("{ROOT}/commitlog/{base:020}");
        let mut record = vec![0; (segment_bytes - offset) as usize];
        disk.peek(&path, offset, &mut record).ok()?;
        let size = u64::from(u32::from_be_bytes(record[..4].try_into().expect("four bytes")));
        let (at, width) = locate(field, &record)?;
        let value = boundary(ctx.below(stream, 9), segment_bytes - offset);
        let bytes = value.to_be_bytes();
        let new = &bytes[8 - width..];
        if record[at..at + width] == *new {
            return None;
        }
        disk.poke(ctx, &path, offset + at as u64, new).ok()?;
        ctx.mark(match field {
            Field::TotalSize => "damage.total-size",
            Field::BodyLength => "damage.body-length",
            Field::TopicLength => "damage.topic-length",
            Field::PropertiesLength => "damage.properties-length",
        });
        Some(position..position + size)
    });
    drive.excused.extend(excused);
}
