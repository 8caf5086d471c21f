//! Time.

use std::path::Path;

use stormlog::env::{Env, JoinHandle as _};

super::list_cases!("time": never_goes_back, goes_on_while_asleep, zones_have_an_offset_at_any_time);

fn never_goes_back<E: Env>(env: &E, _: &Path) {
    let mut last_ns = env.now_ns();
    for _ in 0..1000 {
        let now_ns = env.now_ns();
        assert!(now_ns >= last_ns, "{now_ns} after {last_ns}");
        last_ns = now_ns;
    }
    let inner = env.clone();
    let thread = env.spawn("later", move || assert!(inner.now_ns() >= last_ns)).expect("a thread");
    thread.join().expect("time that is one to all threads");
}

fn goes_on_while_asleep<E: Env>(env: &E, _: &Path) {
    for duration_ns in [0, 1, 1_000_000, 5_000_000] {
        let before_ns = env.now_ns();
        env.sleep_ns(duration_ns);
        assert!(env.now_ns() - before_ns >= duration_ns, "asleep for less than {duration_ns} ns");
    }
}

fn zones_have_an_offset_at_any_time<E: Env>(env: &E, _: &Path) {
    for at_ms in [env.civil_ms(), 0, -1, 1, 1_700_000_000_000, -1 << 40, 1 << 50, i64::MIN, i64::MAX] {
        let offset_s = env.civil_offset_s(at_ms);
        assert!(offset_s.abs() < 24 * 3600, "an offset of {offset_s} s at {at_ms}");
    }
}
