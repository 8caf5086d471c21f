//! The command line from outside: what it says, how it exits, and that nothing that a seed does to its process ends a
//! campaign. Runs on the hidden scenario `selftest`, which does all that on demand.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test of processes, outside of any run")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn stormlog(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stormlog"));
    command.arg("--selftest").current_dir(dir);
    command
}

struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

fn run_in(dir: &Path, args: &[&str]) -> Ended {
    stormlog(dir).args(args).output().expect("it starts").into()
}

fn run(args: &[&str]) -> Ended {
    let dir = tempfile::tempdir().expect("a directory");
    run_in(dir.path(), args)
}

fn json(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

fn of_kind<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

#[test]
fn exit_codes() {
    let code = |args: &[&str]| run(args).code;
    assert_eq!(code(&["run", "selftest", "--seed", "4"]), Some(0));
    assert_eq!(code(&["run", "selftest", "--seed", "38"]), Some(1));
    for wrong in [
        &["run", "selftest"][..],
        &["run", "selftset", "--seed", "1"],
        &["run", "selftest", "--seed", "-1"],
        &["run", "selftest", "--seed", "9223372036854775808"],
        &["run", "selftest", "--seed", "1", "--param", "operation=1"],
        &["run", "selftest", "--seed", "1", "--param", "sync.failing_percent=101"],
        &["run", "missing.toml", "--seed", "1"],
        &["run", "selftest", "--seed", "1", "--plant", "nothing"],
        &["fuzz", "selftest", "--seeds", "5..5"],
        &["fuzz", "selftest", "--for", "10"],
        &["fuzz", "selftest", "--jobs", "0"],
        &["replay", "missing.toml"],
        &["replay"],
        &["shrink", "selftest"],
        &["shrink", "selftest", "--seed", "4"],
        &["scenarios", "nothing"],
        &["nothing"],
    ] {
        let ended = run(wrong);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{wrong:?}: {}", ended.err);
        assert!(ended.err.starts_with("error: "), "{wrong:?}: {}", ended.err);
    }
}

#[test]
fn the_hidden_scenario_is_hidden() {
    let listed = Command::new(env!("CARGO_BIN_EXE_stormlog")).arg("scenarios").output().expect("it starts");
    assert!(!String::from_utf8(listed.stdout).expect("text").contains("selftest"));
}

#[test]
fn errors_name_what_is_near() {
    assert!(run(&["run", "selftset", "--seed", "1"]).err.contains("the nearest is selftest"));
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("mine.toml"), "scenario = 'selftest'\n\n[sync]\nfailing = 3\n").expect("written");
    let ended = run_in(dir.path(), &["run", "mine.toml", "--seed", "1"]);
    assert!(ended.err.contains("mine.toml:4: parameter sync.failing:"), "{}", ended.err);
}

#[test]
fn a_scenario_file_is_run_without_recompiling() {
    let dir = tempfile::tempdir().expect("a directory");
    let printed = run_in(dir.path(), &["scenarios", "selftest"]).out;
    std::fs::write(dir.path().join("mine.toml"), printed.replace("operations = 40", "operations = 7"))
        .expect("written");
    let ended = run_in(dir.path(), &["run", "mine.toml", "--seed", "1", "--format", "json"]);
    assert_eq!(json(&ended.out)[0]["stats"]["operations"], 7);
}

#[test]
fn a_run_is_the_same_in_any_environment() {
    let lines = |command: &mut Command| {
        let output = command.args(["run", "selftest", "--seed", "5", "--trace", "--format", "json"]).output();
        let mut lines = json(&String::from_utf8(output.expect("it starts").stdout).expect("text"));
        let last = lines.last_mut().expect("a result");
        assert_eq!((&last["kind"], &last["verdict"], &last["seed"]), (&"result".into(), &"held".into(), &5.into()));
        last["allocation"].take();
        lines
    };
    let here = lines(&mut stormlog(Path::new("/")));
    let dir = tempfile::tempdir().expect("a directory");
    let there = lines(stormlog(dir.path()).env_clear().env("LC_ALL", "tr_TR.UTF-8").env("PADDING", "x".repeat(5000)));
    assert!(here.len() > 40);
    assert_eq!(here, there);
}

#[test]
fn the_determinism_check_can_fail() {
    let check = |misbehave: &str| {
        run(&["run", "selftest", "--seed", "4", "--check-determinism", "--format", "json", "--param", misbehave])
    };
    let (well, ill) = (check("misbehave=none"), check("misbehave=differ"));
    assert_eq!((well.code, &json(&well.out)[0]["deterministic"]), (Some(0), &Value::Bool(true)));
    assert_eq!((ill.code, &json(&ill.out)[0]["deterministic"]), (Some(1), &Value::Bool(false)));
    assert_eq!(json(&ill.out)[0]["difference"]["left"][0]["op"], "differ");
}

#[test]
fn a_campaign_tells_the_same_whatever_the_number_of_workers() {
    let seeds = |jobs: &str| {
        let ended = run(&["fuzz", "selftest", "--seeds", "10..300", "--jobs", jobs, "--format", "json"]);
        assert_eq!(ended.code, Some(1));
        let lines = json(&ended.out);
        let totals = of_kind(&lines, "totals")[0].clone();
        assert_eq!((&totals["seeds"], &totals["ended"]), (&290.into(), &"all-seeds".into()));
        assert_eq!(totals["marks"]["crash"]["seeds"].as_u64().map(|n| n > 0), Some(true));
        of_kind(&lines, "seed").into_iter().cloned().collect::<Vec<_>>()
    };
    let one = seeds("1");
    assert_eq!(
        one.iter().map(|line| line["seed"].as_u64()).collect::<Vec<_>>(),
        (10..300).map(Some).collect::<Vec<_>>()
    );
    for field in ["scenario", "verdict", "digest", "replay"] {
        assert!(one.iter().all(|line| line[field].is_string()), "{field}");
    }
    assert_eq!(one, seeds("3"));
}

#[test]
fn a_find_is_saved_shrunk_and_replayed() {
    let dir = tempfile::tempdir().expect("a directory");
    let ended = run_in(dir.path(), &["fuzz", "selftest", "--seeds", "0..60", "--format", "json"]);
    let lines = json(&ended.out);
    let cases = of_kind(&lines, "case");
    assert!(cases.len() == 2 && cases.iter().all(|case| case["shrunk"]["after"]["operations"] == 3), "{cases:?}");

    let path = cases[0]["case"].as_str().expect("a path");
    let replayed = run_in(dir.path(), &["replay", path, "--format", "json"]);
    assert_eq!((replayed.code, &json(&replayed.out)[0]["departs"]), (Some(0), &Value::Array(Vec::new())));

    // The command that was told replays it as well.
    let command = cases[0]["replay"].as_str().expect("a command");
    let pasted = Command::new("sh").args(["-c", command]).current_dir(&dir).output().expect("sh starts");
    assert_eq!(pasted.status.code(), Some(0));
}

#[test]
fn a_case_that_departs_says_where() {
    let dir = tempfile::tempdir().expect("a directory");
    run_in(dir.path(), &["shrink", "selftest", "--seed", "38", "--save", "."]);
    let name = "selftest-acknowledged-is-served-38.toml";
    let text = std::fs::read_to_string(dir.path().join(name)).expect("it was saved");
    let replay = |text: &str| {
        std::fs::write(dir.path().join("case.toml"), text).expect("written");
        let ended = run_in(dir.path(), &["replay", "case.toml", "--format", "json"]);
        (ended.code, json(&ended.out)[0].clone())
    };
    let departs = |case: &Value, what: &str| case["departs"].to_string().contains(what);

    // Without the failed sync nothing is lost.
    let held = text.lines().filter(|line| !line.starts_with("\"fault/")).collect::<Vec<_>>().join("\n");
    let (code, case) = replay(&held);
    assert_eq!((code, &case["verdict"], &case["holds"]), (Some(1), &"held".into(), &false.into()));
    assert!(departs(&case, "the verdict is held") && departs(&case, "between event"), "{case}");

    // With other latencies the verdict holds and the digest does not, which fails only in the version that wrote it.
    let other = text.replace("\"latency\", ", "");
    let (code, case) = replay(&other);
    assert_eq!((code, &case["verdict"]), (Some(1), &"acknowledged-is-served".into()), "{case}");
    let older = other.replace("found_by = \"stormlog ", "found_by = \"stormlog 0.0.");
    let (code, case) = replay(&older);
    assert_eq!((code, &case["holds"]), (Some(0), &true.into()));
    assert!(departs(&case, "the digest is"), "{case}");

    // An update takes a new digest, and no new verdict.
    let update = |text: &str| {
        std::fs::write(dir.path().join("case.toml"), text).expect("written");
        let ended = run_in(dir.path(), &["replay", "case.toml", "--update", "--format", "json"]);
        let after = std::fs::read_to_string(dir.path().join("case.toml")).expect("it is there");
        (ended.code, json(&ended.out)[0]["updated"].clone(), after)
    };
    let (code, updated, after) = update(&other);
    assert_eq!((code, updated), (Some(0), true.into()));
    assert_eq!((replay(&after).0, after.lines().count()), (Some(0), other.lines().count()));
    assert_eq!(update(&after), (Some(0), false.into(), after));
    assert_eq!(update(&held), (Some(1), false.into(), held));
}

#[test]
fn a_run_that_holds_is_saved_to_be_replayed() {
    let dir = tempfile::tempdir().expect("a directory");
    let saved = run_in(dir.path(), &["run", "selftest", "--seed", "4", "--save", "kept"]);
    assert_eq!(saved.code, Some(0), "{}", saved.err);
    assert!(saved.out.contains("replay kept/selftest-held-4.toml"), "{}", saved.out);
    assert_eq!(run_in(dir.path(), &["replay", "kept/selftest-held-4.toml"]).code, Some(0));
}

#[test]
fn a_case_is_shrunk_in_place() {
    let dir = tempfile::tempdir().expect("a directory");
    run_in(dir.path(), &["fuzz", "selftest", "--seeds", "38..39", "--param", "operations=100"]);
    let path = "stormlog-finds/selftest-acknowledged-is-served-38.toml";
    let before = std::fs::read_to_string(dir.path().join(path)).expect("it was saved");
    let ended = run_in(dir.path(), &["shrink", path, "--format", "json"]);
    assert_eq!((ended.code, &json(&ended.out)[0]["complete"]), (Some(1), &true.into()), "{}", ended.err);
    assert_eq!(std::fs::read_to_string(dir.path().join(path)).expect("it is there"), before, "nothing more could go");
}

#[test]
fn hostile_case_files_are_refused_with_their_line() {
    let dir = tempfile::tempdir().expect("a directory");
    for (text, want) in [
        ("", "case.toml:1: no case file"),
        ("case = 1\nscenario = [", "case.toml:2: "),
        ("case = 99", "another version"),
        ("\u{0}\u{0}", "case.toml:1: "),
        ("case = 1\nscenario = 'selftest'\nseed = -4\n", "case.toml:3: "),
    ] {
        std::fs::write(dir.path().join("case.toml"), text).expect("written");
        let ended = run_in(dir.path(), &["replay", "case.toml"]);
        assert!(ended.code == Some(2) && ended.err.contains(want), "{text:?}: {}", ended.err);
    }
    std::fs::write(dir.path().join("case.toml"), [0xFF, 0xFE]).expect("written");
    assert_eq!(run_in(dir.path(), &["replay", "case.toml"]).code, Some(2));
    assert_eq!(run_in(dir.path(), &["replay", "."]).code, Some(2));
}

#[test]
fn what_a_seed_does_to_its_process_is_a_finding() {
    for (misbehave, verdict, message) in [
        ("panic", "panic", "the selftest was told to panic, at "),
        ("abort", "process-died", "ended by SIGABRT"),
        ("exit", "process-died", "exited with status 7"),
        ("hang", "no-progress", "came to no end in 1s"),
        ("allocate", "allocation-budget", "limits.largest_allocation_bytes"),
        ("reserve", "allocation-budget", "a request of 1125899906842624 bytes"),
    ] {
        // Only a run that hangs is to be given up soon: the host may be busy.
        let patience = if misbehave == "hang" { "1s" } else { "60s" };
        let misbehave = format!("misbehave={misbehave}");
        let every = ["--param", "misbehave_every=20", "--param", "bug=false", "--patience", patience];
        let dir = tempfile::tempdir().expect("a directory");
        let ended = stormlog(dir.path())
            .args(["fuzz", "selftest", "--seeds", "1..40", "--format", "json", "--param", &misbehave])
            .args(every)
            .output();
        let ended = Ended::from(ended.expect("it starts"));
        let lines = json(&ended.out);
        let found: Vec<_> = of_kind(&lines, "seed").into_iter().filter(|line| line["verdict"] != "held").collect();
        assert_eq!((ended.code, found.len()), (Some(1), 1), "{misbehave}: {}", ended.out);
        assert_eq!((&found[0]["seed"], &found[0]["verdict"]), (&20.into(), &verdict.into()), "{misbehave}");
        assert!(found[0]["message"].to_string().contains(message), "{misbehave}: {}", found[0]);
        let totals = of_kind(&lines, "totals")[0];
        assert_eq!((&totals["seeds"], &totals["held"]), (&39.into(), &38.into()), "the campaign went on");

        let case = of_kind(&lines, "case")[0]["case"].as_str().expect("a path");
        let replayed = run_in(dir.path(), &["replay", case, "--patience", patience]);
        assert_eq!(replayed.code, Some(0), "{misbehave}: {}", replayed.out);
    }
}

#[test]
fn beyond_its_limits_a_run_is_a_finding() {
    for (limit, oracle) in [
        ("limits.events=10", "event-budget"),
        ("limits.virtual_ms=0", "virtual-time-budget"),
        ("limits.live_bytes=40000", "allocation-budget"),
        ("limits.allocated_bytes=1000", "allocation-budget"),
    ] {
        let ended = run(&["run", "selftest", "--seed", "4", "--format", "json", "--param", limit]);
        assert_eq!((ended.code, &json(&ended.out)[0]["verdict"]), (Some(1), &oracle.into()), "{limit}");
    }
}

#[test]
fn a_campaign_whose_workers_keep_dying_ends() {
    let ended = run(&["fuzz", "selftest", "--param", "misbehave=abort", "--format", "json"]);
    let lines = json(&ended.out);
    assert_eq!((ended.code, &of_kind(&lines, "totals")[0]["ended"]), (Some(1), &"workers-die".into()));
}

/// A long campaign, in text, whose standard output is piped.
fn long_campaign(dir: &Path) -> Child {
    let mut command = stormlog(dir);
    command.args([
        "fuzz",
        "selftest",
        "--for",
        "60s",
        "--param",
        "operations=2000",
        "--param",
        "sync.failing_percent=1",
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

#[test]
fn ctrl_c_ends_cleanly_with_what_was_found_saved() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut child = long_campaign(dir.path());
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut first = String::new();
    out.read_line(&mut first).expect("a find is told at once");
    assert!(first.starts_with("found acknowledged-is-served at seed "), "{first}");
    kill_process(pid(&child), Signal::INT).expect("it runs");
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    assert!(rest.contains("interrupted") && rest.contains("selftest: FOUND in "), "{rest}");
    let saved = std::fs::read_dir(dir.path().join("stormlog-finds")).expect("the directory is made");
    let saved: Vec<_> = saved.map(|entry| entry.expect("an entry").path()).collect();
    assert!(!saved.is_empty());
    for path in saved {
        assert_eq!(run_in(dir.path(), &["replay", path.to_str().expect("UTF-8")]).code, Some(0), "{path:?}");
    }
}

#[test]
fn a_reader_that_goes_is_no_panic() {
    let dir = tempfile::tempdir().expect("a directory");
    for args in [
        &["fuzz", "selftest", "--for", "60s", "--format", "json"][..],
        &["run", "selftest", "--seed", "4", "--trace", "--param", "operations=20000"],
    ] {
        let mut child =
            stormlog(dir.path()).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let ended = Ended::from(child.wait_with_output().expect("it ends"));
        assert!(matches!(ended.code, Some(0 | 1)), "{args:?}: {:?}", ended.code);
        assert_eq!(ended.err, "", "{args:?}");
    }
}

#[test]
fn a_worker_killed_from_outside_is_a_finding() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut child = stormlog(dir.path())
        .args(["fuzz", "selftest", "--for", "60s", "--jobs", "1", "--param", "bug=false"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let parent = pid(&child).as_raw_nonzero();
    let worker = loop {
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).expect("Linux");
        if let Some(worker) = children.split_whitespace().next() {
            break Pid::from_raw(worker.parse().expect("a process id")).expect("not 0");
        }
    };
    // Well into its work: one that is killed before it is ready is no finding of a seed.
    std::thread::sleep(std::time::Duration::from_millis(500));
    kill_process(worker, Signal::KILL).expect("it runs");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut first = String::new();
    out.read_line(&mut first).expect("the find is told");
    assert!(first.starts_with("found process-died at seed ") && first.contains("SIGKILL"), "{first}");
    kill_process(pid(&child), Signal::INT).expect("it goes on");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
}

#[test]
fn a_campaign_that_dies_leaves_no_worker() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut child = stormlog(dir.path())
        .args(["fuzz", "selftest", "--seeds", "0..1", "--param", "misbehave=hang", "--patience", "1h"])
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let parent = pid(&child).as_raw_nonzero();
    let worker: u32 = loop {
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).expect("Linux");
        if let Some(worker) = children.split_whitespace().next() {
            break worker.parse().expect("a process id");
        }
    };
    std::thread::sleep(std::time::Duration::from_millis(500));
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let is_gone = || {
        let state = std::fs::read_to_string(format!("/proc/{worker}/stat"));
        // Whoever inherits it may not have waited for it yet.
        state.map_or(true, |stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
    };
    while !is_gone() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn golden_vectors() {
    let held = run(&["vectors", "check", "--format", "json"]);
    let lines = json(&held.out);
    let totals = of_kind(&lines, "totals")[0];
    assert_eq!((held.code, &totals["mismatched"]), (Some(0), &0.into()));
    assert_eq!(totals["checked"].as_u64(), Some(of_kind(&lines, "vector").len() as u64));

    let wrong = run(&["vectors", "check", "--exec", "while read -r line; do echo nonsense; done"]);
    assert!(wrong.code == Some(1) && wrong.out.contains("FOUND: "), "{}", wrong.out);
    assert_eq!(run(&["vectors", "check", "missing"]).code, Some(2));
}

#[cfg(not(feature = "planted-faults"))]
#[test]
fn a_build_without_planted_faults_names_one_that_has_them() {
    let ended = run(&["hunt", "--budget-seeds", "10"]);
    let command = "cargo run --release --features planted-faults --target-dir target/planted -- --selftest hunt";
    assert!(ended.code == Some(2) && ended.err.contains(command), "{}", ended.err);
}

#[cfg(feature = "planted-faults")]
#[test]
fn the_hunt_catches_what_is_planted() {
    let dir = tempfile::tempdir().expect("a directory");
    let ended = run_in(dir.path(), &["hunt", "--budget-seeds", "300", "--save", "finds", "--format", "json"]);
    let lines = json(&ended.out);
    let controls = of_kind(&lines, "control");
    assert_eq!((&controls[0]["scenario"], &controls[0]["failed"][0]), (&"selftest".into(), &38.into()));
    assert_eq!((&controls[1]["scenario"], &controls[1]["failed"]), (&"selftest-sound".into(), &Value::Null));
    let faults = of_kind(&lines, "fault");
    assert_eq!(faults.len(), stormlog::planted::Fault::ALL.len());
    for fault in faults {
        let caught = &fault["caught"];
        assert_eq!((&caught["oracle"], &fault["seeds"]), (&"acknowledged-is-served".into(), &39.into()), "{fault}");
        assert_eq!(caught["left"]["operations"], 3, "{fault}");
        let replayed = run_in(dir.path(), &["replay", caught["case"].as_str().expect("a path")]);
        assert_eq!(replayed.code, Some(0), "{}", replayed.out);
    }
    assert_eq!(ended.code, Some(1), "a scenario that fails with nothing planted is no success");
}
