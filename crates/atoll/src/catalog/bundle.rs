//! Bundle images, rendered.

use std::path::Path;

use ::catalog::DocumentOrigin;
use ::catalog::image::FOLDER_LABEL;
use ::catalog::registry_v1::{
    self, BYTES_LIMIT, BundleFolder, FILES_LIMIT, PACKAGE_LABEL, RenderedBundle,
};
use ::catalog::template::{Bundles, TemplateImage};
use catalog_server::Staging;
use futures_util::StreamExt as _;
use futures_util::stream;
use located_yaml::Position;
use oci::Reference;
use oci_client::image::{FolderLimits, ImageLocation};
use service::Error;

use super::source::Opener;

/// Bundle images that are fetched at once.
const PARALLEL: usize = 6;
/// Folders of a bundle.
const FOLDERS: [&str; 2] = ["manifests", "metadata"];
/// Largest rendered bundles of one template. Units: bytes.
const RENDERED_LIMIT: usize = 512 << 20;

/// A bundle that is not rendered.
pub(super) struct BundleFailure {
    pub(super) place: Position,
    pub(super) why: String,
}

impl Opener {
    /// The bundle of the image `text`; `None` for folders and other images.
    ///
    /// Errors: those of the registry; a malformed bundle.
    pub(super) fn bundle(&self, text: &str) -> Result<Option<RenderedBundle>, Error> {
        let failed = |why: String| Error::new(format!("rendering {text}"), why);
        let Some(location) = Self::source(text)?.location(&self.client) else {
            return Ok(None);
        };
        let name = text.trim_start_matches("docker://");
        let rendered = rendered(&location, name, self.scratch.path());
        self.runtime.block_on(rendered).map_err(failed)
    }

    /// The bundles of images, and all failures.
    pub(super) fn bundles(&self, images: &[&TemplateImage]) -> (Bundles, Vec<BundleFailure>) {
        let each = images.iter().map(|named| async {
            let TemplateImage { image, place } = *named;
            let rendered = self.named(image).await;
            let failed = |why| BundleFailure {
                place: *place,
                why: format!("{image}: {why}"),
            };
            rendered.map(|it| (image.clone(), it)).map_err(failed)
        });
        let (mut bundles, mut failures) = (Bundles::new(), Vec::new());
        let mut bytes = 0;
        self.runtime.block_on(async {
            let mut each = stream::iter(each).buffered(PARALLEL);
            while let Some(done) = each.next().await {
                match done {
                    Ok((image, rendered)) => {
                        bytes += rendered.document.json.len();
                        bundles.insert(image, rendered);
                    }
                    Err(failure) => failures.push(failure),
                }
                if bytes > RENDERED_LIMIT {
                    let place = images.first().map(|it| it.place);
                    failures.push(BundleFailure {
                        place: place.unwrap_or(Position::START),
                        why: format!("the bundles have more than {} MiB", RENDERED_LIMIT >> 20),
                    });
                    break;
                }
            }
        });
        (bundles, failures)
    }

    async fn named(&self, image: &str) -> Result<RenderedBundle, String> {
        let reference: Reference = image.parse().map_err(|e: model::Error| e.to_string())?;
        let location = ImageLocation::Registry {
            client: self.client.clone(),
            reference,
        };
        let rendered = rendered(&location, image, self.scratch.path()).await?;
        rendered.ok_or_else(|| format!("it is no bundle image: it has no label {PACKAGE_LABEL}"))
    }
}

/// The bundle in the folder `path`, without an image.
///
/// Errors: unreadable or malformed files.
pub(super) fn of_folder(path: &Path) -> Result<RenderedBundle, String> {
    let folder = BundleFolder::read(path).map_err(|e| e.to_string())?;
    registry_v1::render(&folder, "", &DocumentOrigin::new(path, 1))
}

async fn rendered(
    location: &ImageLocation,
    name: &str,
    scratch: &Path,
) -> Result<Option<RenderedBundle>, String> {
    let staging = match fetched(location, scratch).await {
        Ok(Some(staging)) => staging,
        Ok(None) => return Ok(None),
        Err(error) => return Err(error.chain()),
    };
    let (name, origin) = (name.to_owned(), DocumentOrigin::new(name, 1));
    let work = move || {
        let folder = BundleFolder::read(staging.path()).map_err(|e| e.to_string())?;
        registry_v1::render(&folder, &name, &origin).map(Some)
    };
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|e| Err(e.to_string()))
}

/// The files of a bundle image.
async fn fetched(
    location: &ImageLocation,
    scratch: &Path,
) -> Result<Option<Staging>, model::Error> {
    let image = location.image(&location.digest().await?).await?;
    let labels = image.labels().await?;
    if !labels.contains_key(PACKAGE_LABEL) || labels.contains_key(FOLDER_LABEL) {
        return Ok(None);
    }
    let staging = Staging::new(scratch)?;
    let limits = FolderLimits {
        files: FILES_LIMIT,
        bytes: BYTES_LIMIT,
    };
    for folder in FOLDERS {
        let unnamed = staging.folder(&format!("unnamed-{folder}"))?;
        let files = staging.folder(folder)?;
        image.fetch_folder(folder, limits, &unnamed, &files).await?;
    }
    Ok(Some(staging))
}
