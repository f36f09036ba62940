//! The hidden first arguments by which a program becomes a process of the sandbox.

use std::process::ExitCode;

use crate::{guard, init};

/// Makes the program the guard.
pub(crate) const GUARD: &str = "sandbox-guard";
/// Makes the program the first process inside.
pub(crate) const INIT: &str = "sandbox-init";

/// Does the work of the guard or of init where the first argument says so; the exit code then.
///
/// A program that uses a [`Launcher`](crate::Launcher) calls this at the start of `main`, before it has threads.
pub fn entry() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let first = arguments.nth(1)?;
    // More arguments are a command line of the program's own.
    if arguments.next().is_some() {
        return None;
    }
    match first.to_str()? {
        GUARD => Some(guard::main()),
        INIT => Some(init::main()),
        _ => None,
    }
}
