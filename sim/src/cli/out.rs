//! Standard output, which may be a terminal, a file, or a pipe that somebody closes.

use std::io::{self, BufWriter, Stdout, Write as _};

use serde::Serialize;

/// Width where there is no terminal to ask.
const WIDTH_ELSEWHERE: usize = 100;

/// Width from which on tables are written as such.
const TABLE_WIDTH: usize = 96;

/// Where results go.
pub struct Out {
    to: BufWriter<Stdout>,
    width: usize,
    closed: bool,
}

impl Out {
    /// Standard output.
    pub fn new() -> Self {
        let width = console::Term::stdout().size_checked().map_or(WIDTH_ELSEWHERE, |(_, columns)| columns.into());
        Self { to: BufWriter::new(io::stdout()), width, closed: false }
    }

    /// Whether the reader has gone: there is no point in going on for its sake.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether a table of six columns fits.
    pub fn is_wide(&self) -> bool {
        self.width >= TABLE_WIDTH
    }

    /// Writes a line as it is.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        let written = writeln!(self.to, "{text}");
        self.note(written)
    }

    /// Writes one JSON document as a line.
    pub fn json(&mut self, document: &impl Serialize) -> io::Result<()> {
        self.line(&serde_json::to_string(document)?)
    }

    /// Writes text, wrapped to the terminal, later lines indented by `indent`.
    pub fn wrapped(&mut self, first: &str, text: &str, indent: usize) -> io::Result<()> {
        let indent = " ".repeat(indent);
        let options = textwrap::Options::new(self.width.max(40))
            .initial_indent(first)
            .subsequent_indent(&indent)
            .word_splitter(textwrap::WordSplitter::NoHyphenation)
            .break_words(false);
        for line in text.lines().flat_map(|line| textwrap::wrap(line, &options)) {
            self.line(&line)?;
        }
        Ok(())
    }

    /// Writes a named value, aligned with others.
    pub fn field(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.wrapped(&format!("  {name:<13} "), value, 16)
    }

    /// Writes a command in one line, however long: it is there to be pasted.
    pub fn command(&mut self, name: &str, command: &str) -> io::Result<()> {
        self.line(&format!("  {name:<13} {command}"))
    }

    /// Hands on what is buffered.
    pub fn flush(&mut self) -> io::Result<()> {
        let flushed = if self.closed { Ok(()) } else { self.to.flush() };
        self.note(flushed)
    }

    fn note(&mut self, result: io::Result<()>) -> io::Result<()> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            other => other,
        }
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        if self.closed {
            // The buffer would be written once more, to nobody.
            let empty = BufWriter::new(io::stdout());
            let _ = std::mem::replace(&mut self.to, empty).into_parts();
        }
    }
}

/// Says on standard error what went wrong.
pub fn complain(text: &str) -> io::Result<()> {
    writeln!(io::stderr(), "error: {text}")
}

/// A count with its digits in groups of three.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_digits() {
        assert_eq!([grouped(0), grouped(999), grouped(1000), grouped(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
    }
}
