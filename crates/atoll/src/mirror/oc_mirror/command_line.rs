//! The command line of the tool, and its errors.

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::mirror::MirrorArgs;

/// Mirrors releases, operators and images to disconnected registries.
#[derive(Debug, Parser)]
#[command(name = "mirror")]
pub(super) struct CommandLine {
    #[command(flatten)]
    pub(super) arguments: MirrorArgs,
}

/// Error of a command line.
pub(super) enum UsageError {
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
                    return write!(f, "unknown flag: {unknown}: see `mirror --help`");
                }
                let text = error.render().to_string();
                f.write_str(text.trim_start_matches("error: ").trim_end())
            }
        }
    }
}
