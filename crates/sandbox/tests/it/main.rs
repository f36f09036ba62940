//! Break-out attempts. The test binary is launcher, guard, init and evil program in one.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test without the harness; the evil program reads its environment and prints its results"
)]

mod evil;
mod world;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    if let Some(code) = sandbox::entry() {
        return code;
    }
    if let Some(code) = evil::main() {
        return code;
    }
    let arguments = Arguments::from_args();
    let attempts = evil::ATTEMPTS.iter().map(|attempt| {
        Trial::test(format!("break_out::{}", attempt.name), || {
            world::fails(attempt).map_err(Into::into)
        })
    });
    let trials = attempts.chain(world::trials()).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
