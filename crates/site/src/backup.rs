//! Backups: an installation in one file, consistent while it runs.
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

use service::Error;
use supervisor::DataDirectory;

use crate::event::{SiteEvent, SiteObserver};
use crate::podman;
use index::InstallationKind;
use reader::Verified;

/// An installation on this machine.
#[derive(Debug, Clone)]
pub enum SavedInstallation {
    /// Of `atoll up`, on a data directory; none for the default of this user.
    Up(Option<PathBuf>),
    /// Of the pod in a folder.
    Pod(PathBuf),
}

/// A backup that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavedBackup {
    /// Units: bytes.
    pub size: u64,
    /// Number of its files.
    pub members: usize,
}

/// A restored installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restored {
    /// Of `atoll up`.
    Up {
        root: PathBuf,
        /// The variables that the user gave to it.
        variables: Option<PathBuf>,
        /// The registry's certificate and key, which name the host that was saved.
        certificate: PathBuf,
        key: PathBuf,
    },
    /// Of the pod in this folder.
    Pod(PathBuf),
}

impl Restored {
    fn up(directory: &DataDirectory) -> Self {
        let variables = directory.user_variables();
        Self::Up {
            root: directory.root().to_owned(),
            variables: variables.exists().then_some(variables),
            certificate: directory.registry_certificate(),
            key: directory.secrets().join("registry.key"),
        }
    }
}

/// Backs up an installation; none if this program ran again in podman's user namespace, and did it there.
///
/// Errors: the file exists, no space, an unreadable installation.
pub fn save(file: &Path, installation: &SavedInstallation) -> Result<Option<SavedBackup>, Error> {
    let saved = match installation {
        SavedInstallation::Pod(folder) if podman::enter(folder)? => return Ok(None),
        SavedInstallation::Pod(folder) => pod::save(file, folder),
        SavedInstallation::Up(data) => up::save(file, data.clone()),
    };
    saved.map(|(size, members)| Some(SavedBackup { size, members }))
}

/// Restores an installation, which replaces an existing one if `replace`; none if this program ran again in podman's user
/// namespace, and did it there.
///
/// Errors: a damaged file, an existing or running installation.
pub fn restore(
    file: &Path,
    installation: &SavedInstallation,
    replace: bool,
    observe: SiteObserver<'_>,
) -> Result<Option<Restored>, Error> {
    if let SavedInstallation::Pod(folder) = installation
        && podman::enter(folder)?
    {
        return Ok(None);
    }
    let backup = verified(file, observe)?;
    let restored = match (installation, backup.index.heading.kind) {
        (SavedInstallation::Pod(folder), InstallationKind::Pod) => {
            pod::restore(&backup, folder, replace, observe).map(Restored::Pod)
        }
        (SavedInstallation::Up(data), InstallationKind::Up) => {
            let restored = up::restore(&backup, data.clone(), replace, observe);
            restored.map(|directory| Restored::up(&directory))
        }
        (_, kind) => {
            let remedy = match kind {
                InstallationKind::Up => "it is a backup of `atoll up`: restore it without --pod",
                InstallationKind::Pod => "it is a backup of the pod: restore it with --pod DIR",
            };
            Err(Error::new(format!("restoring {}", file.display()), remedy))
        }
    };
    restored.map(Some)
}

/// Verifies a backup file: its checksums, and that it has no other members than [`save`] writes.
///
/// Errors: it is damaged, or no backup.
pub fn verify(file: &Path, observe: SiteObserver<'_>) -> Result<(), Error> {
    verified(file, observe).map(drop)
}

fn verified(file: &Path, observe: SiteObserver<'_>) -> Result<Verified, Error> {
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
    observe(SiteEvent::BackupVerified {
        file,
        members: backup.index.members.len(),
        created_at: &heading.created_at,
        program: &heading.program,
    });
    Ok(backup)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::index::Heading;
    use super::writer::{BackupWriter, Owner};
    use super::*;

    /// Verifies a backup with one member, whose checksums are right.
    fn of_one(kind: InstallationKind, path: &str) -> Result<Verified, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let mut writer = BackupWriter::create(&file, Heading::new(kind)).unwrap();
        writer.add(path, Owner::PRIVATE, 1, &b"x"[..]).unwrap();
        writer.finish(&BTreeSet::new()).unwrap();
        verified(&file, &|_| {}).map_err(|error| error.to_string())
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
            of_one(kind, path).unwrap();
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
            let error = of_one(kind, path).unwrap_err();
            assert!(error.starts_with("verifying "), "{path}: {error}");
        }
    }
}
