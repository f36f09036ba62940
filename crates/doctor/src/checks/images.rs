//! Boot images, release images, and images that settings name.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use model::Error;
use model::release_payload::{COMPONENTS, ComponentImages, IMAGE_REFERENCES, ImageReferences};
use net::web::Web;
use oci::{Platform, Reference};
use oci_client::Client;
use oci_client::image::fetch_file;
use registry_content::places;
use url::Url;

use super::clients::registry_client;
use super::findings::{SubjectFinding, SubjectProblem, each};
use crate::CheckStatus::{Failed, Warning};
use crate::site::{BootImage, SiteFacts, shown};

const REMEDY: &str = "check that the registry runs, or the server of the URL";
/// Units: bytes. The primary volume descriptor. Source: ECMA-119, section 8.4.
const DESCRIPTOR: u64 = 16 * 2048;
/// Scheme of images in a registry.
const IN_REGISTRY: &str = "oci://";

/// A client, and whether it has logins.
struct ImageAccess {
    client: Client,
    has_logins: bool,
    /// The place of the logins.
    source: String,
}

impl ImageAccess {
    fn of(site: &SiteFacts) -> Result<Self, Error> {
        Ok(Self {
            client: registry_client(site)?,
            has_logins: site.registry.is_some(),
            source: site
                .registry
                .as_ref()
                .map_or_else(String::new, |it| it.source.clone()),
        })
    }
}

pub(super) async fn releases(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    let Some(releases) = &site.releases else {
        return Vec::new();
    };
    if releases.is_empty() {
        let remedy = "mirror a release into the registry, or name one in RELEASE_IMAGES";
        return vec![SubjectFinding::failed("", "no release is on offer", remedy)];
    }
    let client = ImageAccess::of(&site);
    let subjects = releases
        .iter()
        .map(|one| (one.version.clone(), one))
        .collect();
    each(subjects, REMEDY, |version, release| {
        let (client, site) = (&client, &site);
        async move {
            let mut found = present(client, &release.url, "RELEASE_IMAGES").await;
            if let (Ok(_), Ok(access), Some(set)) = (&found, client, &site.components) {
                let components = release_components(access, &release.url, set).await;
                found = components.and(found);
            }
            // Of several architectures, each needs an image; of one, its own.
            let mut wanted = release.cpu_architectures.clone();
            if wanted.is_empty() {
                wanted.push(release.cpu_architecture.as_str().to_owned());
            }
            let boots = |one: &BootImage| {
                one.openshift_version == release.openshift_version
                    && (wanted.contains(&one.cpu_architecture)
                        || wanted.iter().any(|it| it == "multi"))
            };
            let has_boot_image = site
                .boot_images
                .as_ref()
                .is_none_or(|all| all.iter().any(boots));
            if found.is_ok() && !has_boot_image {
                return SubjectFinding::failed(
                    version,
                    format!(
                        "no boot image for {} ({})",
                        release.openshift_version,
                        wanted.join(", ")
                    ),
                    "add one to OS_IMAGES, with the same openshift_version and architecture",
                );
            }
            SubjectFinding::of(version, found)
        }
    })
    .await
}

/// Checks the images of a release that its hosts run, as far as `set` does not replace them.
///
/// Errors: the finding and its remedy.
async fn release_components(
    access: &ImageAccess,
    release: &str,
    set: &ComponentImages,
) -> Result<(), SubjectProblem> {
    let wanted: Vec<_> = set.missing().collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let own = image_references(&access.client, release).await;
    let own = own.map_err(|error| {
        let remedy = format!("mirror the release again: {release}");
        (Failed, error.chain(), remedy)
    })?;
    let reference: Reference = release
        .parse()
        .map_err(|e: Error| (Failed, e.to_string(), "correct RELEASE_IMAGES".to_owned()))?;
    for component in wanted {
        let (name, setting) = (component.name, component.setting);
        let Some(image) = own.image(name) else {
            return Err((
                Failed,
                format!("{release} has no image {name}, as those before 4.12"),
                format!("set {setting} to an image of it"),
            ));
        };
        let image: Reference = image
            .parse()
            .map_err(|e: Error| (Failed, e.to_string(), format!("set {setting}")))?;
        // The mirrors of the settings first, then where mirroring tools put images of a release.
        let found = access.client.manifest_digest(&image).await;
        let mut is_there = matches!(found, Ok(Some(_)));
        for place in places(&image, &reference, "") {
            is_there =
                is_there || matches!(access.client.manifest_digest(&place).await, Ok(Some(_)));
        }
        if !is_there {
            let why = found
                .err()
                .map_or_else(String::new, |e| format!(": {}", e.chain()));
            return Err((
                Failed,
                format!("{name} of the release cannot be pulled, {image}{why}"),
                format!("mirror the release again, or set {setting}"),
            ));
        }
    }
    Ok(())
}

async fn image_references(client: &Client, release: &str) -> Result<ImageReferences, Error> {
    let reference: Reference = release.parse()?;
    let failed = |e| Error::internal("reading a file of a release", e);
    let folder = tempfile::tempdir().map_err(failed)?;
    let path = folder.path().join("image-references");
    // Of a release for several architectures, this file is the same in all.
    let platform = Platform::linux("amd64");
    fetch_file(client, &reference, &platform, IMAGE_REFERENCES, &path).await?;
    let json = tokio::fs::read(&path).await.map_err(failed)?;
    let parsed = ImageReferences::parse(&json);
    parsed.map_err(|reason| Error::invalid(IMAGE_REFERENCES, format!("{release}: {reason}")))
}

pub(super) async fn named(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    let client = ImageAccess::of(&site);
    let images = site.images.iter();
    let images = images.map(|one| (one.setting.clone(), one.reference.as_str()));
    let components = site.components.iter().flat_map(|set| {
        let all = COMPONENTS.iter().zip(set.references());
        let set = all.filter(|(_, reference)| !reference.is_empty());
        set.map(|(component, reference)| (component.setting.to_owned(), reference))
    });
    let subjects = components.chain(images).collect();
    each(subjects, REMEDY, |setting, reference| {
        let client = &client;
        async move {
            let found = present(client, reference, &setting).await;
            SubjectFinding::of(setting, found)
        }
    })
    .await
}

/// Errors: the finding and its remedy.
async fn present(
    client: &Result<ImageAccess, Error>,
    text: &str,
    setting: &str,
) -> Result<String, SubjectProblem> {
    let failed = |finding: String| {
        let remedy = format!("push {text} to the registry, or correct {setting}");
        (Failed, finding, remedy)
    };
    let access = match client {
        Ok(access) => access,
        Err(error) => return Err(failed(error.to_string())),
    };
    let reference: Reference = text.parse().map_err(|e: Error| failed(e.to_string()))?;
    match access.client.manifest_digest(&reference).await {
        Ok(Some(_)) => Ok(format!("{text} is in the registry")),
        Ok(None) => Err(failed(format!("{text} is not in the registry"))),
        Err(Error::Unauthenticated { .. } | Error::Forbidden { .. }) if !access.has_logins => {
            Err((
                Warning,
                format!("{text} needs a login, which this server does not have"),
                "run `atoll doctor` on the host of the registry".to_owned(),
            ))
        }
        Err(Error::Unauthenticated { .. } | Error::Forbidden { .. }) => {
            let remedy = format!(
                "add a login for {text} to {}, or correct {setting}",
                access.source
            );
            Err((Failed, format!("{text} needs another login"), remedy))
        }
        Err(error) => Err(failed(format!("{text} cannot be read: {}", error.chain()))),
    }
}

pub(super) async fn boot_images(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    let Some(images) = &site.boot_images else {
        return Vec::new();
    };
    if images.is_empty() {
        let remedy = "put a live image into the folder images, and name it in OS_IMAGES";
        return vec![SubjectFinding::failed(
            "",
            "no boot image is on offer",
            remedy,
        )];
    }
    let client = ImageAccess::of(&site);
    let name = |one: &BootImage| {
        let name = format!("{}/{}", one.openshift_version, one.cpu_architecture);
        match one.os_stream.as_str() {
            "" => name,
            stream => format!("{name}/{stream}"),
        }
    };
    let subjects = images.iter().map(|one| (name(one), one)).collect();
    each(subjects, REMEDY, |name, image| {
        let (client, ca) = (&client, site.ca_pem.as_deref());
        async move {
            let found = boot_image(client, ca, image).await;
            SubjectFinding::of(name, found)
        }
    })
    .await
}

/// Errors: the finding and its remedy.
async fn boot_image(
    client: &Result<ImageAccess, Error>,
    ca: Option<&[u8]>,
    image: &BootImage,
) -> Result<String, SubjectProblem> {
    if let Some(reference) = image.url.strip_prefix(IN_REGISTRY) {
        return present(client, reference, "OS_IMAGES").await;
    }
    if let Some(path) = image.path.clone() {
        let remedy = format!("put the whole image there: {}", path.display());
        let shown = path.display().to_string();
        let length = tokio::task::spawn_blocking(move || iso_length(&path)).await;
        return match length {
            Ok(Ok(length)) => Ok(format!("{shown} is whole ({} MiB)", length >> 20)),
            Ok(Err(reason)) => Err((Failed, format!("{shown}: {reason}"), remedy)),
            Err(error) => Err((Failed, error.to_string(), remedy)),
        };
    }
    let correct = || "correct the URL in OS_IMAGES, or the server behind it".to_owned();
    let url = Url::parse(&image.url).map_err(|e| (Failed, format!("no URL: {e}"), correct()))?;
    let found = match Web::new(ca) {
        Ok(web) => web.size(&url).await,
        Err(error) => Err(error),
    };
    match found {
        Ok(size) if size > DESCRIPTOR => Ok(format!("{} has {} MiB", shown(&url), size >> 20)),
        Ok(size) => Err((
            Failed,
            format!("{} has {size} bytes: no image", shown(&url)),
            correct(),
        )),
        Err(error) => Err((Failed, error.chain(), correct())),
    }
}

/// Length of a file that has all sectors of its ISO 9660 volume. Units: bytes.
fn iso_length(path: &Path) -> Result<u64, String> {
    let mut file = File::open(path).map_err(|e| e.to_string())?;
    let metadata = file.metadata().map_err(|e| e.to_string())?;
    if !metadata.is_file() {
        return Err("not a file".to_owned());
    }
    let mut descriptor = [0; 2048];
    file.seek(SeekFrom::Start(DESCRIPTOR))
        .map_err(|e| e.to_string())?;
    file.read_exact(&mut descriptor)
        .map_err(|_| "too short for a live image".to_owned())?;
    if descriptor[1..6] != *b"CD001" {
        return Err("not a live image: no ISO 9660 volume".to_owned());
    }
    let number = |start: usize| {
        descriptor[start..]
            .iter()
            .take(4)
            .rev()
            .fold(0_u64, |all, byte| (all << 8) | u64::from(*byte))
    };
    let block = (number(128) & 0xffff).max(1);
    let expected = number(80).saturating_mul(block);
    let length = metadata.len();
    if length < expected {
        return Err(format!("truncated: {length} of {expected} bytes"));
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::CheckStatus;

    fn iso(sectors: u32) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(sectors).unwrap() * 2048];
        let start = 16 * 2048;
        bytes[start + 1..start + 6].copy_from_slice(b"CD001");
        bytes[start + 80..start + 84].copy_from_slice(&sectors.to_le_bytes());
        bytes[start + 128..start + 130].copy_from_slice(&2048_u16.to_le_bytes());
        bytes
    }

    #[tokio::test]
    async fn incomplete_boot_images_fail() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("live.iso");
        let site = Arc::new(SiteFacts {
            boot_images: Some(vec![BootImage {
                openshift_version: "4.18".to_owned(),
                cpu_architecture: "x86_64".to_owned(),
                url: "file:///images/live.iso".to_owned(),
                path: Some(path.clone()),
                ..BootImage::default()
            }]),
            ..SiteFacts::default()
        });
        let whole = iso(20);
        for (content, expected) in [
            (&whole[..], ""),
            (&whole[..whole.len() - 1], "truncated: 40959 of 40960 bytes"),
            (&whole[..100], "too short"),
            (&vec![0; 40960][..], "no ISO 9660"),
        ] {
            fs::write(&path, content).unwrap();
            let found = boot_images(Arc::clone(&site)).await.remove(0);
            assert_eq!(found.subject, "4.18/x86_64");
            assert!(found.finding.contains(expected), "{found:?}");
            let status = if expected.is_empty() {
                CheckStatus::Passed
            } else {
                CheckStatus::Failed
            };
            assert_eq!(found.status, status, "{found:?}");
            assert_eq!(found.remedy.contains("live.iso"), !expected.is_empty());
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(boot_images(site).await[0].status, CheckStatus::Failed);
    }

    #[tokio::test]
    async fn empty_offers_fail() {
        let site = Arc::new(SiteFacts {
            boot_images: Some(Vec::new()),
            releases: Some(Vec::new()),
            ..SiteFacts::default()
        });
        for (found, setting) in [
            (boot_images(Arc::clone(&site)).await, "OS_IMAGES"),
            (releases(site).await, "RELEASE_IMAGES"),
        ] {
            assert_eq!(found[0].status, CheckStatus::Failed);
            assert!(found[0].remedy.contains(setting), "{found:?}");
        }
    }
}
