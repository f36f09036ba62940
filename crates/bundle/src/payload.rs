//! References inside of images: release payloads, and catalogs of operator indexes.

use std::sync::Arc;

use model::Error;
use model::release_payload::{IMAGE_REFERENCES, ImageReferences};
use oci::{Digest, Kind};
use oci_client::image::{FileSelection, ImageLocation};

use crate::references::References;

/// Label of release images.
const RELEASE: &str = "io.openshift.release";
/// Label of operator indexes: the folder of their catalog.
const CATALOG: &str = "operators.operatorframework.io.index.configs.v1";
/// End of the media types of configurations of images; those of artifacts have other ones.
const CONFIG: &str = "image.v1+json";
const CONFIG_OF_OCI: &str = "image.config.v1+json";
const LIMIT_FILES: usize = 100_000;
/// Units: bytes.
const LIMIT_BYTES: u64 = 1 << 30;

/// Finds the references in one image.
///
/// Errors: the registry's; Invalid – a damaged image or payload.
pub(crate) async fn find(
    references: &mut References,
    name: &str,
    location: &ImageLocation,
    digest: &Digest,
) -> Result<(), Error> {
    let manifest = location.manifest(digest).await?;
    if let Kind::Image { config, .. } = &manifest.kind
        && ![CONFIG, CONFIG_OF_OCI]
            .iter()
            .any(|end| config.media_type.ends_with(end))
    {
        return Ok(());
    }
    let image = location.image(digest).await?;
    let labels = image.labels().await?;
    let catalog = labels
        .get(CATALOG)
        .map(|folder| folder.trim_matches('/').to_owned());
    let folder = match (labels.contains_key(RELEASE), catalog) {
        (true, _) => IMAGE_REFERENCES.to_owned(),
        (false, Some(folder)) => format!("{folder}/"),
        (false, None) => return Ok(()),
    };
    let scratch =
        tempfile::tempdir().map_err(|e| Error::internal("making a temporary folder", e))?;
    let wanted = folder.clone();
    let selection = FileSelection {
        is_wanted: Arc::new(move |path: &str| path.starts_with(&wanted)),
        limit_files: LIMIT_FILES,
        limit_bytes: LIMIT_BYTES,
    };
    let tree = image.fetch_tree(&selection, scratch.path()).await?;
    let read = |path: &std::path::Path| {
        std::fs::read_to_string(path).map_err(|e| Error::internal("reading a file of an image", e))
    };
    if folder == IMAGE_REFERENCES {
        let path = tree.file(IMAGE_REFERENCES);
        let path =
            path.ok_or_else(|| Error::not_found("file", format!("{IMAGE_REFERENCES} in {name}")))?;
        return components(references, name, &read(path)?);
    }
    for (path, file) in tree.below(folder.trim_end_matches('/')) {
        if let Some(file) = file {
            references.find(&format!("{name}: {path}"), &read(file)?)?;
        }
    }
    Ok(())
}

/// The components of a release.
///
/// Errors: Invalid – malformed.
pub(crate) fn components(references: &mut References, name: &str, text: &str) -> Result<(), Error> {
    let read = ImageReferences::parse(text.as_bytes());
    let read =
        read.map_err(|reason| Error::invalid(format!("{IMAGE_REFERENCES} of {name}"), reason))?;
    for (component, image) in &read.images {
        references.add(image, format!("release {name}: {component}"));
    }
    Ok(())
}
