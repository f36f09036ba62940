//! Images: the files of their catalog, taken out of the layers.

use std::path::Path;

use catalog::image;
use model::Error;
use oci::Digest;
use oci_client::image::{FolderLimits, ImageLocation};

use super::Staging;

/// Where the files go inside the staging folder, and where they lie before they have their names.
pub(super) const CATALOG: &str = "catalog";
const UNNAMED: &str = "unnamed";

/// The catalog of the image `digest` as a folder below `scratch`.
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
        let reason = format!(
            "{place} holds a database, not files: `atoll catalog render` turns it into files"
        );
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
