//! Catalogs, wherever they are, opened to be read.

use std::path::Path;
use std::sync::Arc;

use catalog::cache::{BuildError, CatalogCache, build_new};
use catalog::image::{BYTES_LIMIT, FILES_LIMIT, FOLDER_LABEL, folder};
use model::Error;
use oci::Digest;
use oci_client::image::{FolderLimits, ImageLocation};

/// A catalog that was read. Its temporary files are removed with it.
#[derive(Debug)]
pub struct OpenedCatalog {
    /// Its source.
    pub place: ImageLocation,
    /// Digest of the source: an index, or one image.
    pub digest: Digest,
    /// Its packages, without those that no version of opm serves.
    pub cache: Arc<CatalogCache>,
    _folder: tempfile::TempDir,
}

impl OpenedCatalog {
    /// Extracts the catalog's files from its image below `scratch`, and checks each package by itself.
    ///
    /// Errors: NotFound; Invalid – no catalog; others as the client's.
    pub async fn open(place: ImageLocation, scratch: &Path) -> Result<Self, Error> {
        let digest = place.digest().await?;
        let image = place.image(&digest).await?;
        let labels = image.labels().await?;
        let wrong = |reason: &str| Error::invalid("catalog", format!("{place}: {reason}"));
        let inside = folder(&labels).ok_or_else(|| {
            wrong("it holds a database, not files: `atoll catalog render` turns it into files")
        })?;
        let temporary = tempfile::Builder::new()
            .prefix("catalog-")
            .tempdir_in(scratch)
            .map_err(|e| Error::internal("making a folder for a catalog", e))?;
        let make = |name: &str| {
            let path = temporary.path().join(name);
            std::fs::create_dir(&path)
                .map_err(|e| Error::internal(format!("making {}", path.display()), e))?;
            Ok::<_, Error>(path)
        };
        let (unnamed, files) = (make("unnamed")?, make("files")?);
        let limits = FolderLimits {
            files: FILES_LIMIT,
            bytes: BYTES_LIMIT,
        };
        if image.fetch_folder(inside, limits, &unnamed, &files).await? == 0 {
            let reason =
                format!("no files below {inside}: its label {FOLDER_LABEL} names their folder");
            return Err(wrong(&reason));
        }
        let cache = temporary.path().join("cache");
        let doing = format!("reading a catalog into {}", cache.display());
        let work = move || build_new(&files, &cache, catalog::cores());
        let built = tokio::task::spawn_blocking(work)
            .await
            .map_err(|e| Error::internal("reading a catalog", e))?;
        let cache = built.map_err(|e| match e {
            BuildError::Invalid(problems) => {
                wrong(&format!("no package of it is valid\n{problems}"))
            }
            failed => Error::internal(doing, failed),
        })?;
        Ok(Self {
            place,
            digest,
            cache,
            _folder: temporary,
        })
    }
}
