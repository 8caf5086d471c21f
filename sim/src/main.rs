//! The command line of Stormlog.

use std::process::ExitCode;

use stormlog_sim::alloc::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    stormlog_sim::cli::main()
}
