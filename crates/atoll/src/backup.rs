//! `atoll backup` and `atoll restore`: an installation in one file, consistent while it runs.
//!
//! The file is a tar: a heading, the database, files of clusters, secrets and settings, the registry's content, and at
//! the end an index with the checksum of every member, and its own. Derived data is left out: boot images that the
//! image service fetched, catalog caches, extracted installers, logs. The one invariant: a restore changes nothing
//! before the file is verified, and replaces an installation atomically.

mod content;
mod index;
mod pod;
mod reader;
mod swap;
mod up;
mod walk;
mod writer;

use std::path::{Path, PathBuf};

use clap::Args;
use service::Error;

use crate::{podman, terminal};
use index::InstallationKind;
use reader::Verified;

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

impl BackupArgs {
    /// The backup of the pod in `folder`.
    pub(crate) fn of_pod(file: &Path, folder: PathBuf, verify: bool) -> Self {
        Self {
            file: file.to_owned(),
            data: None,
            pod: Some(folder),
            verify,
        }
    }
}

impl RestoreArgs {
    /// The restore of the pod to `folder`.
    pub(crate) fn of_pod(file: &Path, folder: PathBuf, replace: bool) -> Self {
        Self {
            file: file.to_owned(),
            data: None,
            pod: Some(folder),
            replace,
            verify: false,
        }
    }
}

/// Backs up an installation.
///
/// Errors: the file exists, no space, an unreadable installation.
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

/// Restores an installation.
///
/// Errors: a damaged file, an existing or running installation.
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
                InstallationKind::Up => "it is a backup of `atoll up`: restore it without --pod",
                InstallationKind::Pod => "it is a backup of the pod: restore it with --pod DIR",
            };
            let doing = format!("restoring {}", arguments.file.display());
            Err(Error::new(doing, remedy))
        }
    }
}

/// Verifies `file`: its checksums, and that it has no other members than `atoll backup` writes.
fn verify(file: &Path) -> Result<Verified, Error> {
    let backup = Verified::new(file)?;
    let is_saved = match backup.index.heading.kind {
        InstallationKind::Up => up::is_saved,
        InstallationKind::Pod => pod::is_saved,
    };
    let mut paths = backup.index.members.iter().map(|member| &member.path);
    if let Some(path) = paths.find(|path| !is_saved(path)) {
        let doing = format!("verifying {}", file.display());
        let reason =
            format!("{path:?} is no file of a backup: restore only files of `atoll backup`");
        return Err(Error::new(doing, reason));
    }
    let heading = &backup.index.heading;
    terminal::print(&format!(
        "{}: verified, {} files, saved at {} by version {}.",
        file.display(),
        backup.index.members.len(),
        heading.created_at,
        heading.program
    ));
    Ok(backup)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::index::Heading;
    use super::writer::{BackupWriter, Owner};
    use super::*;

    /// Verifies a backup with one member, whose checksums are right.
    fn verified(kind: InstallationKind, path: &str) -> Result<Verified, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let mut writer = BackupWriter::create(&file, Heading::new(kind)).unwrap();
        writer.add(path, Owner::PRIVATE, 1, &b"x"[..]).unwrap();
        writer.finish(&BTreeSet::new()).unwrap();
        verify(&file).map_err(|error| error.to_string())
    }

    #[test]
    fn only_files_of_backups_are_restored() {
        use InstallationKind::{Pod, Up};
        for (kind, path) in [
            (Up, "database.dump"),
            (Up, "registry-ca.pem"),
            (Up, "env/user.env"),
            (Up, "secrets/database-password"),
            (Up, "api-server/1/host.ign"),
            (Up, "registry/docker/registry/v2/blobs/sha256/ab/abcd/data"),
            (Pod, "database.dump"),
            (Pod, "folder/.env"),
            (Pod, "folder/secrets/ca/key"),
            (Pod, "registry/.atoll/records/pulls"),
        ] {
            verified(kind, path).unwrap();
        }
        for (kind, path) in [
            (Up, "postgres/data/PG_VERSION"),
            (Up, "postgres/data/postgresql.auto.conf"),
            (Up, "postgres/data.part/x"),
            (Up, "env/api-server.env"),
            (Up, "env/user.env/x"),
            (Up, "control/registry.stop"),
            (Up, "api-server/installercache/1/openshift-install"),
            (Up, "registry/.atoll/index.redb"),
            (Up, "image-service/x"),
            (Up, "archives/x"),
            (Up, "lock"),
            (Up, "atoll.json"),
            (Up, "bin/pg_ctl"),
            (Pod, "other"),
            (Pod, "db/pgdata/PG_VERSION"),
            (Pod, "folder/.ssh/authorized_keys"),
            (Pod, "folder/images/x"),
            (Pod, "api-server/installercache/1/openshift-install"),
        ] {
            let error = verified(kind, path).unwrap_err();
            assert!(error.starts_with("verifying "), "{path}: {error}");
        }
    }
}
