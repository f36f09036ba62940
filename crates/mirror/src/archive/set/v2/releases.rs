//! Releases and their components.

use model::Error;
use model::mirror_metadata::ImageType;
use model::release_payload::IMAGE_REFERENCES;
use oci::{Reference, Repository, Tag};

use super::selection::Selection;
use crate::archive::v2_paths::WORKSPACE;
use crate::platform::{COMPONENTS, RELEASE_FILES, RELEASES, components};

/// A payload names some 200 images. Units: bytes.
const REFERENCES_LIMIT_BYTES: u64 = 64 << 20;

/// Adds the images of all releases in the workspace. Those of releases that the configuration no longer selects may be absent.
///
/// Errors: Invalid – a file or name is malformed; Internal – the archive cannot be read.
pub(super) fn add(selection: &mut Selection<'_>) -> Result<(), Error> {
    let below = format!("{WORKSPACE}{RELEASE_FILES}");
    for (path, place) in selection.set.below(&below) {
        let release = path.strip_prefix(&below);
        let release = release.and_then(|it| it.strip_suffix(IMAGE_REFERENCES)?.strip_suffix('/'));
        let Some((name, version)) = release.and_then(|it| it.rsplit_once('/')) else {
            continue;
        };
        let tag: Tag = version.parse()?;
        let payload = (RELEASES.parse()?, tag.clone());
        if selection.tree.tagged(&payload.0, &tag).is_none() {
            continue;
        }
        let bytes = place.read(REFERENCES_LIMIT_BYTES)?;
        let components = components(&bytes).map_err(|reason| Error::invalid(path, reason))?;
        if let Some((_, component)) = components.first() {
            // A release that is named by its digest has the algorithm there.
            let name = name.split_once('@').map_or(name, |(name, _)| name);
            let source = payload_source(name, &tag, component)?;
            selection.add(payload, source, ImageType::OcpRelease);
        }
        let repository: Repository = COMPONENTS.parse()?;
        for (component, source) in components {
            let tag: Tag = format!("{version}-{component}").parse()?;
            let name = (repository.clone(), tag);
            selection.add(name, source, ImageType::OcpReleaseContent);
        }
    }
    Ok(())
}

/// The source of a payload: in the registry and namespace of its components, with the name of the release's folder.
fn payload_source(name: &str, tag: &Tag, component: &Reference) -> Result<Reference, Error> {
    let path = component.repository.as_str();
    let repository = match path.rsplit_once('/') {
        Some((namespace, _)) => format!("{namespace}/{name}").parse()?,
        None => name.parse()?,
    };
    Ok(Reference {
        registry: component.registry.clone(),
        repository,
        tag: Some(tag.clone()),
        digest: None,
    })
}
