//! What differs between logs: how a segment's file is named, what it begins with, and what closes it.
//!
//! Model: a position is the base of a segment plus an offset in its file, header included. Bases are multiples of the
//! segment's size, so that a position names its segment by division and every base is where a record may begin.

/// The shape of a log's files.
pub trait Layout: Send + Sync + 'static {
    /// What moves in step with the log's end: handed to the encoder of each append under `append.lock`, and to nobody
    /// when an append is refused.
    type Tail: Send + 'static;

    /// Length of every segment's file in bytes.
    fn segment_bytes(&self) -> u64;

    /// Name of the segment that begins at `base`.
    fn file_name(&self, base: u64) -> String;

    /// The base that a file's name stands for; `None` if it is no segment's name.
    fn base_of(&self, file_name: &str) -> Option<u64>;

    /// The first bytes of a segment's file; the same length for every base.
    fn header(&self, _base: u64) -> Vec<u8> {
        Vec::new()
    }

    /// Bytes kept free at the end of a segment for what closes it.
    fn closing_bytes(&self) -> u64 {
        0
    }

    /// Puts what closes a segment behind its last record; the `remaining` bytes are counted from there to its end.
    fn close_segment(&self, _remaining: u64, _bytes: &mut Vec<u8>) {}
}
