//! The one binary that people run.

use std::process::ExitCode;

fn main() -> ExitCode {
    atoll::main()
}
