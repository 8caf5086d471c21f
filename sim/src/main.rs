//! The command line of Stormlog.

fn main() {}
