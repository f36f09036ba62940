//! `atoll pod`: files for `podman-compose up` and `podman play kube`.
//!
//! Containers are started by the engine, not from here.

mod configmap;
mod init;
#[cfg(test)]
mod secret_tests;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use service::Error;

use crate::terminal;
use configmap::SETTINGS;

/// Subcommands for the pod.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum PodCommand {
    /// Write compose.yaml, pod.yml, catalog.yml, .env and secrets into a folder; existing settings and secrets are kept
    Init(init::PodInitArgs),
    /// Print .env as the ConfigMap for `podman play kube pod.yml --configmap FILE`
    Configmap {
        /// Folder of the pod
        #[arg(long, value_name = "DIR", default_value = ".")]
        dir: PathBuf,
    },
}

/// Runs the subcommand.
///
/// Errors: files that cannot be read or written, an invalid host name.
pub(crate) fn run(command: &PodCommand) -> Result<(), Error> {
    match command {
        PodCommand::Init(arguments) => init::run(arguments),
        PodCommand::Configmap { dir } => print_configmap(dir),
    }
}

/// Files of the pod with placeholders, by name: those of its version, and its settings.
pub(crate) fn templates() -> impl Iterator<Item = (&'static str, &'static str)> {
    let settings = ("atoll.env", init::TEMPLATE_OF_SETTINGS);
    init::OF_VERSION.into_iter().chain([settings])
}

fn print_configmap(dir: &Path) -> Result<(), Error> {
    let path = dir.join(SETTINGS);
    let doing = || format!("reading {}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|e| Error::new(doing(), e))?;
    let text = configmap::render(&text)
        .map_err(|number| Error::new(doing(), service::settings::not_a_line(&path, number)))?;
    terminal::print(text.trim_end());
    Ok(())
}
