//! Straight writes into memory that need not be filled first.

use bytes::buf::UninitSlice;
use bytes::{BufMut, BytesMut};

/// A growable buffer that messages and records are encoded into; nothing is allocated where its capacity suffices.
pub trait Grow: BufMut {
    /// Makes room for `additional` more bytes in one piece; an empty buffer gets exactly that much.
    fn grow(&mut self, additional: usize);
}

impl Grow for Vec<u8> {
    #[inline]
    fn grow(&mut self, additional: usize) {
        self.reserve(additional);
    }
}

impl Grow for BytesMut {
    #[inline]
    fn grow(&mut self, additional: usize) {
        self.reserve(additional);
    }
}

/// Writes bytes one after the other; what was written can be written over.
pub(crate) struct Writer<'a> {
    out: &'a mut UninitSlice,
    written: usize,
}

impl Writer<'_> {
    /// Writes `bytes` behind what was written.
    #[inline(always)]
    pub fn put(&mut self, bytes: &[u8]) {
        let end = self.written + bytes.len();
        self.out[self.written..end].copy_from_slice(bytes);
        self.written = end;
    }

    /// Writes over what was written at `at`.
    #[inline(always)]
    pub fn patch<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        assert!(at + N <= self.written, "only what was written is written over");
        self.out[at..at + N].copy_from_slice(&bytes);
    }

    /// How many bytes were written.
    pub const fn written(&self) -> usize {
        self.written
    }
}

/// Appends what `write` writes, which must be `len` bytes.
#[inline]
pub(crate) fn append(buffer: &mut impl Grow, len: usize, write: impl FnOnce(&mut Writer<'_>)) {
    if len == 0 {
        // A full vector would grow to show any spare capacity at all.
        return write_exactly(UninitSlice::new(&mut []), write);
    }
    buffer.grow(len);
    write_exactly(&mut buffer.chunk_mut()[..len], write);
    // SAFETY: the writer has written, and so initialised, the first `len` bytes of the spare capacity.
    unsafe { buffer.advance_mut(len) };
}

/// Fills all of `bytes` with what `write` writes.
#[inline]
pub(crate) fn fill(bytes: &mut [u8], write: impl FnOnce(&mut Writer<'_>)) {
    write_exactly(UninitSlice::new(bytes), write);
}

#[inline]
fn write_exactly(out: &mut UninitSlice, write: impl FnOnce(&mut Writer<'_>)) {
    let len = out.len();
    let mut writer = Writer { out, written: 0 };
    write(&mut writer);
    assert_eq!(writer.written, len, "an encoded length is the sum of its fields");
}
