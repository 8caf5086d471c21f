//! Ctrl-C: the first asks the command to end, the second ends the process.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code of a process that SIGINT ended.
const INTERRUPTED: i32 = 130;

/// Whether the user asked the command to end.
#[derive(Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Catches Ctrl-C from now on. Once in a process.
    pub fn catch() -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        let by_handler = asked.clone();
        ctrlc::set_handler(move || {
            if by_handler.swap(true, Ordering::Relaxed) {
                std::process::exit(INTERRUPTED);
            }
        })
        .map_err(io::Error::other)?;
        Ok(Self(asked))
    }

    /// Whether it was.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
