//! `commitlog-corrupt-size`: size fields of stored records, set to boundary values.
//!
//! Model: one size field (total size, body length, topic length, properties length) of
//! one record is overwritten on the disk, as no legal fault does. What the record check makes of it is the codec's
//! business; here it matters that the store tells the damage, loses that record alone, and stays within its budgets.

use stormlog::planted::Fault;

use super::damaged::{self, Stored};
use crate::choices::Stream;
use crate::context::Context;
use crate::disk::Disk;
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
    damaged::run(request, corrupt)
}

fn corrupt(disk: &mut Disk, ctx: &mut Context, stream: Stream, stored: &Stored<'_>) -> Option<std::ops::Range<u64>> {
    let position = stored.pick(ctx, stream);
    let fields = [Field::TotalSize, Field::BodyLength, Field::TopicLength, Field::PropertiesLength];
    let field = fields[ctx.weighted(stream, &[4, 2, 1, 1])];
    let (path, offset) = stored.place(position);
    let rest = stored.read(disk, position)?;
    let (at, width) = locate(field, &rest)?;
    let value = boundary(ctx.below(stream, 9), rest.len() as u64);
    let bytes = value.to_be_bytes();
    let new = &bytes[8 - width..];
    if rest[at..at + width] == *new {
        return None;
    }
    disk.poke(ctx, &path, offset + at as u64, new).ok()?;
    ctx.mark(match field {
        Field::TotalSize => "damage.total-size",
        Field::BodyLength => "damage.body-length",
        Field::TopicLength => "damage.topic-length",
        Field::PropertiesLength => "damage.properties-length",
    });
    Some(position..position + damaged::size_of(&rest))
}
