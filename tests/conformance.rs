//! The conformance suite over each environment there is.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test stands outside of any simulation")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;

use stormlog::env::Env;
use stormlog::env::real::RealEnv;
use stormlog_sim::choices::{Actor, Overrides};
use stormlog_sim::conformance::{Case, cases};
use stormlog_sim::context::Context;
use stormlog_sim::disk::{Disk, DiskProfile};
use stormlog_sim::env::SimEnv;
use stormlog_sim::limits::Limits;
use stormlog_sim::machine::{Machine, Profile, SchedulePolicy, Stop};

#[test]
fn the_real_world_conforms() {
    run_all(|case: &Case<RealEnv>| {
        let dir = tempfile::tempdir().expect("a temporary directory");
        (case.run)(&RealEnv, dir.path());
    });
}

#[test]
fn the_simulated_world_conforms_as_time_goes() {
    run_all(|case| simulate(case, 0, SchedulePolicy::Timed));
}

#[test]
fn the_simulated_world_conforms_under_any_schedule() {
    run_all(|case| (0..20).for_each(|seed| simulate(case, seed, SchedulePolicy::Random { preempt_every: 4 })));
}

/// Runs every case, and fails with the names of those that failed.
fn run_all<E: Env>(run: impl Fn(&Case<E>)) {
    let mut failed = Vec::new();
    for case in cases::<E>() {
        eprintln!("case {}", case.name);
        if catch_unwind(AssertUnwindSafe(|| run(&case))).is_err() {
            failed.push(case.name);
        }
    }
    assert!(failed.is_empty(), "failed: {failed:?}");
}

fn simulate(case: &Case<SimEnv>, seed: u64, policy: SchedulePolicy) {
    let context = Box::new(Context::new(seed, Overrides::new(), false, false));
    let profile = Profile::built_in("ci").expect("the profile is built in");
    let mut machine = Machine::new(context, Actor::RUN, Rc::new(profile), policy, Disk::new(DiskProfile::default()));
    let run = case.run;
    machine.start("main", move |env| {
        let root = Path::new("/conformance");
        env.create_dir(root).expect("a new directory");
        run(&env, root);
    });
    loop {
        let stop = machine.run(None, Limits::default());
        let mut findings = machine.take_findings();
        findings.retain(|finding| finding.oracle != "no-panic" || !finding.message.contains("on purpose"));
        assert_eq!(findings, [], "seed {seed}");
        match stop {
            Stop::Ended => return,
            // A panic on purpose: go on.
            Stop::Finding => {}
            other => panic!("seed {seed}: {other:?}"),
        }
    }
}
