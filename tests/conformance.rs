//! The conformance suite over each environment there is.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test stands outside of any simulation")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use stormlog::env::Env;
use stormlog::env::real::RealEnv;
use stormlog_sim::conformance::{Case, cases};

#[test]
fn the_real_world_conforms() {
    run_all(|case: &Case<RealEnv>| {
        let dir = tempfile::tempdir().expect("a temporary directory");
        (case.run)(&RealEnv, dir.path());
    });
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
