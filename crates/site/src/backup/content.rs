//! Saved files of the services, and their order.
//!
//! References are read before the content they refer to, so that a backup of a running installation has no dangling
//! reference: content is always stored before its reference. Later writes belong to the next backup.
//!
//! 1. The database: one snapshot. Files of clusters are stored before the row that refers to them is committed.
//! 2. Files of clusters.
//! 3. The registry's tags, then links of manifests, then links of layers and other files of a repository: a push
//!    writes in the reverse order.
//! 4. The registry's blobs, which are stored before their links.
//!
//! Deletions during a backup are the exception: a link whose blob was collected before it was read is marked in the
//! index and not restored. A cluster deleted meanwhile is restored without files, and can be deleted again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use service::{Error, ResultExt as _};

use super::walk;
use super::writer::{BackupWriter, Owner};

/// Blobs in distribution's layout.
const BLOBS: &str = "docker/registry/v2/blobs";
/// Upload sessions, which no client resumes after a restore.
const UPLOADS: &str = "_uploads";
/// Derived data of the registry: index, journal, locks, ages of pull-through content.
const OWN: &str = ".atoll";
/// Records, which are not derived.
const RECORDS: &str = ".atoll/records";
/// Derived data of the API server: extracted installers, and runs of them.
const DERIVED: [&str; 2] = ["installercache", "install-config-generate"];
/// Units: bytes. A link contains a digest.
const LINK_LIMIT: u64 = 256;

/// Saves all files of a folder.
///
/// Errors: reading or writing fails.
pub(super) fn folder(writer: &mut BackupWriter, root: &Path, prefix: &str) -> Result<(), Error> {
    walk::files(root, &|_| true, &mut |path, file| {
        writer.add_file(&format!("{prefix}/{path}"), file)
    })
}

/// Saves the files of clusters.
///
/// Errors: reading or writing fails.
pub(super) fn clusters(writer: &mut BackupWriter, root: &Path, prefix: &str) -> Result<(), Error> {
    walk::files(root, &is_of_clusters, &mut |path, file| {
        writer.add_file(&format!("{prefix}/{path}"), file)
    })
}

/// Whether [`clusters`] enters a folder or saves a file, which are in one that it enters.
fn is_of_clusters(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    !DERIVED.contains(&path) && !name.starts_with('.')
}

/// Whether [`clusters`] saves the file at `path`.
pub(super) fn has_clusters_file(path: &str) -> bool {
    with_folders(path).all(is_of_clusters)
}

/// Whether [`registry`] saves the file at `path`.
pub(super) fn has_registry_file(path: &str) -> bool {
    let below = path.strip_prefix(BLOBS).unwrap_or_default();
    below.starts_with('/') || with_folders(path).all(is_reference)
}

/// The folders that a file is in, and the file itself.
fn with_folders(path: &str) -> impl Iterator<Item = &str> {
    let folders = path.match_indices('/').map(|(end, _)| &path[..end]);
    folders.chain([path])
}

/// Saves a registry's folder and returns its dangling links.
///
/// Errors: reading or writing fails.
pub(super) fn registry(
    writer: &mut BackupWriter,
    root: &Path,
    prefix: &str,
) -> Result<BTreeSet<String>, Error> {
    let mut links: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pass in [Pass::Tags, Pass::Manifests, Pass::Others] {
        walk::files(root, &is_reference, &mut |path, file| {
            if Pass::of(path) != pass {
                return Ok(());
            }
            let member = format!("{prefix}/{path}");
            if !path.ends_with("/link") {
                return writer.add_file(&member, file);
            }
            let digest = link(writer, &member, file)?;
            links.entry(digest).or_default().push(member);
            Ok(())
        })?;
    }
    walk::files(&root.join(BLOBS), &|_| true, &mut |path, file| {
        writer.add_file(&format!("{prefix}/{BLOBS}/{path}"), file)?;
        if let Some(digest) = digest_of(path) {
            links.remove(&digest);
        }
        Ok(())
    })?;
    Ok(links.into_values().flatten().collect())
}

/// Saves a link and returns its digest.
fn link(writer: &mut BackupWriter, member: &str, file: &File) -> Result<String, Error> {
    let doing = || format!("saving {member}");
    let mut digest = String::new();
    file.take(LINK_LIMIT)
        .read_to_string(&mut digest)
        .doing(doing)?;
    let metadata = file.metadata().doing(doing)?;
    let size = digest.len() as u64;
    writer.add(member, Owner::from(&metadata), size, digest.as_bytes())?;
    Ok(digest.trim().to_owned())
}

/// Passes over the references, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Tags,
    Manifests,
    Others,
}

impl Pass {
    fn of(path: &str) -> Self {
        if path.contains("/_manifests/tags/") {
            Self::Tags
        } else if path.contains("/_manifests/") {
            Self::Manifests
        } else {
            Self::Others
        }
    }
}

/// Whether a path of the registry is a reference, or a folder of references.
fn is_reference(path: &str) -> bool {
    let is_own = path.starts_with(OWN) && path != OWN && !path.starts_with(RECORDS);
    let is_upload = path.rsplit('/').next() == Some(UPLOADS);
    path != BLOBS && !is_own && !is_upload
}

/// `sha256/ab/abcd…/data` is `sha256:abcd…`.
fn digest_of(path: &str) -> Option<String> {
    let mut parts = path.split('/');
    let (algorithm, _, hex) = (parts.next()?, parts.next()?, parts.next()?);
    (parts.next()? == "data").then(|| format!("{algorithm}:{hex}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_data_of_the_registry_is_left_out() {
        for path in ["docker", ".atoll", ".atoll/records", ".atoll/records/pulls"] {
            assert!(is_reference(path), "{path}");
        }
        for path in [
            ".atoll/index.redb",
            BLOBS,
            "docker/registry/v2/repositories/a/_uploads",
        ] {
            assert!(!is_reference(path), "{path}");
        }
    }

    #[test]
    fn members_are_those_that_are_saved() {
        for path in [
            "docker/registry/v2/repositories/a/_manifests/tags/t/current/link",
            "docker/registry/v2/blobs/sha256/ab/abcd/data",
            ".atoll/records/pulls",
        ] {
            assert!(has_registry_file(path), "{path}");
        }
        for path in [
            ".atoll/index.redb",
            ".atoll/journal/1",
            "docker/registry/v2/repositories/a/_uploads/1/data",
        ] {
            assert!(!has_registry_file(path), "{path}");
        }
        assert!(has_clusters_file("clusters/1/host.ign"));
        for path in ["installercache/1/installer", ".x", "clusters/.x/y"] {
            assert!(!has_clusters_file(path), "{path}");
        }
    }

    #[test]
    fn digests_are_parsed_from_blob_paths() {
        assert_eq!(
            digest_of("sha256/ab/abcd/data").as_deref(),
            Some("sha256:abcd")
        );
        assert_eq!(digest_of("sha256/ab/abcd/other"), None);
    }
}
