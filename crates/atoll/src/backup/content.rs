//! What of a service's folder is saved, and in which order.
//!
//! Everything that names something is read before what it names, so that a backup of a running installation has no name
//! without content: a name that is there was given after its content. What comes later stays behind; it belongs to the
//! next backup.
//!
//! 1. The database: one snapshot. Files of clusters are stored before the row that says so is committed.
//! 2. Files of clusters.
//! 3. The registry's tags, then the links of manifests, then those of layers and all else of a repository: a push goes
//!    the other way.
//! 4. The registry's blobs: they are there before anything links to them.
//!
//! What is deleted meanwhile is the exception: a link whose blob was collected before it was read is marked in the index
//! and not restored. A cluster that is deleted meanwhile comes back without files, and can be deleted again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use service::Error;

use super::walk;
use super::writer::{BackupWriter, Owner};

/// Where distribution's layout has content.
const BLOBS: &str = "docker/registry/v2/blobs";
/// Uploads that are not complete belong to clients that will not come back.
const UPLOADS: &str = "_uploads";
/// What the registry makes again: its index, journal, locks, and copies of upstream registries' ages.
const OWN: &str = ".atoll";
/// What it cannot make again.
const RECORDS: &str = ".atoll/records";
/// What the API server makes again: extracted installers, and runs of them.
const REMADE: [&str; 2] = ["installercache", "install-config-generate"];
/// Units: bytes. A link has a digest.
const LINK_LIMIT: u64 = 256;

/// Saves a folder as it is.
///
/// Errors: what cannot be read or written.
pub(super) fn folder(writer: &mut BackupWriter, root: &Path, prefix: &str) -> Result<(), Error> {
    walk::files(root, &|_| true, &mut |path, file| {
        writer.add_file(&format!("{prefix}/{path}"), file)
    })
}

/// Saves the files of clusters.
///
/// Errors: what cannot be read or written.
pub(super) fn clusters(writer: &mut BackupWriter, root: &Path, prefix: &str) -> Result<(), Error> {
    let keeps = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        !REMADE.contains(&path) && !name.starts_with('.')
    };
    walk::files(root, &keeps, &mut |path, file| {
        writer.add_file(&format!("{prefix}/{path}"), file)
    })
}

/// Saves a registry's folder; the links whose content was not there.
///
/// Errors: what cannot be read or written.
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

/// Saves a link; the digest in it.
fn link(writer: &mut BackupWriter, member: &str, file: &File) -> Result<String, Error> {
    let doing = || format!("saving {member}");
    let mut digest = String::new();
    file.take(LINK_LIMIT)
        .read_to_string(&mut digest)
        .map_err(|e| Error::new(doing(), e))?;
    let metadata = file.metadata().map_err(|e| Error::new(doing(), e))?;
    let size = digest.len() as u64;
    writer.add(member, Owner::from(&metadata), size, digest.as_bytes())?;
    Ok(digest.trim().to_owned())
}

/// Which references are read when.
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

/// Whether a path of the registry is a reference, or leads to some.
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
    fn what_the_registry_makes_again_is_left_out() {
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
    fn blobs_have_their_digest_in_their_path() {
        assert_eq!(
            digest_of("sha256/ab/abcd/data").as_deref(),
            Some("sha256:abcd")
        );
        assert_eq!(digest_of("sha256/ab/abcd/other"), None);
    }
}
