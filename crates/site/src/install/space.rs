//! Free space: that of each file system is compared with all that an installation writes there, before it writes.
//!
//! Content that an interrupted or earlier installation has left counts once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ::bundle::assemble::PROGRAM;
use ::bundle::{BundleFile, BundledImage, blob_path};
use model::size::mib;
use oci::Digest;
use service::{Error, ResultExt as _};

use super::bundled_set::{self, BundledSet};
use super::checks::PodmanStorage;
use super::record::{InstallRecord, backups};
use super::registry_content::registry_images;
use super::version_change::VersionChange;
use super::{boot_images, images};
use crate::pod::compose::{COMPOSE, ComposeProject};
use crate::podman;

/// Units: bytes. For settings, certificates, logs, and the metadata of file systems.
const RESERVE_BYTES: u64 = 256 << 20;
/// Blobs of archives, whose names are their digests.
const BLOBS: &str = "blobs/";
/// Blobs of the registry in its volume. Source: distribution's storage layout.
const STORED: &str = "docker/registry/v2/blobs";
/// Volumes that a backup has, the database apart.
const SAVED: [&str; 2] = ["registry", "api"];
const DATABASE: &str = "db";

/// Bytes to be written, by folder.
#[derive(Debug, Default)]
pub(super) struct SpaceNeeds(Vec<(PathBuf, u64)>);

impl SpaceNeeds {
    /// Those of loading the images of services alone.
    pub(super) fn of_images(bundle: &BundleFile, storage: &PodmanStorage) -> Self {
        let mut needs = Self::default();
        needs.load(bundle, storage, Path::new("."));
        needs
    }

    /// Those of an installation in `dir`.
    ///
    /// Errors: those of podman, of archives, of reading existing content.
    pub(super) fn of(
        bundle: &BundleFile,
        sets: &[BundledSet],
        storage: &PodmanStorage,
        dir: &Path,
        change: &VersionChange,
    ) -> Result<Self, Error> {
        let mut needs = Self::default();
        let program = bundle.member(PROGRAM).map_or(0, |it| it.content_size);
        needs.add(dir, program);
        needs.load(bundle, storage, dir);
        let has_project = dir.join(COMPOSE).exists();
        let project = has_project.then(|| ComposeProject::read(dir)).transpose()?;
        let volume = |name: &str| match &project {
            Some(project) => podman::mountpoint(&project.volume(name)),
            None => Ok(None),
        };
        let registry = volume(SAVED[0])?;
        needs.add(&storage.volumes, growth(bundle, sets, registry.as_deref())?);
        if *change == VersionChange::None {
            return Ok(needs);
        }
        let size = |path: Option<PathBuf>| path.map_or(Ok(0), |path| size(&path));
        let database = size(volume(DATABASE)?)?;
        // The dump of the database is there twice: before it is a part of the backup.
        let mut saved = database.saturating_mul(2);
        for name in SAVED {
            saved += size(volume(name)?)?;
        }
        needs.add(&backups(dir), saved);
        if let VersionChange::Rollback { restored, .. } = change {
            let length =
                fs::metadata(restored).doing(|| format!("reading {}", restored.display()))?;
            // Beside the present data, which is kept.
            needs.add(&storage.volumes, length.len() + database);
        }
        Ok(needs)
    }

    /// Boot images that an earlier version extracted become content of the registry.
    pub(super) fn add_extracted(
        &mut self,
        installed: Option<&InstallRecord>,
        storage: &PodmanStorage,
        dir: &Path,
    ) {
        let written = installed.map(|it| it.offered.boot_images.as_slice());
        let files = boot_images::extracted(written.unwrap_or_default(), dir).into_iter();
        let sizes = files.map(|(path, _)| fs::metadata(path).map_or(0, |it| it.len()));
        self.add(&storage.volumes, sizes.sum());
    }

    /// Compares them with the free space.
    ///
    /// Errors: too little space, with all file systems concerned.
    pub(super) fn check(self) -> Result<(), Error> {
        let mut by_device: BTreeMap<u64, (PathBuf, u64)> = BTreeMap::new();
        for (path, bytes) in self.0 {
            let path = existing(&path);
            let metadata = fs::metadata(&path);
            let metadata = metadata.doing(|| format!("reading {}", path.display()))?;
            by_device
                .entry(metadata.dev())
                .or_insert_with(|| (path, RESERVE_BYTES))
                .1 += bytes;
        }
        let mut problems = Vec::new();
        for (path, needed) in by_device.into_values() {
            let found = rustix::fs::statvfs(&path)
                .doing(|| format!("reading the free space of {}", path.display()))?;
            let free = found.f_bavail * found.f_frsize;
            if free < needed {
                let (needed, free) = (mib(needed), mib(free));
                problems.push(format!(
                    "the file system of {} needs {needed} and has {free} free",
                    path.display()
                ));
            }
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(Error::new("checking the free space", problems.join("; ")))
    }

    fn add(&mut self, path: &Path, bytes: u64) {
        self.0.push((path.to_owned(), bytes));
    }

    /// Images of services that podman does not have, and their layout, which has one at a time.
    fn load(&mut self, bundle: &BundleFile, storage: &PodmanStorage, dir: &Path) {
        let size = |image: &&BundledImage| {
            let sizes = image.content.iter().map(|it| size_of(bundle, it));
            sizes.sum::<u64>()
        };
        let missing = images::missing(bundle);
        let layout = missing.iter().map(size).max().unwrap_or_default();
        self.add(&storage.graph, missing.iter().map(size).sum());
        self.add(dir, layout);
    }
}

/// Units: bytes. Of a blob of the bundle.
fn size_of(bundle: &BundleFile, digest: &Digest) -> u64 {
    let member = bundle.member(&blob_path(digest));
    member.map_or(0, |member| member.content_size)
}

/// Blobs of images, boot images and archives that the registry's volume does not have.
fn growth(bundle: &BundleFile, sets: &[BundledSet], registry: Option<&Path>) -> Result<u64, Error> {
    let mut blobs: BTreeMap<_, _> = boot_images::blobs(bundle).collect();
    for digest in registry_images(bundle).flat_map(|it| &it.content) {
        blobs.insert(blob_path(digest), size_of(bundle, digest));
    }
    for set in sets {
        for (path, place) in bundled_set::open(set)?.below(BLOBS) {
            let digest: Option<Digest> = path.trim_start_matches(BLOBS).parse().ok();
            blobs.extend(digest.map(|digest| (blob_path(&digest), place.size)));
        }
    }
    let is_there = |path: &str| registry.is_some_and(|it| is_stored(it, path));
    let new = blobs.iter().filter(|(path, _)| !is_there(path));
    Ok(new.map(|(_, size)| size).sum())
}

/// Whether the registry's volume has a blob, by its path in a layout. One that cannot be read counts as missing.
fn is_stored(volume: &Path, blob: &str) -> bool {
    let parts: Vec<&str> = blob.split('/').collect();
    let [_, algorithm, hex] = parts.as_slice() else {
        return false;
    };
    let start = hex.get(..2).unwrap_or_default();
    let folder = volume.join(STORED).join(algorithm);
    folder.join(start).join(hex).join("data").exists()
}

/// Units: bytes. Of all files in a folder; volumes of rootless containers are read in podman's user namespace.
fn size(folder: &Path) -> Result<u64, Error> {
    let doing = || format!("reading the size of {}", folder.display());
    match length(folder) {
        Ok(size) => Ok(size),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let path = folder.to_str().unwrap_or_default();
            let text = podman::run(&["unshare", "du", "--summarize", "--bytes", path])?;
            let number = text.split_whitespace().next().unwrap_or_default();
            number.parse().doing(doing)
        }
        Err(error) => Err(Error::new(doing(), error)),
    }
}

fn length(folder: &Path) -> io::Result<u64> {
    let mut size = 0;
    let mut seen = BTreeSet::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            // Of a running service.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            match entry.metadata() {
                Ok(it) if it.is_dir() => pending.push(entry.path()),
                Ok(it) if it.nlink() == 1 || seen.insert(it.ino()) => size += it.len(),
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(size)
}

/// The path, or the closest folder above it that exists.
fn existing(path: &Path) -> PathBuf {
    let mut ancestors = path.ancestors();
    let found = ancestors.find(|path| path.exists());
    match found {
        Some(path) if !path.as_os_str().is_empty() => path.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_in_the_volume_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let digest = Digest::sha256(b"x");
        assert!(!is_stored(dir.path(), &blob_path(&digest)));
        let hex = digest.hex();
        let folder = dir.path().join(STORED).join("sha256").join(&hex[..2]);
        fs::create_dir_all(folder.join(hex)).unwrap();
        assert!(!is_stored(dir.path(), &blob_path(&digest)));
        fs::write(folder.join(hex).join("data"), "x").unwrap();
        assert!(is_stored(dir.path(), &blob_path(&digest)));
    }

    #[test]
    fn needs_of_one_file_system_are_added() {
        let dir = tempfile::tempdir().unwrap();
        let free = rustix::fs::statvfs(dir.path()).unwrap();
        let free = free.f_bavail * free.f_frsize;
        let path = dir.path().join("not/there");
        let needs = |parts: &[u64]| {
            SpaceNeeds(parts.iter().map(|it| (path.clone(), *it)).collect()).check()
        };
        needs(&[0, 1]).unwrap();
        let error = needs(&[free / 2, free / 2]).unwrap_err().to_string();
        assert!(error.contains("needs") && error.contains("free"), "{error}");
        fs::create_dir(dir.path().join("a")).unwrap();
        fs::write(dir.path().join("a/b"), [0; 1000]).unwrap();
        fs::hard_link(dir.path().join("a/b"), dir.path().join("c")).unwrap();
        assert_eq!(size(dir.path()).unwrap(), 1000);
    }
}
