//! The installer API as a program.

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before threads start: this program is also the launcher of sandboxed programs.
    if let Some(code) = sandbox::entry() {
        return code;
    }
    // For the coverage report; needs neither settings nor a database.
    if std::env::args().nth(1).as_deref() == Some("--operations") {
        let text = api_server::coverage();
        return match std::io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    service::program::main("api-server", api_server::run)
}
