//! Runs a test once more as a child process: the child finds itself in the same test function, with a directory to work
//! in.

use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = "STORMLOG_TEST_CHILD_ROOT";

/// The directory to work in, if this process is such a child.
pub fn as_child() -> Option<PathBuf> {
    std::env::var_os(ROOT).map(PathBuf::from)
}

/// The command that runs the test `name` of this binary as a child in `root`, put behind `wrapper` if there is one.
pub fn command(wrapper: &[&str], name: &str, root: &Path) -> Command {
    let this_binary = std::env::current_exe().expect("the path of this binary");
    let mut command = match wrapper {
        [] => Command::new(this_binary),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(this_binary);
            command
        }
    };
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(ROOT, root);
    command
}
