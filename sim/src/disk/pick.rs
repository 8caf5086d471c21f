//! Who decides what a crash keeps: a seed's choices, or an enumeration of them all.

use crate::choices::{Actor, Family, Ratio, Stream};
use crate::context::Context;

/// Makes the choices of a crash. 0 keeps the most.
pub(super) trait Picks {
    /// Turns to another subject: the `n`-th of a kind.
    fn turn_to(&mut self, kind: &str, n: u64);
    fn below(&mut self, bound: u64) -> u64;
    fn weighted(&mut self, weights: &[u32]) -> usize;
    fn chance(&mut self, ppm: u32) -> bool;
    fn fill(&mut self, bytes: &mut [u8]);
    /// Whether all legal states are wanted, each made of choices of single units.
    fn exhaustive(&self) -> bool;
}

/// Choices of a seed, in the streams of one crash.
pub(super) struct Drawn<'a> {
    ctx: &'a mut Context,
    crash: Actor,
    stream: Stream,
}

impl<'a> Drawn<'a> {
    pub fn new(ctx: &'a mut Context, crash: Actor) -> Self {
        let stream = ctx.stream(Family::Survive, crash);
        Self { ctx, crash, stream }
    }
}

impl Picks for Drawn<'_> {
    fn turn_to(&mut self, kind: &str, n: u64) {
        self.stream = self.ctx.stream(Family::Survive, self.crash.child(kind, n));
    }

    fn below(&mut self, bound: u64) -> u64 {
        if bound == 1 { 0 } else { self.ctx.below(self.stream, bound) }
    }

    fn weighted(&mut self, weights: &[u32]) -> usize {
        self.ctx.weighted(self.stream, weights)
    }

    fn chance(&mut self, ppm: u32) -> bool {
        self.ctx.chance(self.stream, per_million(ppm))
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        self.ctx.fill(self.stream, bytes);
    }

    fn exhaustive(&self) -> bool {
        false
    }
}

/// A rate as a probability; above a million it is certain.
pub(super) fn per_million(ppm: u32) -> Ratio {
    Ratio::new(ppm.min(1_000_000), 1_000_000)
}

/// Goes through all outcomes of a procedure that asks for choices, one after the other.
#[derive(Default)]
pub(super) struct Odometer {
    digits: Vec<(u64, u64)>,
    next: usize,
}

impl Odometer {
    /// Moves to the next outcome; false when all were seen.
    pub fn advance(&mut self) -> bool {
        self.next = 0;
        while let Some((digit, bound)) = self.digits.last_mut() {
            *digit += 1;
            if digit < bound {
                return true;
            }
            self.digits.pop();
        }
        false
    }
}

impl Picks for Odometer {
    fn turn_to(&mut self, _kind: &str, _n: u64) {}

    fn below(&mut self, bound: u64) -> u64 {
        if self.next == self.digits.len() {
            self.digits.push((0, bound));
        }
        self.next += 1;
        let (digit, known) = self.digits[self.next - 1];
        assert_eq!(known, bound, "simulator bug: the same choices led elsewhere");
        digit
    }

    fn weighted(&mut self, _weights: &[u32]) -> usize {
        0
    }

    fn chance(&mut self, _ppm: u32) -> bool {
        false
    }

    fn fill(&mut self, _bytes: &mut [u8]) {}

    fn exhaustive(&self) -> bool {
        true
    }
}
