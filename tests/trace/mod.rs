//! Reads what `strace -f -y` writes, and judges by it whether acknowledged records were durable.
//!
//! Model: a call begins at one line of the trace and ends at the same or a later one; what happened in between is
//! ordered against other calls by those lines alone. Names move with renames of files; a rename of a directory, hard
//! links and duplicated descriptors are not modelled. Writes are found by the text of the record in them, so that each
//! record must hold a text of its own.

use std::collections::BTreeMap;

/// A finished system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    /// Text between the parentheses.
    pub arguments: String,
    /// Negative if it failed.
    pub result: i64,
    /// Lines of the trace.
    pub begin: usize,
    pub end: usize,
}

/// The finished calls of a trace, by their ends.
pub fn parse(trace: &str) -> Vec<Call> {
    let mut unfinished = BTreeMap::new();
    let mut calls = Vec::new();
    for (at, line) in trace.lines().enumerate() {
        let Some((thread, event)) = line.trim_start().split_once(' ') else { continue };
        let event = event.trim_start();
        if let Some(head) = event.strip_suffix(" <unfinished ...>") {
            unfinished.insert(thread, (at, head));
        } else if let Some(resumed) = event.strip_prefix("<... ") {
            let (begin, head) = unfinished.remove(thread).expect("what is resumed was begun");
            let (_, tail) = resumed.split_once(" resumed>").expect("the name of what is resumed");
            calls.extend(finished(&format!("{head}{tail}"), begin, at));
        } else {
            calls.extend(finished(event, at, at));
        }
    }
    calls
}

/// None for what is no call, such as a signal.
fn finished(event: &str, begin: usize, end: usize) -> Option<Call> {
    let (call, result) = event.rsplit_once(" = ")?;
    let (name, arguments) = call.trim_end().strip_suffix(')')?.split_once('(')?;
    let digits = result.len() - result.trim_start_matches(|c: char| c == '-' || c.is_ascii_digit()).len();
    let result = result[..digits].parse().ok()?;
    Some(Call { name: name.to_owned(), arguments: arguments.to_owned(), result, begin, end })
}

/// What the records and their acknowledgements look like in a trace.
pub struct Texts {
    /// What begins the text that is in each record, followed by its number in six digits.
    pub record: &'static str,
    /// What begins the line that says that the record of the number behind it was acknowledged durable.
    pub acknowledged: &'static str,
}

/// What a trace shows.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Records acknowledged durable.
    pub acknowledged: usize,
    /// Files that records were written to.
    pub files: usize,
    /// What was acknowledged or relied on too early.
    pub violations: Vec<String>,
}

/// Judges whether everything was durable when it was acknowledged, and each file before a record went into the next.
pub fn judge(calls: &[Call], texts: &Texts) -> Judgement {
    let mut disk = Disk::default();
    let mut judgement = Judgement::default();
    let mut files_with_records: Vec<usize> = Vec::new();
    for call in calls.iter().filter(|call| call.result >= 0) {
        if let Some(number) = text_after(&call.arguments, texts.acknowledged) {
            judgement.acknowledged += 1;
            let record = format!("{}{number}", texts.record);
            judgement
                .violations
                .extend(disk.why_not_durable(&record, call.begin).map(|why| format!("{record}: {why}")));
            continue;
        }
        if let Some(file) = disk.apply(call)
            && call.arguments.contains(texts.record)
            && !files_with_records.contains(&file)
        {
            if let Some(before) = files_with_records.last()
                && !disk.files[*before].is_synced(disk.files[*before].last_write_end(""), call.begin)
            {
                let line = call.begin + 1;
                judgement.violations.push(format!("line {line}: the file before was not synced at the first record"));
            }
            files_with_records.push(file);
        }
    }
    judgement.files = files_with_records.len();
    judgement
}

#[derive(Default)]
struct Disk<'a> {
    files: Vec<File<'a>>,
    /// Path to file and to the end of the call that gave the file that name, if it is in the trace.
    names: BTreeMap<String, (usize, Option<usize>)>,
    descriptors: BTreeMap<i64, usize>,
}

/// A file or directory.
#[derive(Default)]
struct File<'a> {
    writes: Vec<&'a Call>,
    syncs: Vec<&'a Call>,
}

impl File<'_> {
    fn last_write_end(&self, text: &str) -> Option<usize> {
        self.writes.iter().rev().find(|write| write.arguments.contains(text)).map(|write| write.end)
    }

    /// Whether a sync began after one line and ended before another.
    fn is_synced(&self, after: Option<usize>, before: usize) -> bool {
        self.syncs.iter().any(|sync| Some(sync.begin) > after && sync.end < before)
    }
}

impl<'a> Disk<'a> {
    /// Applies a call. For a write, the file that it was to.
    fn apply(&mut self, call: &'a Call) -> Option<usize> {
        let mut paths = call.arguments.split('"').skip(1).step_by(2);
        match call.name.as_str() {
            "open" | "openat" => {
                let path = paths.next()?;
                let named_at = call.arguments.contains("O_CREAT").then_some(call.end);
                let file = self.file_at(path, named_at);
                self.descriptors.insert(call.result, file);
            }
            "close" => {
                self.descriptors.remove(&descriptor(call)?);
            }
            "mkdir" | "mkdirat" => {
                self.file_at(paths.next()?, Some(call.end));
            }
            "rename" | "renameat" | "renameat2" => {
                let (from, to) = (paths.next()?, paths.next()?);
                let file = self.file_at(from, None);
                self.names.remove(from);
                self.names.insert(to.to_owned(), (file, Some(call.end)));
            }
            "unlink" | "unlinkat" | "rmdir" => {
                self.names.remove(paths.next()?);
            }
            "fsync" | "fdatasync" => {
                let file = *self.descriptors.get(&descriptor(call)?)?;
                self.files[file].syncs.push(call);
            }
            "write" | "pwrite64" | "pwritev" | "pwritev2" => {
                let file = *self.descriptors.get(&descriptor(call)?)?;
                self.files[file].writes.push(call);
                return Some(file);
            }
            _ => {}
        }
        None
    }

    fn file_at(&mut self, path: &str, named_at: Option<usize>) -> usize {
        if let Some((file, _)) = self.names.get(path) {
            return *file;
        }
        self.files.push(File::default());
        let file = self.files.len() - 1;
        self.names.insert(path.to_owned(), (file, named_at));
        file
    }

    fn why_not_durable(&self, record: &str, before: usize) -> Option<String> {
        let Some((file, write_end)) =
            self.files.iter().enumerate().find_map(|(n, file)| Some((n, file.last_write_end(record)?)))
        else {
            return Some("acknowledged but not written".to_owned());
        };
        if !self.files[file].is_synced(Some(write_end), before) {
            return Some("acknowledged before its file was synced".to_owned());
        }
        let Some((path, _)) = self.names.iter().find(|(_, (named, _))| *named == file) else {
            return Some("in a file without a name".to_owned());
        };
        self.unsynced_name(path, before).map(|path| format!("acknowledged before the name {path} was synced"))
    }

    /// The path or the part of it whose name is not durable.
    fn unsynced_name<'p>(&self, path: &'p str, before: usize) -> Option<&'p str> {
        let (_, Some(named_at)) = self.names.get(path)? else { return None };
        let (parent, _) = path.rsplit_once('/')?;
        let is_synced =
            self.names.get(parent).is_some_and(|(dir, _)| self.files[*dir].is_synced(Some(*named_at), before));
        if is_synced { self.unsynced_name(parent, before) } else { Some(path) }
    }
}

/// The first argument, as in `5</path>`.
fn descriptor(call: &Call) -> Option<i64> {
    call.arguments.split(['<', ',']).next()?.trim().parse().ok()
}

/// The six digits behind `text`.
fn text_after<'a>(arguments: &'a str, text: &str) -> Option<&'a str> {
    let (_, rest) = arguments.split_once(text)?;
    rest.get(..6)
}
