//! Record of an installation, in the folder of the pod.

use std::path::{Path, PathBuf};

use ::bundle::BundleManifest;
use serde::{Deserialize, Serialize};
use service::file::write_atomic;
use service::{Error, ResultExt as _};

use super::bundled_set::BundledSet;
use super::written_entries::WrittenEntries;

const FILE: &str = "installation.json";

/// The installed version. It is written at the end of an installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InstallRecord {
    /// Version of the bundle.
    pub(super) version: String,
    /// Name of the host for users and machines.
    pub(super) host: String,
    /// Checksums of the archives in the registry.
    #[serde(default)]
    pub(super) archives: Vec<String>,
    /// Entries that an earlier version wrote into the settings.
    #[serde(default, skip_serializing_if = "WrittenEntries::is_empty")]
    pub(super) offered: WrittenEntries,
    /// A change to another version that has begun: its backup must not be made again, of migrated data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pending: Option<PendingChange>,
}

/// A change to another version in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PendingChange {
    /// The new version.
    pub(super) to: String,
    /// The complete backup of the old one.
    pub(super) backup: PathBuf,
}

impl InstallRecord {
    pub(super) fn new(manifest: &BundleManifest, host: &str, sets: &[BundledSet]) -> Self {
        let archives = sets.iter().flat_map(|set| &set.checksums);
        Self {
            version: manifest.version.clone(),
            host: host.to_owned(),
            archives: archives.cloned().collect(),
            offered: WrittenEntries::default(),
            pending: None,
        }
    }

    /// Whether the archives of a set are in the registry.
    pub(super) fn has_archives(&self, set: &BundledSet) -> bool {
        set.checksums.iter().all(|it| self.archives.contains(it))
    }

    /// The record of the pod in `dir`; none before the first installation.
    ///
    /// Errors: malformed.
    pub(super) fn read(dir: &Path) -> Result<Option<Self>, Error> {
        let path = dir.join(FILE);
        let doing = || format!("reading {}", path.display());
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).doing(doing),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::new(doing(), e)),
        }
    }

    /// Writes the record.
    ///
    /// Errors: no space.
    pub(super) fn write(&self, dir: &Path) -> Result<(), Error> {
        let text =
            serde_json::to_vec_pretty(self).doing("writing the record of the installation")?;
        write_atomic(&dir.join(FILE), &text, 0o644)
    }
}

/// Folder of the backups that upgrades make: beside the pod's folder, which a restore replaces.
pub(super) fn backups(dir: &Path) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push("-backups");
    name.into()
}
