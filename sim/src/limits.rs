//! What one run may use before that alone is a finding.
//!
//! Model: counts of the run itself (events, virtual time) and of the host's memory on its behalf (largest request,
//! live high water, total). All are functions of the seed. Host time is watched from outside, by the campaign.

use serde::{Deserialize, Serialize};

/// Limits of one run: the table `limits` of a scenario's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Most events. A scheduler may stop a run that passes it.
    pub events: u64,
    /// Most virtual time, in milliseconds. A scheduler may stop a run that passes it.
    pub virtual_ms: u64,
    /// Largest single allocation, in bytes.
    pub largest_allocation_bytes: u64,
    /// Most memory live at once, in bytes.
    pub live_bytes: u64,
    /// Most memory allocated over the whole run, freed or not, in bytes.
    pub allocated_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            events: 20_000_000,
            virtual_ms: 24 * 60 * 60 * 1000,
            largest_allocation_bytes: 64 << 20,
            live_bytes: 256 << 20,
            allocated_bytes: 16 << 30,
        }
    }
}
