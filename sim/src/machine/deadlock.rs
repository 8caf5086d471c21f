//! The report on threads that wait for ever: who waits, for what, and who holds it.

use std::fmt::Write as _;

use super::core::{Blocked, Core, ThreadState};

impl Core {
    /// Describes every blocked thread of live processes.
    pub(super) fn describe_blocked(&self) -> String {
        let mut text = String::new();
        for thread in &self.threads {
            let ThreadState::Blocked(blocked) = thread.state else { continue };
            if self.processes[thread.process.index()].dead {
                continue;
            }
            let _ = write!(text, "\n  {} waits for {}", thread.name, self.describe(blocked));
            let held: Vec<_> = thread.held.iter().map(|lock| self.locks[*lock].name).collect();
            if !held.is_empty() {
                let _ = write!(text, ", holding {}", held.join(", "));
            }
        }
        text
    }

    pub(super) fn describe(&self, blocked: Blocked) -> String {
        match blocked {
            Blocked::Lock(lock) => {
                let record = &self.locks[lock];
                let mut holders: Vec<_> = record.writer.iter().chain(&record.readers).collect();
                holders.dedup();
                let names: Vec<_> = holders.iter().map(|t| self.threads[t.index()].name.as_str()).collect();
                format!(
                    "lock {} held by {}",
                    record.name,
                    if names.is_empty() { "nobody".into() } else { names.join(", ") }
                )
            }
            Blocked::Condvar(queue) => format!("condition {}", self.queues[queue].name),
            Blocked::Word(queue) => format!("word {}", self.queues[queue].name),
            Blocked::Join(thread) => format!("the end of thread {}", self.threads[thread.index()].name),
            Blocked::Sleep => "a timer".into(),
            Blocked::Io => "input or output".into(),
        }
    }
}
