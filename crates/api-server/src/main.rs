//! The installer API as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before threads start: this program is also the launcher of sandboxed programs.
    if let Some(code) = sandbox::entry() {
        return code;
    }
    service::program::main("api-server", api_server::main)
}
