//! The `atoll` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    atoll::main()
}
