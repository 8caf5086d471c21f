//! The order of system calls behind a durable acknowledgement, as the kernel sees it.
//!
//! Model: a child process appends under `strace` and writes a line after each durable acknowledgement. Between a
//! record's last write and that line its file must have been synced, and each name on the way to the file in its
//! directory; a file must have been synced before the first record of the next. Without `strace`, or where it may not
//! trace, only the judge is tested.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test stands outside of any simulation")]

mod again;
mod trace;

use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};

use stormlog::codec::{Host, MessageRef, PropertiesRef, RecordHeader, SysFlag};
use stormlog::commitlog::{CommitLog, CommitLogOptions};
use stormlog::env::real::RealEnv;
use stormlog::env::{Env, File as _, OpenOptions};
use stormlog::log::Level;
use trace::{Call, Judgement, Texts, judge, parse};

const TEXTS: Texts = Texts { record: "record-", acknowledged: "durable-" };
const RECORDS: usize = 30;

const CALLS: &str = "trace=?open,openat,close,write,pwrite64,pwritev,pwritev2,fsync,fdatasync,?mkdir,mkdirat,\
                     ?rename,?renameat,renameat2,?unlink,unlinkat,?rmdir";

#[test]
fn messages_are_durable_when_acknowledged() {
    trace_and_judge("messages_are_durable_when_acknowledged", append_to_a_commit_log);
}

#[test]
fn bare_files_are_durable_when_acknowledged() {
    trace_and_judge("bare_files_are_durable_when_acknowledged", append_to_bare_files);
}

/// `append` appends [`RECORDS`] records, at least one into a second file.
fn trace_and_judge(test: &str, append: impl FnOnce(&Path)) {
    if let Some(root) = again::as_child() {
        return append(&root);
    }
    if !can_trace() {
        return println!("skipped: no strace, or it may not trace");
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (root, output) = (dir.path().join("root"), dir.path().join("trace"));
    std::fs::create_dir(&root).expect("a new directory");
    let strace = ["strace", "-f", "-y", "-s", "4096", "-e", CALLS, "-o", output.to_str().expect("a plain path")];
    let status = again::command(&strace, test, &root).stdout(Stdio::null()).status().expect("strace");
    assert!(status.success(), "the child failed: {status}");

    let judgement = judge(&parse(&std::fs::read_to_string(&output).expect("a trace")), &TEXTS);
    assert_eq!(judgement.violations, [""; 0]);
    assert_eq!(judgement.acknowledged, RECORDS, "the trace does not show each acknowledgement");
    assert!(judgement.files > 1, "the log did not roll");
}

fn can_trace() -> bool {
    let probe = Command::new("strace").args(["-f", "-y", "-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    probe.is_ok_and(|status| status.success())
}

fn acknowledge(record: usize) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{}{record:06}\n", TEXTS.acknowledged).as_bytes()).expect("to write");
    out.flush().expect("to write");
}

fn record(n: usize) -> String {
    format!("{}{n:06}", TEXTS.record)
}

/// With producers that follow the sync of another, and would be told too early if it told before it ended.
fn append_to_a_commit_log(root: &Path) {
    const PRODUCERS: usize = 3;
    let options = CommitLogOptions { mapped_file_size_commit_log: 4096, ..CommitLogOptions::default() };
    let (log, _) = CommitLog::open(RealEnv, &root.join("store"), options).expect("a store");
    let store = Host::new(Ipv4Addr::LOCALHOST.into(), 10911);
    let header = RecordHeader {
        topic: "traced",
        queue_id: 0,
        sys_flag: SysFlag(0),
        born_timestamp_ms: 0,
        born_host: store,
        store_host: store,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
    };
    std::thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let (log, header) = (&log, &header);
            scope.spawn(move || {
                for n in (0..RECORDS).skip(producer).step_by(PRODUCERS) {
                    let body = format!("{:800}", record(n));
                    let message = MessageRef { flag: 0, body: body.as_bytes(), properties: PropertiesRef(&[]) };
                    let appended = log.append(header, message, Level::Durable).expect("room");
                    assert_eq!(log.wait(&appended), Ok(Level::Durable));
                    acknowledge(n);
                }
            });
        }
    });
    log.close().expect("to close");
}

/// By hand what a log does: files are zeroed and synced under another name, then renamed.
fn append_to_bare_files(root: &Path) {
    const RECORDS_PER_FILE: usize = 5;
    let (env, log) = (RealEnv, root.join("log"));
    env.create_dir(&log).expect("a new directory");
    env.sync_dir(root).expect("to sync");
    for (file_number, records) in (0..RECORDS).collect::<Vec<_>>().chunks(RECORDS_PER_FILE).enumerate() {
        let preparing = root.join("preparing");
        let file = env.open(&preparing, OpenOptions::CREATE_NEW).expect("a new file");
        file.zero_range(0, 4096).expect("to zero");
        file.sync_all().expect("to sync");
        env.rename(&preparing, &log.join(file_number.to_string())).expect("to rename");
        env.sync_dir(&log).expect("to sync");
        env.sync_dir(root).expect("to sync");
        for (at, n) in records.iter().enumerate() {
            file.write_all_at(record(*n).as_bytes(), at as u64 * 100).expect("to write");
            file.sync_data().expect("to sync");
            acknowledge(*n);
        }
    }
}

/// Two threads: one makes files, one appends. Every sync in it is needed.
const TRACE: &str = r#"
10 mkdirat(AT_FDCWD</>, "/r/log", 0777) = 0
10 openat(AT_FDCWD</>, "/r", O_RDONLY|O_CLOEXEC|O_DIRECTORY) = 3</r>
10 fsync(3</r>)                      = 0
10 close(3</r>)                      = 0
10 openat(AT_FDCWD</>, "/r/next", O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0666) = 3</r/next>
10 pwritev(3</r/next>, [{iov_base="\0\0"..., iov_len=65536}], 1, 0) = 65536
10 rename("/r/next", "/r/log/0") = 0
10 openat(AT_FDCWD</>, "/r/log", O_RDONLY|O_CLOEXEC|O_DIRECTORY) = 4</r/log>
10 fsync(4</r/log> <unfinished ...>
11 --- SIGCHLD {si_signo=SIGCHLD} ---
10 <... fsync resumed>)              = 0
11 pwrite64(3</r/log/0>, "record-000000 = (x)", 19, 0) = 19
11 fdatasync(3</r/log/0> <unfinished ...>
10 openat(AT_FDCWD</>, "/r/log/1", O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0666 <unfinished ...>
11 <... fdatasync resumed>)          = 0
10 <... openat resumed>)             = 5</r/log/1>
11 write(1<pipe:[1]>, "durable-000000\n", 15) = 15
10 fsync(4</r/log>)                  = 0
11 pwrite64(3</r/log/0>, "record-000001", 13, 19) = 13
11 fdatasync(3</r/log/0>)            = 0
11 pwrite64(5</r/log/1>, "record-000002", 13, 0) = 13
11 fdatasync(5</r/log/1>)            = 0
11 write(1<pipe:[1]>, "durable-000002\n", 15) = 15
11 +++ exited with 0 +++
"#;

#[test]
fn the_judge_finds_each_sync_that_is_missing_failed_early_or_late() {
    let calls = parse(TRACE);
    let whole = judge(&calls, &TEXTS);
    assert_eq!(whole, Judgement { acknowledged: 2, files: 2, violations: Vec::new() });

    let syncs: Vec<usize> = (0..calls.len()).filter(|at| calls[*at].name.ends_with("sync")).collect();
    assert_eq!(syncs.len(), 6);
    for at in syncs {
        let is_found = |damage: &str, change: &dyn Fn(&mut Vec<Call>)| {
            let mut changed = calls.clone();
            change(&mut changed);
            assert_ne!(judge(&changed, &TEXTS).violations, [""; 0], "{damage}: {:?}", calls[at]);
        };
        is_found("missing", &|calls| drop(calls.remove(at)));
        is_found("failed", &|calls| calls[at].result = -1);
        is_found("early", &|calls| calls[at].begin = 0);
        is_found("late", &|calls| calls[at].end = usize::MAX);
    }
}

#[test]
fn the_judge_finds_an_acknowledgement_of_nothing() {
    let calls = parse(&TRACE.replace("durable-000002", "durable-000003"));
    assert_eq!(judge(&calls, &TEXTS).violations, ["record-000003: acknowledged but not written"]);
}

#[test]
fn failed_calls_are_read_as_such() {
    let calls = parse("7 fsync(3</r>) = -1 EIO (Input/output error)\n7 close(3</r>) = ?\n");
    assert_eq!(calls.len(), 1);
    assert_eq!((calls[0].name.as_str(), calls[0].arguments.as_str(), calls[0].result), ("fsync", "3</r>", -1));
}
