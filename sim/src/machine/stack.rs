//! Stacks of simulated threads: guard-paged, and pooled per host thread, because a mapping costs more than a whole
//! simulated thread.
//!
//! Not modelled: stack overflow. It hits the guard page and ends the host process by SIGSEGV, which a campaign reports
//! as a finding of the seed that it was running.

use std::cell::RefCell;

use corosensei::stack::DefaultStack;

/// Bytes of one stack.
const STACK_BYTES: usize = 256 * 1024;
/// Stacks kept for the next simulation.
const POOLED_STACKS_MAX: usize = 256;

/// Simulations never leave their host thread, and neither do their stacks.
mod pool {
    use super::*;
    thread_local! {
        pub(super) static POOL: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
    }
}

/// Takes a stack from the pool, or maps one.
pub(super) fn take() -> DefaultStack {
    pool::POOL
        .with_borrow_mut(Vec::pop)
        .unwrap_or_else(|| DefaultStack::new(STACK_BYTES).expect("the host has address space for a stack"))
}

/// Gives a stack back.
pub(super) fn give_back(stack: DefaultStack) {
    pool::POOL.with_borrow_mut(|pool| {
        if pool.len() < POOLED_STACKS_MAX {
            pool.push(stack);
        }
    });
}
