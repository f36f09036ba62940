//! Extraction of the catalog from an image's layers.

use std::path::Path;

use catalog::image;
use model::Error;
use oci::Digest;
use oci_client::image::{FolderLimits, ImageLocation};

use super::Staging;

/// Subfolders of the staging folder: final files, and files whose path is not known yet.
pub(super) const CATALOG: &str = "catalog";
const UNNAMED: &str = "unnamed";

/// Extracts the catalog of the image `digest` into a folder below `scratch`.
///
/// Errors: as [`super::CatalogSource::content`].
pub(super) async fn extract(
    place: &ImageLocation,
    digest: &Digest,
    scratch: &Path,
) -> Result<Staging, Error> {
    let found = place.image(digest).await?;
    let labels = found.labels().await?;
    let folder = image::folder(&labels).ok_or_else(|| {
        let reason =
            format!("{place} has an SQLite catalog: convert it with `atoll catalog render`");
        Error::invalid("image", reason)
    })?;
    let staging = Staging::new(scratch)?;
    let (unnamed, catalog) = (staging.folder(UNNAMED)?, staging.folder(CATALOG)?);
    let limits = FolderLimits {
        files: image::FILES_LIMIT,
        bytes: image::BYTES_LIMIT,
    };
    let count = found.fetch_folder(folder, limits, &unnamed, &catalog);
    if count.await? == 0 {
        let reason = format!(
            "{place} has no files below {folder}: its label {} names the folder of the catalog",
            image::FOLDER_LABEL
        );
        return Err(Error::invalid("image", reason));
    }
    Ok(staging)
}
