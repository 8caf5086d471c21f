//! Simulated regions: unsynced writes that take no call, and no time but that of the copy.

use stormlog::env::Region;

use super::SimEnv;
use crate::choices::Family;
use crate::disk::RegionId;

/// A mapped part of a file of the simulated world.
pub struct SimRegion {
    env: SimEnv,
    region: RegionId,
    len: u64,
}

impl SimRegion {
    pub(super) fn new(env: SimEnv, region: RegionId, len: u64) -> Self {
        Self { env, region, len }
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        if !bytes.is_empty() {
            let mut core = self.env.core.get_mut();
            let (disk, ctx) = core.disk_and_ctx();
            // A file that was cut under its mapping is SIGBUS in the real world: the process ends here.
            disk.region_write(ctx, self.region, offset, bytes).expect("a mapped range stays within its file");
        }
    }
}

impl Drop for SimRegion {
    fn drop(&mut self) {
        if self.env.core.get().is_alive(self.env.process) {
            self.env.core.get_mut().disk.region_close(self.region);
        }
    }
}

impl Region for SimRegion {
    fn copy_in(&self, offset: u64, bytes: &[u8]) {
        assert!(offset.checked_add(bytes.len() as u64).is_some_and(|end| end <= self.len), "the bytes fit the region");
        // A process can be killed in the middle of a copy, which need not go from front to back: some range of it is there
        // before the point at which that happens.
        if let Some(me) = self.env.core.stop_is_next(self.env.process) {
            let (from, to) = {
                let mut core = self.env.core.get_mut();
                let actor = core.actor_of(me);
                let stream = core.ctx().stream(Family::Crash, actor);
                let to = core.ctx().range(stream, 0, bytes.len() as u64);
                (core.ctx().range(stream, 0, to), to)
            };
            self.write(offset + from, &bytes[from as usize..to as usize]);
        }
        if self.env.core.point(self.env.process).is_some() {
            self.write(offset, bytes);
        }
    }

    fn len(&self) -> u64 {
        self.len
    }
}
