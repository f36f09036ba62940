//! `atoll backup` and `atoll restore`: an installation in one file, consistent while it runs.
//!
//! The file is a tar: a heading, the database, files of clusters, secrets and settings, the registry's content, and at
//! the end an index with the checksum of every member, and its own. Left out is what is made again: boot images that
//! the image service fetched, catalogs' caches, extracted installers, logs. The one invariant: a restore touches nothing
//! before the whole file has been verified, and the installation appears as a whole or not at all.

mod content;
mod index;
mod pod;
mod podman;
mod reader;
mod swap;
mod up;
mod walk;
mod writer;

use std::path::PathBuf;

use clap::Args;
use service::Error;

use crate::terminal;
use index::InstallationKind;
use reader::Verified;

/// Arguments of `atoll backup`.
#[derive(Debug, Clone, Args)]
pub(crate) struct BackupArgs {
    /// File to write
    file: PathBuf,
    /// Data directory of `atoll up` (default: as for `up`)
    #[arg(long, value_name = "DIR", conflicts_with = "pod")]
    data: Option<PathBuf>,
    /// Folder of the pod, as `atoll pod init` made it
    #[arg(long, value_name = "DIR")]
    pod: Option<PathBuf>,
    /// Read the file again and compare every byte with its checksum
    #[arg(long)]
    verify: bool,
}

/// Arguments of `atoll restore`.
#[derive(Debug, Clone, Args)]
pub(crate) struct RestoreArgs {
    /// File that `atoll backup` wrote
    file: PathBuf,
    /// Data directory for `atoll up` (default: as for `up`)
    #[arg(long, value_name = "DIR", conflicts_with = "pod")]
    data: Option<PathBuf>,
    /// Folder for the pod
    #[arg(long, value_name = "DIR")]
    pod: Option<PathBuf>,
    /// Replace what is there; it stays beside under another name
    #[arg(long)]
    replace: bool,
    /// Only verify the file
    #[arg(long)]
    verify: bool,
}

/// Saves an installation.
///
/// Errors: the file is there, no space, an installation that cannot be read.
pub(crate) fn save(arguments: &BackupArgs) -> Result<(), Error> {
    let (size, members) = match &arguments.pod {
        Some(folder) if podman::enter(folder)? => return Ok(()),
        Some(folder) => pod::save(&arguments.file, folder)?,
        None => up::save(&arguments.file, arguments.data.clone())?,
    };
    terminal::print(&format!(
        "{}: {} in {members} files.",
        arguments.file.display(),
        terminal::mib(size)
    ));
    if arguments.verify {
        verify(&arguments.file)?;
    }
    Ok(())
}

/// Brings an installation back.
///
/// Errors: a damaged file, an installation that is there or runs.
pub(crate) fn restore(arguments: &RestoreArgs) -> Result<(), Error> {
    if let Some(folder) = &arguments.pod
        && !arguments.verify
        && podman::enter(folder)?
    {
        return Ok(());
    }
    let backup = verify(&arguments.file)?;
    if arguments.verify {
        return Ok(());
    }
    let kind = backup.index.heading.kind;
    match (&arguments.pod, kind) {
        (Some(folder), InstallationKind::Pod) => pod::restore(&backup, folder, arguments.replace),
        (None, InstallationKind::Up) => {
            up::restore(&backup, arguments.data.clone(), arguments.replace)
        }
        (_, kind) => {
            let remedy = match kind {
                InstallationKind::Up => "it is of `atoll up`: restore it without --pod",
                InstallationKind::Pod => "it is of the pod: restore it with --pod DIR",
            };
            let doing = format!("restoring {}", arguments.file.display());
            Err(Error::new(doing, remedy))
        }
    }
}

fn verify(file: &std::path::Path) -> Result<Verified, Error> {
    let backup = Verified::new(file)?;
    let heading = &backup.index.heading;
    terminal::print(&format!(
        "{}: whole, {} files, saved at {} by version {}.",
        file.display(),
        backup.index.members.len(),
        heading.created_at,
        heading.program
    ));
    Ok(backup)
}
