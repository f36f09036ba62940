//! Paths of the peer's v2 in an archive, besides those of its storage tree.
//!
//! Source: oc-mirror v2, `internal/pkg`.

use oci::{Digest, Tag};

/// Folder of the workspace.
pub(crate) const WORKSPACE: &str = "working-dir/";
/// Start of the configuration's name.
pub(crate) const CONFIGURATION: &str = "isc_";
/// Start of the names of files with the digests of previous archives' blobs, one a line.
pub(crate) const HISTORY: &str = "working-dir/.history/.history-";
/// Folders of the workspace with signatures of releases and with charts.
pub(crate) const SIGNATURES: &str = "working-dir/signatures/";
pub(crate) const CHARTS: &str = "working-dir/helm/charts/";
/// Folder of catalogs, and those below a catalog's folder.
const CATALOGS: &str = "working-dir/operator-catalogs";
const FILTERED: &str = "filtered-catalogs";
pub(crate) const CATALOG_FILES: &str = "catalog-config";
/// Between the release and the hexadecimal digits in the name of a signature.
const SIGNED: &str = "-sha256-";

/// Folder of a catalog, by the last component of its name and by its digest at the source.
pub(crate) fn catalog(component: &str, original: &Digest) -> String {
    format!("{CATALOGS}/{component}/{}", original.hex())
}

/// Folder with those parts of a catalog that were selected, each in a folder with its tag.
pub(crate) fn filtered_catalogs(component: &str, original: &Digest) -> String {
    format!("{}/{FILTERED}", catalog(component, original))
}

/// The folder of such a part.
pub(crate) fn filtered_catalog(component: &str, original: &Digest, tag: &Tag) -> String {
    format!("{}/{tag}", filtered_catalogs(component, original))
}

/// The signature of a release.
pub(crate) fn signature(release: &Tag, digest: &Digest) -> String {
    format!("{SIGNATURES}{release}{SIGNED}{}", digest.hex())
}

/// The digest in the path of a signature.
pub(crate) fn signed(path: &str) -> Option<Digest> {
    let (_, hex) = path.rsplit_once(SIGNED)?;
    format!("sha256:{hex}").parse().ok()
}
