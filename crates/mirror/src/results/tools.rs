//! The same for scripts and container tools.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use model::Error;

use super::file::ResultFile;
use super::mirrors::{MirrorEntry, Scopes};
use super::outcome::MirrorResults;
use crate::content::{ImageContent, SelectedImage};
use crate::platform::BOOT_IMAGE_OFFERS;

/// The names in the target by source, one a line: also for dry runs.
pub fn mapping(outcome: &MirrorResults) -> String {
    let images = outcome.images.iter();
    let images = images.map(|image| format!("{}={}\n", image.source, image.destination));
    let catalogs = outcome.catalogs.iter();
    let catalogs = catalogs.map(|catalog| format!("{}={}\n", catalog.name, catalog.destination));
    let lines: BTreeSet<String> = images.chain(catalogs).collect();
    lines.into_iter().collect()
}

/// The same for a run into an archive, which has no host yet.
pub fn archive_mapping(content: &ImageContent) -> String {
    let lines = content.images.iter().map(|image| {
        let SelectedImage {
            repository, tag, ..
        } = &image.wanted;
        format!("{}=file://{repository}:{tag}\n", image.pinned())
    });
    let lines: BTreeSet<String> = lines.collect();
    lines.into_iter().collect()
}

/// The boot images as a value of the setting `OS_IMAGES`; no file where there are none.
///
/// Errors: Internal.
pub(super) fn os_images(outcome: &MirrorResults) -> Result<Option<ResultFile>, Error> {
    if outcome.boot_images.is_empty() {
        return Ok(None);
    }
    // One line: the files of settings have no longer values.
    let json = serde_json::to_string(&outcome.boot_images);
    let json = json.map_err(|e| Error::internal("writing the boot images", e))?;
    Ok(Some(ResultFile::new(BOOT_IMAGE_OFFERS, json + "\n")))
}

/// The policies for podman, buildah, skopeo and CRI-O. Names have no characters that TOML takes for something else.
pub(super) fn registries_conf(outcome: &MirrorResults) -> String {
    let scopes = Scopes::new(outcome);
    let by_tag = scopes.of(|_, image| image.is_tagged);
    let has_tags = |source: &str, mirror: &String| {
        let mut names = by_tag.iter();
        names.any(|names| names.source == source && names.mirrors.contains(mirror))
    };
    let mut text = String::new();
    for MirrorEntry { mirrors, source } in scopes.of(|_, _| true) {
        // Writing to a text does not fail.
        let _ = writeln!(text, "[[registry]]\nlocation = \"{source}\"\n");
        for mirror in mirrors {
            let _ = writeln!(text, "[[registry.mirror]]\nlocation = \"{mirror}\"");
            if !has_tags(&source, &mirror) {
                text.push_str("pull-from-mirror = \"digest-only\"\n");
            }
            if outcome.is_insecure {
                text.push_str("insecure = true\n");
            }
            text.push('\n');
        }
    }
    text
}
