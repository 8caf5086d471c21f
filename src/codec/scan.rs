//! Finding records by walking a file from its first byte on.
//!
//! The file is read in windows; a record that lies in one is checked there, without a copy. What is left of a window is
//! moved to its front before the next read, and the window grows to hold a larger record, up to
//! `max_check_reuse_buffer`; a record beyond that gets a buffer of its own which is dropped with it. Nothing is reserved
//! for a total size that is negative, below the smallest record, or beyond what remains. (apache/rocketmq #10640)
//!
//! Not modelled: where to go on behind a damaged record; that is recovery's decision.

use std::io;

use super::check::check_within;
use super::layout::{Magic, SMALLEST_RECORD_LEN, at, i32_at};
use super::{CheckOptions, Outcome};
use crate::env::File;
use crate::planted;

/// How to walk a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanOptions {
    /// Bytes to read at a time.
    pub window_len: usize,
    /// Largest buffer in bytes that is kept for the next record (`maxCheckMessageReuseBufferSize`).
    pub max_check_reuse_buffer: usize,
    /// What to check.
    pub check: CheckOptions,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self { window_len: 256 << 10, max_check_reuse_buffer: (4 << 20) + (64 << 10), check: CheckOptions::STRICT }
    }
}

/// A file could not be read.
#[derive(Debug, thiserror::Error)]
#[error("reading {needed} bytes at offset {at} of the log: {source}")]
pub struct ScanError {
    /// Offset in the log.
    pub at: i64,
    /// How many bytes were needed there.
    pub needed: usize,
    /// Why it failed; the file's early end is `UnexpectedEof`.
    pub source: io::Error,
}

/// What was found at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scanned<'a> {
    /// Offset in the log.
    pub at: i64,
    /// What stands there.
    pub outcome: Outcome<'a>,
}

/// Walks files; keeps its buffer from one to the next.
#[derive(Debug)]
pub struct RecordScanner {
    options: ScanOptions,
    window: Vec<u8>,
}

impl RecordScanner {
    /// Makes a scanner; it reserves nothing yet.
    pub const fn new(options: ScanOptions) -> Self {
        Self { options, window: Vec::new() }
    }

    /// Bytes kept for the next record.
    pub const fn retained_len(&self) -> usize {
        self.window.len()
    }

    /// Walks `file` from offset `start` in it up to `end`. Its first byte is at `file_base` of the log.
    pub fn scan<'s, F: File>(&'s mut self, file: &'s F, file_base: i64, start: u64, end: u64) -> Scan<'s, F> {
        Scan { scanner: self, file, file_base, at: start, end, window_at: start, filled: 0, one_off: Vec::new() }
    }
}

/// A walk through one file.
#[derive(Debug)]
pub struct Scan<'s, F> {
    scanner: &'s mut RecordScanner,
    file: &'s F,
    file_base: i64,
    at: u64,
    end: u64,
    /// Where in the file the window starts, and how much of it holds the file's bytes.
    window_at: u64,
    filled: usize,
    one_off: Vec<u8>,
}

impl<F: File> Scan<'_, F> {
    /// The next record, or what ends the walk: a blank or a rejection. `None` behind that and at the end.
    #[allow(clippy::should_implement_trait, reason = "what is found borrows the scanner's buffer")]
    pub fn next(&mut self) -> Result<Option<Scanned<'_>>, ScanError> {
        let remaining = self.end.saturating_sub(self.at);
        if remaining == 0 {
            return Ok(None);
        }
        self.one_off = Vec::new();
        let options = self.scanner.options;
        let needed = match self.plausible_len(remaining)? {
            Some(len) => len,
            None => remaining.min(options.window_len as u64) as usize,
        };
        let retained = options.max_check_reuse_buffer.max(options.window_len);
        let bytes = if needed > retained {
            self.read_one_off(needed)?;
            &self.one_off[..]
        } else {
            self.fill(needed)?;
            &self.scanner.window[(self.at - self.window_at) as usize..self.filled]
        };
        let at = self.file_base + self.at as i64;
        let outcome = check_within(bytes, remaining, at, &options.check);
        self.at = match outcome {
            Outcome::Record(record) => self.at + record.bytes().len() as u64,
            _ => self.end,
        };
        Ok(Some(Scanned { at, outcome }))
    }

    /// The total size of what stands here, if a record can have it.
    fn plausible_len(&mut self, remaining: u64) -> Result<Option<usize>, ScanError> {
        let needed = remaining.min(8) as usize;
        self.fill(needed)?;
        let head = &self.scanner.window[(self.at - self.window_at) as usize..self.filled];
        let magic = i32_at(head, at::MAGIC).and_then(Magic::from_code);
        let (Some(Magic::V1 | Magic::V2), Some(total_size)) = (magic, i32_at(head, at::TOTAL_SIZE)) else {
            return Ok(None);
        };
        let len = total_size as u32 as usize;
        let plausible = total_size >= SMALLEST_RECORD_LEN as i32 && len as u64 <= remaining
            || planted!(self.scanner.options.check.planted, SizeCheckSkipped);
        Ok(plausible.then_some(len))
    }

    /// Makes the window hold at least `needed` bytes from here on.
    fn fill(&mut self, needed: usize) -> Result<(), ScanError> {
        let window = &mut self.scanner.window;
        let skip = (self.at - self.window_at) as usize;
        if skip + needed <= self.filled {
            return Ok(());
        }
        let kept = self.filled.saturating_sub(skip);
        window.copy_within(self.filled - kept..self.filled, 0);
        self.window_at = self.at;
        self.filled = kept;
        let wanted = (self.end - self.at).min(self.scanner.options.window_len as u64) as usize;
        let wanted = wanted.max(needed);
        if window.len() < wanted {
            window.resize(wanted, 0);
        }
        while self.filled < needed {
            let read = self.file.read_at(&mut window[self.filled..wanted], self.at + self.filled as u64);
            match read {
                Ok(0) => return Err(self.error(needed, io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => self.filled += read,
                Err(source) if source.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(self.error(needed, source)),
            }
        }
        Ok(())
    }

    /// Reads a record that is too large for the window.
    fn read_one_off(&mut self, needed: usize) -> Result<(), ScanError> {
        let mut bytes = vec![0; needed];
        let result = self.file.read_exact_at(&mut bytes, self.at);
        self.one_off = bytes;
        result.map_err(|source| self.error(needed, source))
    }

    fn error(&self, needed: usize, source: io::Error) -> ScanError {
        ScanError { at: self.file_base + self.at as i64, needed, source }
    }
}
