//! Boot images of releases: live images, by the stream metadata in release payloads.
//!
//! Source: coreos/stream-metadata-go, `stream`; assisted-image-service, `OS_IMAGES`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use model::Error;
use model::mirror_metadata::ImageType;
use model::release_payload::BOOT_IMAGES;
use net::web::shown;
use oci::live_image::{repository, tag};
use oci::{Digest, Reference, Registry, Tag};
use semver::Version;
use serde::{Deserialize, Serialize};
use url::Url;

use super::live_image::LiveImage;
use super::payload::Payload;
use crate::content::{SelectedImage, Why};

/// Path of the offers in archives and results: `OS_IMAGES`, in archives without addresses.
pub(crate) const ARCHIVED: &str = "boot-images/os-images.json";

/// A boot image of the selected releases.
#[derive(Debug, Clone)]
pub(crate) struct BootImage {
    /// Its file.
    pub(crate) url: Url,
    /// Of the file.
    pub(crate) digest: Digest,
    tag: Tag,
    why: Vec<Why>,
}

/// An entry of `OS_IMAGES`, the setting of installer and image service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootImageOffer {
    /// Major and minor number of the releases.
    pub openshift_version: String,
    /// `x86_64`, `arm64`, `ppc64le` or `s390x`.
    pub cpu_architecture: String,
    /// The image in the target; empty in an archive.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Version of the operating system.
    pub version: String,
    /// Of the live image, in hexadecimal.
    pub sha256: String,
    /// Its stream; empty where the release names none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub os_stream: String,
}

/// The boot images of the selected releases.
#[derive(Debug, Default)]
pub(crate) struct BootImages {
    /// Each once, by its name in the target and its digest.
    images: BTreeMap<(Tag, Digest), BootImage>,
    /// The images of the newest release of a minor version, for each architecture: that of the default stream first.
    offers: BTreeMap<(u64, u64, String), (Version, Vec<BootImageOffer>)>,
    /// Images that releases do not have.
    pub(crate) missing: Vec<Error>,
}

impl BootImages {
    /// Adds those of a release.
    ///
    /// Errors: Invalid – a malformed version.
    pub(super) fn add(&mut self, payload: &Payload) -> Result<(), Error> {
        let release = format!("{}-{}", payload.version, payload.architecture);
        for missing in &payload.missing_boot_images {
            let id = format!("for {missing} of release {release} in {BOOT_IMAGES}");
            self.missing.push(Error::not_found("boot image", id));
        }
        for image in &payload.boot_images {
            let wrong = |e: &dyn std::fmt::Display| {
                Error::invalid(format!("boot image of release {release}"), e.to_string())
            };
            let version: Version = payload.version.parse().map_err(|e| wrong(&e))?;
            let tag = tag(&image.version, &image.architecture).map_err(|e| wrong(&e))?;
            self.offer(version, image);
            let why = Why::BootImage {
                release: release.clone(),
                location: shown(&image.url),
            };
            match self.images.entry((tag.clone(), image.digest.clone())) {
                Entry::Occupied(known) => known.into_mut().why.push(why),
                Entry::Vacant(free) => {
                    free.insert(BootImage {
                        url: image.url.clone(),
                        digest: image.digest.clone(),
                        tag,
                        why: vec![why],
                    });
                }
            }
        }
        Ok(())
    }

    fn offer(&mut self, release: Version, image: &LiveImage) {
        let offer = BootImageOffer {
            openshift_version: format!("{}.{}", release.major, release.minor),
            cpu_architecture: match image.architecture.as_str() {
                "aarch64" => "arm64".to_owned(),
                other => other.to_owned(),
            },
            url: String::new(),
            version: image.version.clone(),
            sha256: image.digest.hex().to_owned(),
            os_stream: image.stream.clone(),
        };
        let key = (release.major, release.minor, offer.cpu_architecture.clone());
        match self.offers.entry(key) {
            Entry::Occupied(mut known) if known.get().0 == release => {
                let (_, offers) = known.get_mut();
                // Several payloads of a release have the same images.
                if offers.iter().all(|it| it.os_stream != offer.os_stream) {
                    offers.push(offer);
                }
            }
            Entry::Occupied(newer) if newer.get().0 > release => {}
            entry => {
                entry.insert_entry((release, vec![offer]));
            }
        }
    }

    pub(crate) fn images(&self) -> impl Iterator<Item = &BootImage> {
        self.images.values()
    }

    /// Entries of `OS_IMAGES`, without addresses.
    pub(crate) fn offers(&self) -> Vec<BootImageOffer> {
        let offers = self.offers.values();
        offers.flat_map(|(_, offers)| offers.clone()).collect()
    }
}

impl BootImage {
    /// The image in a layout, which names it like the target.
    ///
    /// Errors: never: the name of the repository is valid.
    pub(crate) fn selected(&self, layout: Registry) -> Result<SelectedImage, Error> {
        let repository = repository()?;
        Ok(SelectedImage {
            source: Reference {
                registry: layout,
                repository: repository.clone(),
                tag: Some(self.tag.clone()),
                digest: None,
            },
            repository,
            tag: self.tag.clone(),
            kind: ImageType::Generic,
            why: self.why.clone(),
            platforms: Vec::new(),
            may_be_missing: false,
        })
    }

    /// Name of its file.
    pub(crate) fn title(&self) -> String {
        let mut parts = self.url.path_segments().into_iter().flatten();
        parts.next_back().unwrap_or_default().to_owned()
    }
}

impl BootImageOffer {
    /// Tag of the image in the target.
    ///
    /// Errors: Invalid – a malformed version.
    pub(crate) fn tag(&self) -> Result<Tag, Error> {
        tag(&self.version, &self.cpu_architecture)
    }
}

#[cfg(test)]
mod tests {
    use model::image_set::{BootImageSelection, Instance, MirrorSelection, PlatformSelection};
    use model::release_payload::OsStream;
    use oci::live_image::ARCHITECTURES;
    use serde_json::json;

    use super::super::live_image::BootArchitectures;
    use super::super::live_image::tests::{disk, stream};
    use super::*;

    fn set(own: &[&str], platform: &[&str], parts: &[&str]) -> MirrorSelection {
        let texts = |texts: &[&str]| texts.iter().map(|&it| it.to_owned()).collect();
        let parts = parts.iter().map(|&architecture| Instance {
            os: "linux".to_owned(),
            architecture: architecture.to_owned(),
        });
        MirrorSelection {
            platform: PlatformSelection {
                architectures: texts(platform),
                platforms: parts.collect(),
                ..PlatformSelection::default()
            },
            boot_images: Some(BootImageSelection {
                architectures: texts(own),
            }),
            ..MirrorSelection::default()
        }
    }

    /// A payload whose stream has the live images of these architectures.
    fn payload(version: &str, os: &str, architectures: &[&str], set: &MirrorSelection) -> Payload {
        let disks = architectures.iter();
        let disks = disks.map(|&it| (it.to_owned(), disk(it, os)));
        let disks: serde_json::Map<_, _> = disks.collect();
        streams(version, &[stream("", &disks.into())], set)
    }

    fn streams(version: &str, streams: &[OsStream], set: &MirrorSelection) -> Payload {
        let read = BootArchitectures::of(set).unwrap().images(streams).unwrap();
        let (boot_images, missing_boot_images) = read;
        let digest = Digest::sha256(version.as_bytes());
        let image: Reference = "r.example/release".parse().unwrap();
        Payload {
            image: image.with_digest(digest.clone()),
            digest,
            version: version.to_owned(),
            architecture: "x86_64".to_owned(),
            components: Vec::new(),
            boot_images,
            missing_boot_images,
            manifests: Vec::new(),
        }
    }

    fn of(payloads: &[Payload]) -> BootImages {
        let mut images = BootImages::default();
        for payload in payloads {
            images.add(payload).unwrap();
        }
        images
    }

    fn tags(images: &BootImages) -> Vec<&str> {
        images.images().map(|it| it.tag.as_str()).collect()
    }

    #[test]
    fn architectures_are_those_of_the_releases_unless_named() {
        assert!(BootArchitectures::of(&MirrorSelection::default()).is_none());
        let all = ["x86_64", "aarch64", "s390x"];
        for (own, platform, parts, expected) in [
            (&[][..], &[][..], &[][..], &["1-x86_64"][..]),
            (&[], &["arm64"], &[], &["1-aarch64"]),
            (&["x86_64"], &["arm64"], &[], &["1-x86_64"]),
            (&["aarch64", "amd64"], &[], &[], &["1-aarch64", "1-x86_64"]),
            (&[], &["multi"], &[], &["1-aarch64", "1-s390x", "1-x86_64"]),
            (&[], &[], &["s390x"], &["1-s390x"]),
        ] {
            let set = set(own, platform, parts);
            let images = of(&[payload("4.18.1", "1", &all, &set)]);
            assert_eq!(tags(&images), expected, "{own:?} {platform:?} {parts:?}");
            assert!(images.missing.is_empty());
        }
    }

    #[test]
    fn missing_live_images_are_named() {
        let asked = set(&["s390x", "arm64"], &[], &[]);
        let images = of(&[payload("4.18.1", "1", &["aarch64"], &asked)]);
        assert_eq!(tags(&images), ["1-aarch64"]);
        let missing: Vec<_> = images.missing.iter().map(Error::to_string).collect();
        assert_eq!(
            missing,
            ["boot image for s390x of release 4.18.1-x86_64 in \
                 release-manifests/0000_50_installer_coreos-bootimages.yaml was not found"]
        );
        let all = set(&[], &["multi"], &[]);
        let images = of(&[payload("4.18.1", "1", &[], &all)]);
        assert_eq!(images.missing.len(), ARCHITECTURES.len());
    }

    #[test]
    fn an_image_of_several_releases_is_one_and_the_newest_is_offered() {
        let set = set(&["amd64", "arm64"], &[], &[]);
        let both = ["x86_64", "aarch64"];
        let images = of(&[
            payload("4.18.10", "418.2", &both, &set),
            payload("4.18.9", "418.1", &both, &set),
            payload("4.19.1", "9.6", &["x86_64"], &set),
            payload("4.18.11", "418.2", &["x86_64"], &set),
        ]);
        assert_eq!(
            tags(&images),
            [
                "418.1-aarch64",
                "418.1-x86_64",
                "418.2-aarch64",
                "418.2-x86_64",
                "9.6-x86_64"
            ]
        );
        let shared = images.images().find(|it| it.tag.as_str() == "418.2-x86_64");
        let why: Vec<_> = shared.unwrap().why.iter().map(Why::to_string).collect();
        let from = "https://h.example/418.2/live-x86_64.iso";
        assert_eq!(
            why,
            [
                format!("boot image of release 4.18.10-x86_64, from {from}"),
                format!("boot image of release 4.18.11-x86_64, from {from}")
            ]
        );
        assert_eq!(shared.unwrap().title(), "live-x86_64.iso");
        let offers = images.offers();
        let offers: Vec<_> = offers
            .iter()
            .map(|it| {
                (
                    &*it.openshift_version,
                    &*it.cpu_architecture,
                    it.tag().unwrap().to_string(),
                )
            })
            .collect();
        assert_eq!(
            offers,
            [
                ("4.18", "arm64", "418.2-aarch64".to_owned()),
                ("4.18", "x86_64", "418.2-x86_64".to_owned()),
                ("4.19", "x86_64", "9.6-x86_64".to_owned()),
            ]
        );
    }

    #[test]
    fn each_stream_has_its_boot_image_and_the_default_one_is_offered_first() {
        let set = set(&["amd64", "arm64"], &[], &[]);
        let both = |version: &str| {
            let nine = format!("9.{version}");
            let disks = json!({"x86_64": disk("x86_64", &nine), "aarch64": disk("aarch64", &nine)});
            let ten = json!({"x86_64": disk("x86_64", &format!("10.{version}"))});
            [stream("rhel-9", &disks), stream("rhel-10", &ten)]
        };
        let images = of(&[
            streams("4.22.2", &both("2"), &set),
            streams("4.22.1", &both("1"), &set),
            // Of another architecture.
            streams("4.22.2", &both("2"), &set),
        ]);
        assert_eq!(
            tags(&images),
            [
                "10.1-x86_64",
                "10.2-x86_64",
                "9.1-aarch64",
                "9.1-x86_64",
                "9.2-aarch64",
                "9.2-x86_64"
            ]
        );
        assert!(images.missing.is_empty(), "other streams may have fewer");
        let offers = images.offers();
        let offers: Vec<_> = offers
            .iter()
            .map(|it| format!("{} {} {}", it.cpu_architecture, it.os_stream, it.version))
            .collect();
        assert_eq!(
            offers,
            [
                "arm64 rhel-9 9.2",
                "x86_64 rhel-9 9.2",
                "x86_64 rhel-10 10.2"
            ]
        );
    }
}
