//! Boot images: from the bundle into the local registry, where the API server finds them by the versions in their tags.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::bundle::assemble::{BOOT_IMAGE_LIST, BOOT_IMAGES};
use ::bundle::{BundleFile, BundleMember};
use model::versions::OsImage;
use oci::{Digest, Reference, live_image};
use oci_client::client::BlobSource;
use serde_json::Value;
use service::{Error, ResultExt as _};

use super::local_registry::LocalRegistry;
use super::program::sum;
use crate::event::{SiteEvent, SiteObserver, SiteWork};

/// Units: bytes. The entry of one boot image takes 200.
const LIST_LIMIT_BYTES: u64 = 1 << 20;
/// Addresses of boot images in the folder of the pod, as containers saw it.
const MOUNTED: &str = "file:///images/";

/// A boot image in a file.
struct BootImageFile {
    entry: OsImage,
    sha256: String,
    size: u64,
    source: BlobSource,
}

/// Blobs that the bundle's boot images become, with their lengths.
pub(super) fn blobs(bundle: &BundleFile) -> impl Iterator<Item = (String, u64)> {
    let members = bundle.below(BOOT_IMAGES);
    members.map(|it| (format!("blobs/sha256/{}", it.sha256), it.content_size))
}

/// Pushes the boot images of the bundle.
///
/// Errors: a malformed list; those of the registry.
pub(super) fn push_bundled(
    bundle: &BundleFile,
    registry: &LocalRegistry,
    observe: SiteObserver<'_>,
) -> Result<(), Error> {
    if bundle.member(BOOT_IMAGE_LIST).is_none() {
        return Ok(());
    }
    let doing = "listing the boot images of the bundle";
    let text = bundle.bytes(BOOT_IMAGE_LIST, LIST_LIMIT_BYTES);
    let text = text.map_err(|e| e.chain()).doing(doing)?;
    let entries: Vec<OsImage> = serde_json::from_slice(&text).doing(doing)?;
    for entry in entries {
        let name = file_name(&entry);
        let member = name.and_then(|name| bundle.member(&format!("{BOOT_IMAGES}{name}")));
        let part = |member: &BundleMember| Some((member.sha256.clone(), bundle.source(member)?));
        let Some((member, (sha256, source))) = member.and_then(|it| Some((it, part(it)?))) else {
            return Err(Error::new(doing, format!("{} is not in it", entry.url)));
        };
        let size = member.content_size;
        let image = BootImageFile {
            entry,
            sha256,
            size,
            source,
        };
        image.push(registry, observe)?;
    }
    Ok(())
}

/// Pushes boot images that earlier versions extracted, by their entries of `OS_IMAGES`. A tag that is there stays.
///
/// Errors: those of the registry; a file that cannot be read.
pub(super) fn push_extracted(
    entries: &[Value],
    dir: &Path,
    registry: &LocalRegistry,
    observe: SiteObserver<'_>,
) -> Result<(), Error> {
    for (path, entry) in extracted(entries, dir) {
        let failed = |e: model::Error| Error::new(format!("pushing {}", path.display()), e.chain());
        let place = place(&entry, registry).map_err(failed)?;
        let found = registry.run(registry.client.manifest_digest(&place));
        if found.map_err(failed)?.is_some() {
            continue;
        }
        let doing = || format!("reading {}", path.display());
        let image = BootImageFile {
            size: fs::metadata(&path).doing(doing)?.len(),
            sha256: sum(&path).ok_or_else(|| Error::new(doing(), "it cannot be read"))?,
            source: BlobSource::File(path.clone()),
            entry,
        };
        image.push(registry, observe)?;
    }
    Ok(())
}

/// The files of entries in the folder of the pod that are there.
pub(super) fn extracted(entries: &[Value], dir: &Path) -> Vec<(PathBuf, OsImage)> {
    let entries = entries.iter().filter_map(|entry| {
        let entry: OsImage = serde_json::from_value(entry.clone()).ok()?;
        let path = dir.join(BOOT_IMAGES).join(file_name(&entry)?);
        path.is_file().then_some((path, entry))
    });
    entries.collect()
}

/// Name of the file of an entry.
fn file_name(entry: &OsImage) -> Option<&str> {
    let name = entry.url.strip_prefix(MOUNTED)?;
    (!name.contains('/')).then_some(name)
}

/// The tag of an entry in the registry.
fn place(entry: &OsImage, registry: &LocalRegistry) -> Result<Reference, model::Error> {
    let (version, architecture) = (&entry.openshift_version, entry.cpu_architecture.as_str());
    let tag = live_image::tag(version, architecture)?;
    format!("{}/{}:{tag}", registry.address, live_image::REPOSITORY).parse()
}

impl BootImageFile {
    /// Errors: those of the registry; a file that cannot be read.
    fn push(&self, registry: &LocalRegistry, observe: SiteObserver<'_>) -> Result<(), Error> {
        let name = file_name(&self.entry).unwrap_or_default();
        observe(SiteEvent::Working(SiteWork::Pushing(name)));
        // The version is that of the volume id, which the name of a file need not have.
        let title = match self.entry.version.as_str() {
            "" => name.to_owned(),
            version => format!("{version}.iso"),
        };
        let push = || -> Result<_, model::Error> {
            let place = place(&self.entry, registry)?;
            let digest: Digest = format!("sha256:{}", self.sha256).parse()?;
            let layer = live_image::layer(digest, self.size, title);
            let (client, sent) = (&registry.client, Arc::default());
            let pushed = oci_client::live_image::push(client, &place, &layer, &self.source, &sent);
            registry.run(pushed)
        };
        let pushed = push();
        observe(SiteEvent::Rested);
        pushed
            .map(drop)
            .map_err(|e| e.chain())
            .doing(|| format!("pushing {name}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn extracted_images_are_those_that_are_there() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(BOOT_IMAGES)).unwrap();
        fs::write(dir.path().join("images/a.iso"), "x").unwrap();
        fs::write(dir.path().join("b.iso"), "x").unwrap();
        let image = |url: &str| json!({"openshift_version": "4.18", "cpu_architecture": "arm64", "url": url});
        let entries = [
            "file:///images/a.iso",
            "file:///images/gone.iso",
            "file:///images/../b.iso",
            "https://h.example/a.iso",
            "oci://registry:5000/openshift/boot-images:1-aarch64",
        ];
        let found = extracted(&entries.map(image), dir.path());
        let paths: Vec<_> = found.iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(paths, [dir.path().join("images/a.iso")]);
        assert_eq!(found[0].1.cpu_architecture.as_str(), "arm64");
    }
}
