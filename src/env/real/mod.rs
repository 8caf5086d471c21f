//! The real world: std threads, parking_lot locks, the kernel's files.
