//! Upgrades and their reversal: the database's migrations are forward only, so an older version gets its own data back.

use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ::bundle::BundleManifest;
use semver::Version;
use service::file::folder;
use service::{Error, ResultExt as _};

use super::record::{InstallRecord, PendingChange, backups};
use crate::event::{SiteEvent, SiteObserver};
use crate::pod::compose::ComposeProject;
use crate::pod::lifecycle;

const DATABASE: &str = "db";
/// Boot images are in no backup.
const BOOT_IMAGES: &str = "images";
const EXTENSION: &str = "backup";

/// Effect of a bundle on the installed version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum VersionChange {
    /// A new installation, or the same version.
    None,
    /// To a newer version: the data is backed up before.
    Upgrade {
        /// File of the backup.
        backup: PathBuf,
    },
    /// To an older version: its backup is restored.
    Rollback {
        /// File of the older version's backup.
        restored: PathBuf,
        /// File of the backup of the newer version's data.
        backup: PathBuf,
    },
}

impl VersionChange {
    /// The effect of the bundle.
    ///
    /// Errors: an older version without a backup; malformed versions.
    pub(super) fn of(
        installed: Option<&InstallRecord>,
        manifest: &BundleManifest,
        dir: &Path,
    ) -> Result<Self, Error> {
        let Some(installed) = installed else {
            return Ok(Self::None);
        };
        let parse =
            |text: &str| Version::parse(text).doing(|| format!("comparing the version {text}"));
        let (old, new) = (parse(&installed.version)?, parse(&manifest.version)?);
        let pending = installed
            .pending
            .as_ref()
            .filter(|it| it.to == manifest.version);
        let time = service::clock::now().format("%Y%m%dT%H%M%SZ");
        let name = format!("{old}-before-{new}-{time}.{EXTENSION}");
        let backup = pending.map_or_else(|| backups(dir).join(name), |it| it.backup.clone());
        match new.cmp(&old) {
            Ordering::Equal => Ok(Self::None),
            Ordering::Greater => Ok(Self::Upgrade { backup }),
            Ordering::Less => match newest(&backups(dir), &new) {
                Some(restored) => Ok(Self::Rollback { restored, backup }),
                None => Err(Error::new(
                    format!("returning from version {old} to {new}"),
                    format!(
                        "migrations of the database are forward only, and {} has no backup of version {new}: \
                         `atoll restore` restores one from elsewhere",
                        backups(dir).display()
                    ),
                )),
            },
        }
    }

    /// Whether a backup is restored.
    pub(super) fn restores(&self) -> bool {
        matches!(self, Self::Rollback { .. })
    }

    /// Backs up the data of the installed version, once for each change.
    ///
    /// Errors: those of the backup.
    pub(super) fn before(
        &self,
        dir: &Path,
        installed: Option<&InstallRecord>,
        to: &str,
        observe: SiteObserver<'_>,
    ) -> Result<(), Error> {
        let (Self::Upgrade { backup } | Self::Rollback { backup, .. }, Some(installed)) =
            (self, installed)
        else {
            return Ok(());
        };
        let (version, file) = (&*installed.version, &**backup);
        if installed.pending.is_some() && backup.exists() {
            observe(SiteEvent::BackedUpBefore { version, file });
            return Ok(());
        }
        folder(&backups(dir), 0o700)?;
        let project = ComposeProject::read(dir)?;
        lifecycle::start_existing(&project, DATABASE, observe)?;
        observe(SiteEvent::BackingUp { version, file });
        own(&["backup", "--verify", "--pod"], dir, backup)?;
        // Recorded when the backup is complete, and before anything changes the data.
        let pending = PendingChange {
            to: to.to_owned(),
            backup: backup.clone(),
        };
        let record = InstallRecord {
            pending: Some(pending),
            ..installed.clone()
        };
        record.write(dir)
    }

    /// Restores the backup of the older version.
    ///
    /// Errors: those of the restore.
    pub(super) fn restore(&self, dir: &Path, observe: SiteObserver<'_>) -> Result<(), Error> {
        let Self::Rollback { restored, backup } = self else {
            return Ok(());
        };
        observe(SiteEvent::Returning { restored, backup });
        lifecycle::down(dir)?;
        let before = siblings(dir)?;
        own(&["restore", "--replace", "--pod"], dir, restored)?;
        // The restore has renamed the previous folder.
        let after = siblings(dir)?;
        if let Some(previous) = after.iter().find(|path| !before.contains(path)) {
            let (from, to) = (previous.join(BOOT_IMAGES), dir.join(BOOT_IMAGES));
            if from.is_dir() && fs::remove_dir(&to).is_ok() {
                let renamed = fs::rename(&from, &to);
                renamed.doing(|| format!("moving {}", from.display()))?;
            }
        }
        Ok(())
    }
}

/// The newest backup of a version.
fn newest(folder: &Path, version: &Version) -> Option<PathBuf> {
    let prefix = format!("{version}-before-");
    let entries = fs::read_dir(folder).ok()?.flatten();
    let own = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with(&prefix) && name.ends_with(EXTENSION)
    });
    own.max_by_key(|entry| entry.metadata().and_then(|it| it.modified()).ok())
        .map(|entry| entry.path())
}

fn siblings(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let parent = dir.parent().unwrap_or(dir);
    let entries = fs::read_dir(parent).doing(|| format!("reading {}", parent.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

/// Runs a verb of this program. In a process of its own, since rootless ones continue in podman's user namespace.
fn own(verb: &[&str], dir: &Path, file: &Path) -> Result<(), Error> {
    let doing = || format!("running atoll {}", verb[0]);
    let status = Command::new("/proc/self/exe")
        .args(verb)
        .arg(dir)
        .arg(file)
        .status();
    let status = status.doing(doing)?;
    if status.success() {
        return Ok(());
    }
    Err(Error::new(doing(), status.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(version: &str) -> BundleManifest {
        BundleManifest {
            format: ::bundle::FORMAT,
            version: version.to_owned(),
            architecture: String::new(),
            size: 0,
            images: Vec::new(),
            closure: Vec::new(),
            elsewhere: Vec::new(),
            members: Vec::new(),
        }
    }

    #[test]
    fn older_versions_need_their_backup() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("a pod");
        let mut installed = InstallRecord::new(&manifest("0.2.0"), "h", &[]);
        let change = |installed: &InstallRecord, version| {
            VersionChange::of(Some(installed), &manifest(version), &dir)
        };
        let none = VersionChange::of(None, &manifest("0.1.0"), &dir).unwrap();
        assert_eq!(none, VersionChange::None);
        assert_eq!(change(&installed, "0.2.0").unwrap(), VersionChange::None);
        let VersionChange::Upgrade { backup } = change(&installed, "0.10.0").unwrap() else {
            panic!("no upgrade");
        };
        let name = backup.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("0.2.0-before-0.10.0-"), "{name}");
        let error = change(&installed, "0.1.0").unwrap_err().to_string();
        assert!(error.contains("forward only"), "{error}");
        fs::create_dir(backups(&dir)).unwrap();
        let older = backups(&dir).join("0.1.0-before-0.2.0-20260101T000000Z.backup");
        fs::write(&older, "").unwrap();
        let VersionChange::Rollback { restored, .. } = change(&installed, "0.1.0").unwrap() else {
            panic!("no rollback");
        };
        assert_eq!(restored, older);
        // An interrupted change keeps its backup; another change has its own.
        installed.pending = Some(PendingChange {
            to: "0.10.0".to_owned(),
            backup: "/kept".into(),
        });
        let kept = VersionChange::Upgrade {
            backup: "/kept".into(),
        };
        assert_eq!(change(&installed, "0.10.0").unwrap(), kept);
        assert_ne!(change(&installed, "0.11.0").unwrap(), kept);
    }
}
