//! How far a campaign is: a bar on a terminal, a line now and then elsewhere. On standard error.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Shows how far a command is.
pub struct Progress {
    bar: Option<ProgressBar>,
    began: Instant,
    said: Instant,
    seeds: Option<u64>,
    time: Option<Duration>,
}

impl Progress {
    /// Of a number of seeds, or of a time, whichever is known; of both, the one that is nearer its end counts.
    pub fn new(seeds: Option<u64>, time: Option<Duration>) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{wide_bar} {percent:>3}% {msg}").expect("a constant template");
            ProgressBar::new(1000).with_style(style)
        });
        let now = Instant::now();
        Self { bar, began: now, said: now, seeds, time }
    }

    /// Of something whose end is not known.
    pub fn spinner() -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{spinner} {msg}").expect("a constant template");
            ProgressBar::new_spinner().with_style(style)
        });
        let now = Instant::now();
        Self { bar, began: now, said: now, seeds: None, time: None }
    }

    /// Seeds that are done.
    pub fn seeds_done(&mut self, done: u64, findings: u64) {
        let elapsed = self.began.elapsed();
        let of_seeds = self.seeds.map_or(0.0, |seeds| done as f64 / seeds as f64);
        let of_time = self.time.map_or(0.0, |time| elapsed.as_secs_f64() / time.as_secs_f64());
        if let Some(bar) = &self.bar {
            bar.set_position((of_seeds.max(of_time).min(1.0) * 1000.0) as u64);
        }
        let per_s = done as f64 / elapsed.as_secs_f64();
        self.say(&format!("{done} seeds, {per_s:.0}/s, {findings} found"));
    }

    /// What is going on.
    pub fn say(&mut self, message: &str) {
        match &self.bar {
            Some(bar) => {
                bar.set_message(message.to_owned());
                bar.tick();
            }
            None if self.said.elapsed() >= LINE_INTERVAL => {
                self.said = Instant::now();
                // Progress is a courtesy.
                let _ = writeln!(io::stderr(), "{message}");
            }
            None => {}
        }
    }

    /// Runs `print`, which writes to the terminal, with the bar out of its way.
    pub fn aside<R>(&self, print: impl FnOnce() -> R) -> R {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
