//! Hidden first arguments that turn a program into a process of the sandbox.

use std::process::ExitCode;

use crate::init_request::INIT;
use crate::{guard, init};

/// Runs the guard.
pub(crate) const GUARD: &str = "sandbox-guard";

/// Runs guard or init if the first argument asks for it, and returns their exit code.
///
/// A program that uses a [`Launcher`](crate::Launcher) calls this at the start of `main`, before it starts threads.
pub fn entry() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let first = arguments.nth(1)?;
    // Further arguments belong to a command line of the program.
    if arguments.next().is_some() {
        return None;
    }
    match first.to_str()? {
        GUARD => Some(guard::main()),
        INIT => Some(init::main()),
        _ => None,
    }
}
