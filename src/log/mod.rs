//! The segmented append-only log: files, positions, staging, sync, acknowledgement. It never parses a record.
