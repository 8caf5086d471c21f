//! Time: `CLOCK_MONOTONIC`, `CLOCK_REALTIME`, and the C library's notion of the local zone.

use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

#[inline]
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

pub(super) fn sleep_ns(duration_ns: u64) {
    std::thread::sleep(Duration::from_nanos(duration_ns));
}

#[inline]
pub(super) fn civil_ms() -> i64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}

/// 0 for a time whose year the C library cannot hold.
pub(super) fn civil_offset_s(at_civil_ms: i64) -> i32 {
    let at_s: libc::time_t = at_civil_ms.div_euclid(1000);
    let mut broken_down = MaybeUninit::<libc::tm>::uninit();
    // SAFETY: both pointers are to locals of the right type; `localtime_r` keeps neither, and reads the environment,
    // which nobody may change while other threads run (`std::env::set_var` says so).
    let known = unsafe { !libc::localtime_r(&at_s, broken_down.as_mut_ptr()).is_null() };
    // SAFETY: `localtime_r` filled it in, as it returned it.
    if known { unsafe { broken_down.assume_init() }.tm_gmtoff as i32 } else { 0 }
}
