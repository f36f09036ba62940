//! Launcher of confined programs for tests, whose own program is the test harness's.

use std::process::ExitCode;

fn main() -> ExitCode {
    sandbox::entry().unwrap_or(ExitCode::FAILURE)
}
