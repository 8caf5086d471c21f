//! A simulated machine: cores, threads, locks, processes, a clock and a disk.
//!
//! Model:
//! * Threads are stackful coroutines. A running thread holds one of N virtual cores; a blocked one holds none, but a task
//!   that blocks holds its worker thread, as in the real world.
//! * Time is virtual. It passes when no thread can run, to the next event: an I/O completion, a timer, the end of CPU
//!   work that was charged, a wake-up. Between two env operations a thread takes no time.
//! * A thread can be preempted at any env operation, atomics included; whether it is, is a choice.
//! * Locks wait as real ones do: fair or barging, by profile or choice. Who waits for whom, and in which order locks
//!   nest, is watched; a cycle is a finding even in a run that did not deadlock.
//! * A machine holds processes. Killing one ends its threads, timers, locks and I/O in flight; the disk stays. Power
//!   loss ends all of them, and the disk keeps what its rules allow. A process is *dead* before any of its threads
//!   unwinds: nothing that a dead or unwinding thread does suspends, panics, or has an effect on the world, except that
//!   a live process's panicking thread still gives up what it holds.
//! * The run can be stopped before any env operation, and resumed, killed, or left there: that is how a crash at every
//!   operation and crash images are made.
//!
//! Not modelled: weak memory order, signals, priority of threads, caches.

mod core;
mod deadlock;
mod host;
mod lock_order;
mod profile;
mod run;
mod schedule;
mod shared;
mod stack;
mod sync;

pub(crate) use self::core::{CoreRef, IoClass};
pub use self::core::{ProcessId, ThreadId};
pub(crate) use host::current;
pub use profile::{LatencyTables, LockModel, Profile, ProfileError, Quantiles};
pub use run::{Machine, Stop};
pub use schedule::SchedulePolicy;
pub use shared::Shared;
pub(crate) use sync::Mode;
