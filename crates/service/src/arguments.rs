//! Arguments of a server.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Arguments of a server.
#[derive(Debug, Clone, Parser)]
pub struct ServerArgs {
    /// File with NAME=value lines, or in another format of this server; the environment overrides it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Check the settings, print all problems, and exit
    #[arg(long)]
    pub check_config: bool,
    /// Exit when standard input ends: for a supervisor that holds the other end of the pipe
    #[arg(long, hide = true)]
    pub supervised: bool,
    #[command(subcommand)]
    pub(crate) command: Option<ServerCommand>,
    /// Variables, in lower case, that override the environment: of a server with a command line of its own
    #[arg(skip)]
    pub overrides: Vec<(String, String)>,
}

impl ServerArgs {
    /// No arguments, and `overrides`.
    pub fn overriding(overrides: Vec<(String, String)>) -> Self {
        Self {
            config: None,
            check_config: false,
            supervised: false,
            command: None,
            overrides,
        }
    }

    /// File of the settings.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        match &self.command {
            Some(ServerCommand::Serve { file: Some(file) }) => Some(file),
            _ => self.config.as_ref(),
        }
    }

    pub(crate) fn is_serving(&self) -> bool {
        matches!(self.command, None | Some(ServerCommand::Serve { .. }))
    }
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ServerCommand {
    /// Serve, as without a command
    Serve {
        /// As --config
        file: Option<PathBuf>,
    },
    /// Print every setting with its default and meaning
    Settings {
        /// Print every limit under these settings: value, scope, and the answer beyond it
        #[arg(long)]
        limits: bool,
    },
    /// Check the health of the running server
    Health {
        /// Check its readiness, including the services it depends on
        #[arg(long)]
        ready: bool,
    },
}
