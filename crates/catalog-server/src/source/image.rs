//! Images: the files of their catalog, taken out of the layers.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use model::Error;
use oci::Digest;
use oci::image::{Place, Selection, Tree};

use super::Staging;

/// Label that names the folder of the catalog. Source: operator-registry, file-based catalogs.
const FOLDER_LABEL: &str = "operators.operatorframework.io.index.configs.v1";
/// Label of images that have a database instead.
const DATABASE_LABEL: &str = "operators.operatorframework.io.index.database.v1";
/// Where the catalog is when no label says it.
const DEFAULT_FOLDER: &str = "/configs";
/// Files and folders of one catalog; large ones have some thousands.
const FILES_LIMIT: usize = 250_000;
/// Units: bytes. The largest catalogs have some hundred megabytes.
const BYTES_LIMIT: u64 = 8 << 30;
/// Where the files go inside the staging folder, and where they lie before they have their names.
pub(super) const CATALOG: &str = "catalog";
const UNNAMED: &str = "unnamed";

/// The catalog of the image `digest` as a folder below `scratch`.
///
/// Errors: as [`super::Source::content`].
pub(super) async fn extract(
    place: &Place,
    digest: &Digest,
    scratch: &Path,
) -> Result<Staging, Error> {
    let image = place.image(digest).await?;
    let labels = image.labels().await?;
    if labels.contains_key(DATABASE_LABEL) && !labels.contains_key(FOLDER_LABEL) {
        return Err(Error::invalid(
            "image",
            format!(
                "{place} holds a database, not files: `atoll catalog render` turns it into files"
            ),
        ));
    }
    let label = labels.get(FOLDER_LABEL).filter(|folder| !folder.is_empty());
    let folder = label.map_or(DEFAULT_FOLDER, String::as_str);
    let folder = folder.trim_matches('/').to_owned();
    let staging = Staging::new(scratch)?;
    let (unnamed, catalog) = (staging.folder(UNNAMED)?, staging.folder(CATALOG)?);
    let prefix = match folder.as_str() {
        "" => String::new(),
        folder => format!("{folder}/"),
    };
    let selection = Selection {
        is_wanted: Arc::new(move |path| path.starts_with(&prefix)),
        limit_files: FILES_LIMIT,
        limit_bytes: BYTES_LIMIT,
    };
    let tree = image.fetch_tree(&selection, &unnamed).await?;
    let id = place.to_string();
    let work = move || lay_out(&id, &tree, &folder, &catalog);
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Error::internal("laying out a catalog", error)))?;
    Ok(staging)
}

/// Gives the files below `folder` their names below `dest`. Those are relative and go up nowhere, and nothing but
/// plain files and folders is made, so that none of them can lead out.
fn lay_out(image: &str, tree: &Tree, folder: &str, dest: &Path) -> Result<(), Error> {
    let wrong = |path: &str, what: &str| {
        Error::invalid("image", format!("{image}: /{folder}/{path} {what}"))
    };
    let mut count = 0;
    for (path, file) in tree.below(folder) {
        let file = file.ok_or_else(|| wrong(path, "is a link that leads to no file there"))?;
        let target = dest.join(path);
        let named = target
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            // Several names may lead to one file.
            .and_then(|()| fs::hard_link(file, &target));
        named.map_err(|error| match error.kind() {
            ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
                wrong(path, "lies below what is no folder")
            }
            ErrorKind::InvalidFilename => wrong(path, "has a name that is too long"),
            _ => Error::internal(format!("writing {}", target.display()), error),
        })?;
        count += 1;
    }
    if count == 0 {
        let reason = format!(
            "{image} has no files below /{folder}: its label {FOLDER_LABEL} names the folder of the catalog"
        );
        return Err(Error::invalid("image", reason));
    }
    Ok(())
}
