//! State that simulated threads and the host's side of a simulation share without the simulation noticing: histories,
//! mostly.

use std::cell::RefCell;
use std::rc::Rc;

/// A cell that may be captured by simulated threads. Threads change places only at env operations, so that a borrow
/// that makes none is atomic.
pub struct Shared<T>(Rc<RefCell<T>>);

// SAFETY: a simulation, its threads and its oracles never leave their host thread, so neither does this cell; the bound
// on `Env::spawn` asks for `Send` because the real world's threads are others.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as for `Send`.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T: Default> Default for Shared<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Shared<T> {
    /// Makes a cell.
    pub fn new(value: T) -> Self {
        Self(Rc::new(RefCell::new(value)))
    }

    /// Borrows the value. `body` must make no env operation.
    pub fn with<R>(&self, body: impl FnOnce(&mut T) -> R) -> R {
        body(&mut self.0.borrow_mut())
    }
}
