//! The tool under the name `mirror` or `oc-mirror`: the peer's flags as flags of ours.
//!
//! What the peer has and we do not is told, never passed by; only what changes nothing here is taken without effect.
//!
//! Source: the peer's v1, and what of its v2 has the same meaning.

mod exit_code;
mod flags;
mod translate;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::terminal;

/// The names under which the program is this tool alone.
const NAMES: [&str; 2] = ["mirror", "oc-mirror"];

/// Carries releases, operators and images to where there is no internet.
#[derive(Debug, Parser)]
#[command(name = "mirror")]
struct CommandLine {
    #[command(flatten)]
    arguments: super::MirrorArgs,
}

/// Whether the process was called by one of the tool's names.
pub(crate) fn is_meant(program: Option<&OsString>) -> bool {
    let name = program.and_then(|it| Path::new(it).file_name());
    name.is_some_and(|name| NAMES.iter().any(|it| name == *it))
}

/// Does what the command line says; the value is the process's exit code.
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
        // The peer's v2 has no such flag: one image never keeps it from the others.
        line.arguments.run.set_continue_on_error();
    }
    match super::run(&line.arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::error(&error.to_string());
            if is_v2 {
                exit_code::of(&error)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// Why a command line cannot be used.
enum UsageError {
    Clap(clap::Error),
    Flag(String),
}

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(reason) => f.write_str(reason),
            Self::Clap(error) => {
                let unknown = match error.get(ContextKind::InvalidArg) {
                    Some(ContextValue::String(name)) => name.as_str(),
                    _ => "",
                };
                if error.kind() == ErrorKind::UnknownArgument && unknown.starts_with('-') {
                    return write!(
                        f,
                        "unknown flag: {unknown}: `mirror --help` tells those that are known"
                    );
                }
                let text = error.render().to_string();
                f.write_str(text.trim_start_matches("error: ").trim_end())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_whether_it_is_meant() {
        for (program, expected) in [
            ("/usr/bin/mirror", true),
            ("oc-mirror", true),
            ("atoll", false),
            ("/mirror/atoll", false),
        ] {
            assert_eq!(is_meant(Some(&program.into())), expected, "{program}");
        }
    }
}
