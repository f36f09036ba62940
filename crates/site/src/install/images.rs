//! Images of the services: from the bundle into podman, with their digests, without a registry.

use std::fs;
use std::path::Path;

use ::bundle::{BundleFile, BundledImage, ImageUse};
use service::{Error, ResultExt as _};

use crate::event::{SiteEvent, SiteObserver, SiteWork};
use crate::podman;

/// Temporary folder of the layout; podman names an image after it until it has its own name.
const LAYOUT: &str = "atoll-layout";
const LAYOUT_NAME: &str = "localhost/atoll-layout:latest";

/// Images of services that podman does not have, with exactly their digest.
pub(super) fn missing(bundle: &BundleFile) -> Vec<&BundledImage> {
    let images = bundle.manifest().images.iter();
    let services = images.filter(|image| image.used == ImageUse::Service);
    services
        .filter(|image| digest(&image.name) != Some(image.digest.to_string()))
        .collect()
}

/// Digest of a loaded image.
fn digest(name: &str) -> Option<String> {
    let text = podman::run(&["image", "inspect", "--format", "{{.Digest}}", name]);
    text.ok().map(|text| text.trim().to_owned())
}

/// Loads the missing images of services. `dir` gets the layout, which is removed at the end.
///
/// Errors: those of podman; no space; an image that has another digest afterwards.
pub(super) fn load(
    bundle: &BundleFile,
    dir: &Path,
    observe: SiteObserver<'_>,
) -> Result<(), Error> {
    let missing = missing(bundle);
    let layout = dir.join(LAYOUT);
    let removed = |e| Error::new(format!("removing {}", layout.display()), e);
    if layout.exists() {
        // Of an interrupted installation.
        fs::remove_dir_all(&layout).map_err(removed)?;
    }
    if missing.is_empty() {
        return Ok(());
    }
    // One after the other, so that only the largest one is there twice.
    for image in missing {
        observe(SiteEvent::Working(SiteWork::Loading(&image.name)));
        let loaded = load_one(bundle, image, dir, &layout);
        fs::remove_dir_all(&layout).map_err(removed)?;
        loaded?;
    }
    observe(SiteEvent::Rested);
    Ok(())
}

fn load_one(
    bundle: &BundleFile,
    image: &BundledImage,
    dir: &Path,
    layout: &Path,
) -> Result<(), Error> {
    let doing = || format!("loading {}", image.name);
    bundle
        .extract_layout(&[image], layout)
        .map_err(|e| e.chain())
        .doing(doing)?;
    // A relative name: podman derives the first name of the image from the path, which may have any characters.
    let source = format!("oci:{LAYOUT}:{}", image.name);
    let id = podman::run_in(dir, &["pull", "--quiet", &source])?;
    podman::run(&["tag", id.trim(), &image.name])?;
    podman::run(&["untag", id.trim(), LAYOUT_NAME])?;
    match digest(&image.name) {
        Some(found) if found == image.digest.to_string() => Ok(()),
        found => {
            let found = found.unwrap_or_else(|| "missing".to_owned());
            Err(Error::new(
                doing(),
                format!("it is {found}, and {} in the bundle", image.digest),
            ))
        }
    }
}
