//! Callers that are told what came of an append instead of waiting for it.

use crate::env::TaskPanic;

use super::error::UnknownError;
use super::receipt::{Level, Receipt};

/// Told once what came of an append.
pub type Callback = Box<dyn FnOnce(Result<Level, UnknownError>) + Send>;

/// What is still to be called.
#[derive(Default)]
pub(super) struct Callbacks {
    pub waiting: Vec<(Receipt, Callback)>,
    /// The first panic of a callback.
    pub panic: Option<TaskPanic>,
}
