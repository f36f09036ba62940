//! What a cluster and its installer need to know of a target: which content lies where in it, as objects and as settings.
//!
//! The files are made of an [`MirrorResults`] alone; only [`write`] touches the disk. The one invariant: each image of an outcome
//! is found under its own name by whoever follows the policies.
//!
//! Source: results of the peer's v1, and of its v2 for what is made on request.

mod catalogs;
mod folder;
mod mirrors;
mod outcome;
mod policy;
mod tools;
pub(crate) mod yaml;

use bytes::Bytes;
use model::Error;

use crate::archive::Place;

pub(crate) use catalogs::checked_template;
pub use folder::{write, write_manifests};
pub use outcome::{Catalog, MirrorResults, Mirrored};
pub use tools::{archive_mapping, mapping};

/// A file of the results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Relative, without `..`.
    pub path: String,
    pub content: Bytes,
}

/// A file of the results that lies elsewhere until they are written.
#[derive(Debug, Clone)]
pub struct Copied {
    /// Relative, without `..`.
    pub path: String,
    pub from: Place,
}

/// What is made besides what everybody needs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Forms {
    /// Policies as `ImageDigestMirrorSet` and `ImageTagMirrorSet`, which later clusters have instead.
    pub mirror_sets: bool,
    /// Catalogs as `ClusterCatalog`, too.
    pub cluster_catalogs: bool,
    /// The same for podman and its relatives, as `registries.conf`.
    pub registries_conf: bool,
}

/// The files that tell of an outcome.
///
/// Of a folder, that is which image it has, and the signatures of releases.
///
/// Whatever a cluster does not take lies in a folder of its own or is no YAML, so that all others can be applied at once.
///
/// Errors: Invalid – the template of a catalog is none.
pub fn files(outcome: &MirrorResults, forms: Forms) -> Result<Vec<File>, Error> {
    let mut files = vec![File::new("mapping.txt", mapping(outcome))];
    let signatures = outcome.signatures.iter();
    files.extend(
        signatures.map(|(name, content)| {
            File::new(format!("release-signatures/{name}"), content.clone())
        }),
    );
    if outcome.is_folder {
        return Ok(files);
    }
    files.extend(catalogs::sources(outcome)?);
    files.extend(policy::content_policies(outcome)?);
    files.extend(policy::install_config(outcome)?);
    files.extend(policy::update_service(outcome)?);
    if forms.mirror_sets {
        files.extend(policy::mirror_sets(outcome)?);
    }
    if forms.cluster_catalogs {
        files.extend(catalogs::cluster_catalogs(outcome)?);
    }
    if forms.registries_conf {
        files.push(File::new(
            "registries.conf",
            tools::registries_conf(outcome),
        ));
    }
    Ok(files)
}

impl File {
    pub fn new(path: impl Into<String>, content: impl Into<Bytes>) -> Self {
        Self {
            path: path.into(),
            content: content.into(),
        }
    }
}

#[cfg(test)]
mod tests;
