//! Results for clusters and installers: the mirrored content of a target, as resources and as settings.
//!
//! The files are made of [`MirrorResults`] alone; only [`write`] touches the disk. The one invariant: the policies resolve
//! each mirrored image to its own name in the target.
//!
//! Source: results of the peer's v1, and of its v2 for optional ones and for [`v2_files`].

mod catalogs;
mod file;
mod folder;
mod mirrors;
mod outcome;
mod policy;
mod tools;
mod v2;
pub(crate) mod yaml;

use model::Error;
use model::api_group_map::ApiGroupMap;

pub use file::{Copied, ResultFile};
pub use folder::{replace, write, write_manifests};
pub use outcome::{MirrorResults, MirroredCatalog, MirroredImage};
pub use tools::{archive_mapping, mapping};
pub use v2::{FOLDER as V2_FOLDER, v2_files};

/// Remedy for results that [`MirrorResults::names_by_tag`].
pub const NEEDS_TAG_MIRRORS: &str = "catalogs reference images by tag: clusters need the ImageTagMirrorSet that --all-results writes";

/// Optional results, and API groups of all.
#[derive(Debug, Clone, Default)]
pub struct Forms {
    /// Policies as `ImageDigestMirrorSet` and `ImageTagMirrorSet`, which later clusters have instead.
    pub mirror_sets: bool,
    /// Catalogs as `ClusterCatalog`, too.
    pub cluster_catalogs: bool,
    /// The same for podman and its relatives, as `registries.conf`.
    pub registries_conf: bool,
    /// Groups of the clusters, where they are not those of the platform.
    pub api_group_map: ApiGroupMap,
}

/// The files of the results.
///
/// For an image layout, these are its mapping and the signatures of releases.
///
/// Files that clusters do not apply are in folders of their own or are no YAML, so that all others can be applied at once.
///
/// Errors: Invalid – the template of a catalog is malformed.
pub fn files(outcome: &MirrorResults, forms: &Forms) -> Result<Vec<ResultFile>, Error> {
    let mut files = vec![ResultFile::new("mapping.txt", mapping(outcome))];
    let signatures = outcome.signatures.iter();
    files.extend(signatures.map(|(name, content)| {
        ResultFile::new(format!("release-signatures/{name}"), content.clone())
    }));
    if outcome.is_folder {
        return Ok(files);
    }
    files.extend(tools::os_images(outcome)?);
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
        files.push(ResultFile::new(
            "registries.conf",
            tools::registries_conf(outcome),
        ));
    }
    Ok(file::in_groups(files, &forms.api_group_map))
}

#[cfg(test)]
mod tests;
