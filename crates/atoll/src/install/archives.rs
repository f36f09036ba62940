//! Archives of the bundle: published from their place in it, so that the registry alone writes their bytes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use ::bundle::BundleFile;
use ::bundle::assemble::ARCHIVES;
use ::mirror::archive::{Set, describe};
use ::mirror::history::MetadataStore;
use model::mirror_metadata::MirrorMetadata;
use service::{Error, ResultExt as _};

use super::local_registry::LocalRegistry;
use super::record::InstallRecord;
use crate::{mirror, terminal};

/// Folder for the run, which is removed at the end.
const WORK: &str = "atoll-archives";
/// Files for clusters.
const RESULTS: &str = "mirror-results";

/// An archive set of the bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BundledSet {
    /// Its folder, below the bundle's file.
    pub(super) path: PathBuf,
    /// Checksums of its files.
    pub(super) checksums: Vec<String>,
}

/// The sets in the order in which they are published.
pub(super) fn sets(bundle: &BundleFile) -> Vec<BundledSet> {
    let mut sets: BTreeMap<&Path, Vec<String>> = BTreeMap::new();
    for member in bundle.below(ARCHIVES) {
        if let Some(folder) = Path::new(&member.path).parent() {
            sets.entry(folder).or_default().push(member.sha256.clone());
        }
    }
    let sets = sets.into_iter();
    sets.map(|(folder, checksums)| BundledSet {
        path: bundle.path().join(folder),
        checksums,
    })
    .collect()
}

/// Opens a set.
///
/// Errors: those of the set.
pub(super) fn open(set: &BundledSet) -> Result<Set, Error> {
    Set::open(&set.path)
        .map_err(|e| e.chain())
        .doing(|| format!("reading {}", set.path.display()))
}

/// Publishes sets as `atoll mirror --from` does, except those that the record or the registry lists, and writes the files for
/// clusters.
///
/// Errors: those of archives and of the registry.
pub(super) fn publish(
    sets: &[BundledSet],
    registry: &LocalRegistry,
    dir: &Path,
    installed: Option<&InstallRecord>,
) -> Result<(), Error> {
    let work = dir.join(WORK);
    let removed = |e| Error::new(format!("removing {}", work.display()), e);
    if work.exists() {
        // Of an interrupted installation.
        fs::remove_dir_all(&work).map_err(removed)?;
    }
    let is_recorded = |set: &&BundledSet| installed.is_some_and(|it| it.has_archives(set));
    let sets: Vec<_> = sets.iter().filter(|it| !is_recorded(it)).collect();
    if sets.is_empty() {
        return Ok(());
    }
    let login = work.join("logins.json");
    crate::file::folder(&work, 0o700)?;
    registry.write_login(&login)?;
    for set in sets {
        let mirror = |address: &str, workspace: &Path, more: &[&str]| {
            let target = format!("docker://{address}");
            let mut arguments: Vec<OsString> = vec!["--from".into(), set.path.clone().into()];
            arguments.extend([target.into(), "--dir".into(), workspace.into()]);
            arguments.extend(["--authfile".into(), login.clone().into()]);
            arguments.extend(["--ca".into(), registry.certificate.clone().into()]);
            arguments.extend(more.iter().map(OsString::from));
            mirror::run_with(arguments)
        };
        if !has_later(set, registry)? {
            mirror(&registry.address, &work.join("workspace"), &[])?;
        }
        // Clusters know the registry by the host's name, which need not be known here.
        mirror(&registry.public, &dir.join(RESULTS), &["--manifests-only"])?;
    }
    terminal::clear_progress();
    fs::remove_dir_all(&work).map_err(removed)
}

/// Whether the registry has a later archive of the same set: of an installation that was interrupted after it.
fn has_later(set: &BundledSet, registry: &LocalRegistry) -> Result<bool, Error> {
    let failed = |e: model::Error| Error::new(format!("reading {}", set.path.display()), e.chain());
    let MirrorMetadata {
        uid, past_mirror, ..
    } = describe(&set.path).map_err(failed)?;
    let target = registry.target(&registry.address).map_err(failed)?;
    let store = MetadataStore::in_target(&target, uid).map_err(failed)?;
    let there = registry.run(store.read()).map_err(failed)?;
    Ok(there.is_some_and(|it| it.past_mirror.sequence > past_mirror.sequence))
}
