//! The tool under the name `mirror` or `oc-mirror`: translates oc-mirror's flags into ours.
//!
//! Unsupported flags are errors; only flags that change nothing here are ignored.
//!
//! Source: oc-mirror v1, and flags of v2 with the same meaning.

mod command_line;
mod exit_code;
mod flags;
mod translate;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;

use crate::terminal;
use command_line::{CommandLine, UsageError};

/// Program names that select this tool.
const NAMES: [&str; 2] = ["mirror", "oc-mirror"];

/// Whether the program name is one of the tool's.
pub(crate) fn is_program_name(program: Option<&OsString>) -> bool {
    let name = program.and_then(|it| Path::new(it).file_name());
    name.is_some_and(|name| NAMES.iter().any(|it| name == *it))
}

/// Runs the command line; the value is the exit code of the process.
pub(crate) fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let is_v2 = arguments.iter().any(|it| it == "--v2");
    let own = translate::to_own_flags(arguments);
    let mut line =
        match own.and_then(|own| CommandLine::try_parse_from(own).map_err(UsageError::Clap)) {
            Ok(line) => line,
            Err(UsageError::Clap(error)) if !error.use_stderr() => {
                terminal::print(error.render().to_string().trim_end());
                return ExitCode::SUCCESS;
            }
            Err(unusable) => {
                terminal::error(&unusable.to_string());
                return ExitCode::FAILURE;
            }
        };
    line.arguments.run.mark_as_oc_mirror();
    if is_v2 {
        line.arguments.run.use_v2();
    }
    match super::run(&line.arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::error(&crate::failure::text(&error));
            if is_v2 {
                exit_code::of(&error)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_name_selects_the_tool() {
        for (program, expected) in [
            ("/usr/bin/mirror", true),
            ("oc-mirror", true),
            ("atoll", false),
            ("/mirror/atoll", false),
        ] {
            assert_eq!(
                is_program_name(Some(&program.into())),
                expected,
                "{program}"
            );
        }
    }
}
