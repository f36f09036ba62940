//! `atoll backup` and `atoll restore`: an installation in one file.

use std::path::{Path, PathBuf};

use clap::Args;
use model::size::mib;
use service::Error;
use site::backup::{self, Restored, SavedInstallation};

use crate::site_texts::report;
use crate::terminal::print;

/// Arguments of `atoll backup`.
#[derive(Debug, Clone, Args)]
pub(crate) struct BackupArgs {
    /// Backup file to write
    file: PathBuf,
    /// Data directory of `atoll up` (default: as for `up`)
    #[arg(
        long = "dir",
        alias = "data",
        value_name = "DIR",
        conflicts_with = "pod"
    )]
    data: Option<PathBuf>,
    /// Folder of the pod, written by `atoll pod init`
    #[arg(long, value_name = "DIR")]
    pod: Option<PathBuf>,
    /// Verify the written file against its checksums
    #[arg(long)]
    verify: bool,
}

/// Arguments of `atoll restore`.
#[derive(Debug, Clone, Args)]
pub(crate) struct RestoreArgs {
    /// Backup file
    file: PathBuf,
    /// Data directory for `atoll up` (default: as for `up`)
    #[arg(
        long = "dir",
        alias = "data",
        value_name = "DIR",
        conflicts_with = "pod"
    )]
    data: Option<PathBuf>,
    /// Folder for the pod
    #[arg(long, value_name = "DIR")]
    pod: Option<PathBuf>,
    /// Replace an existing installation, which is kept under another name
    #[arg(long)]
    replace: bool,
    /// Only verify the backup file
    #[arg(long)]
    verify: bool,
}

/// Runs `atoll backup`.
///
/// Errors: those of the backup.
pub(crate) fn run(arguments: &BackupArgs) -> Result<(), Error> {
    let installation = named(arguments.pod.clone(), arguments.data.clone());
    save(&arguments.file, &installation, arguments.verify)
}

/// Runs `atoll restore`.
///
/// Errors: those of the restore.
pub(crate) fn run_restore(arguments: &RestoreArgs) -> Result<(), Error> {
    if arguments.verify {
        return backup::verify(&arguments.file, &report);
    }
    let installation = named(arguments.pod.clone(), arguments.data.clone());
    restore(&arguments.file, &installation, arguments.replace)
}

fn named(pod: Option<PathBuf>, data: Option<PathBuf>) -> SavedInstallation {
    pod.map_or(SavedInstallation::Up(data), SavedInstallation::Pod)
}

/// Backs up an installation, and verifies the file if `verify`.
///
/// Errors: those of the backup.
pub(crate) fn save(
    file: &Path,
    installation: &SavedInstallation,
    verify: bool,
) -> Result<(), Error> {
    let Some(saved) = backup::save(file, installation)? else {
        return Ok(());
    };
    let (shown, size) = (file.display(), mib(saved.size));
    print(&format!("{shown}: {size} in {} files.", saved.members));
    if verify {
        backup::verify(file, &report)?;
    }
    Ok(())
}

/// Restores an installation, and prints the next steps.
///
/// Errors: those of the restore.
pub(crate) fn restore(
    file: &Path,
    installation: &SavedInstallation,
    replace: bool,
) -> Result<(), Error> {
    if let Some(restored) = backup::restore(file, installation, replace, &report)? {
        print(&next_steps(&restored));
    }
    Ok(())
}

fn next_steps(restored: &Restored) -> String {
    match restored {
        Restored::Pod(folder) => format!(
            "Restored. Next, in {}: put the boot images into images/, then `podman-compose up -d`. \
             `atoll pod init --host NAME` writes compose.yaml for this version.",
            folder.display()
        ),
        Restored::Up {
            root,
            variables,
            certificate,
            key,
        } => {
            let with = variables.as_ref().map_or_else(String::new, |variables| {
                format!(" --env-file {}", variables.display())
            });
            format!(
                "Restored. Next: atoll up --dir {}{with}\nThe registry's certificate names the host that was saved: on another one, replace {} and {} (`atoll registry cert`).",
                root.display(),
                certificate.display(),
                key.display(),
            )
        }
    }
}
