//! The scenarios: what `stormlog scenarios` lists.
//!
#![doc = include_str!("../../docs/scenarios.md")]

pub mod commitlog;
pub mod selftest;

use self::selftest::Selftest;
use crate::scenario::Scenario;

/// Every scenario, in the order in which they are listed.
pub fn all() -> &'static [&'static dyn Scenario] {
    &commitlog::ALL
}

/// Which scenarios names are looked up in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Registry {
    /// [`all`].
    #[default]
    Ordinary,
    /// Only those of [`selftest`], which test the testbed's own command line and are none of the user's business.
    Selftest,
}

impl Registry {
    /// The scenarios of this registry.
    pub fn all(self) -> &'static [&'static dyn Scenario] {
        match self {
            Registry::Ordinary => all(),
            Registry::Selftest => &[&Selftest::Faulty, &Selftest::Sound],
        }
    }

    /// Finds one by name.
    pub fn find(self, name: &str) -> Option<&'static dyn Scenario> {
        self.all().iter().copied().find(|scenario| scenario.name() == name)
    }
}
