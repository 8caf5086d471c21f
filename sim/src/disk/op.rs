//! Names of the disk's operations in the record of a run.
//!
//! Arguments are offset and length; of a name operation the hashes of its paths; of a crash the counts of unsynced
//! changes and names. The result is a length, a hash of the bytes written, or minus the error number.

use crate::record::Op;

pub(super) const OPEN: Op = Op::new("disk-open");
pub(super) const CLOSE: Op = Op::new("disk-close");
pub(super) const READ: Op = Op::new("disk-read");
pub(super) const WRITE: Op = Op::new("disk-write");
pub(super) const ZERO_RANGE: Op = Op::new("disk-zero-range");
pub(super) const PREALLOCATE: Op = Op::new("disk-preallocate");
pub(super) const SET_LEN: Op = Op::new("disk-set-len");
pub(super) const SYNC_BEGIN: Op = Op::new("disk-sync-begin");
pub(super) const SYNC_END: Op = Op::new("disk-sync-end");
pub(super) const CREATE_DIR: Op = Op::new("disk-create-dir");
pub(super) const REMOVE_DIR: Op = Op::new("disk-remove-dir");
pub(super) const REMOVE_FILE: Op = Op::new("disk-remove-file");
pub(super) const RENAME: Op = Op::new("disk-rename");
pub(super) const LIST_DIR: Op = Op::new("disk-list-dir");
pub(super) const EXISTS: Op = Op::new("disk-exists");
pub(super) const LOCK: Op = Op::new("disk-lock");
pub(super) const UNLOCK: Op = Op::new("disk-unlock");
pub(super) const REGION_OPEN: Op = Op::new("disk-region-open");
pub(super) const REGION_WRITE: Op = Op::new("disk-region-write");
pub(super) const KILL: Op = Op::new("disk-kill");
pub(super) const POWER_LOSS: Op = Op::new("disk-power-loss");
pub(super) const CRASH_IMAGE: Op = Op::new("disk-crash-image");
pub(super) const FAULT: Op = Op::new("disk-fault");
pub(super) const DAMAGE: Op = Op::new("disk-damage");
pub(super) const EVICT: Op = Op::new("disk-evict");
