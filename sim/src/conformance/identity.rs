//! Entropy, process id, cores, and what costs nothing to a caller.

use std::path::Path;

use stormlog::env::{Env, Step};

super::list_cases!("identity": entropy_differs, a_process_has_one_id_and_some_cores, steps_and_marks_are_taken);

fn entropy_differs<E: Env>(env: &E, _: &Path) {
    let (mut first, mut second) = ([0u8; 1000], [0u8; 1000]);
    env.fill_entropy(&mut first);
    env.fill_entropy(&mut second);
    assert_ne!(first, second);
    assert!(first.chunks(20).all(|chunk| chunk.iter().any(|byte| *byte != 0)), "a stretch was left as it was");
    env.fill_entropy(&mut []);
}

fn a_process_has_one_id_and_some_cores<E: Env>(env: &E, _: &Path) {
    assert_eq!(env.process_id(), env.clone().process_id());
    assert!(env.core_count() >= 1);
}

fn steps_and_marks_are_taken<E: Env>(env: &E, _: &Path) {
    for step in Step::ALL {
        env.charge(*step, 0);
        env.charge(*step, 3);
    }
    env.mark("conformance.mark");
}
