//! The archive sets of a bundle, which are read from their place in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ::bundle::BundleFile;
use ::bundle::assemble::ARCHIVES;
use mirror::archive::Set;
use service::{Error, ResultExt as _};

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
