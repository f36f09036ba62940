//! The program of all images of services.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before threads start: this program is also the launcher of sandboxed programs.
    if let Some(code) = sandbox::entry() {
        return code;
    }
    services::main(std::env::args_os())
}
