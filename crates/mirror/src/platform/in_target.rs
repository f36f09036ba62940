//! Releases in a target: their payloads are read there, also where their sources cannot be reached.

use std::collections::BTreeSet;
use std::path::Path;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use model::Error;
use model::image_set::{self, ReleaseChannel};
use oci::live_image::architecture_of;
use oci::{Digest, Reference, Target as At};
use oci_client::Client;
use semver::Version;

use super::boot_images::BootImages;
use super::images::{READERS, RELEASES, images, reference};
use super::live_image::BootArchitectures;
use super::payload::{self, Payload};
use super::select::{Chosen, Named, architectures, select};
use super::settings::ReleaseSources;
use super::shortest_path::version;
use crate::content::SelectedImage;
use crate::publish::MirrorTarget;
use oci::artifact_tag;

/// The releases of a target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetReleases<'a> {
    pub(crate) target: &'a MirrorTarget,
    /// Client for releases that the target does not have.
    pub(crate) sources: &'a Client,
    /// The selection of releases, and of their boot images.
    pub(crate) mirror: &'a image_set::MirrorSelection,
    /// Folder for temporary files.
    pub(crate) scratch: &'a Path,
}

/// The images of releases that were read, and their boot images.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) wanted: Vec<SelectedImage>,
    /// Releases that are neither in the target nor to be had from their sources.
    pub(crate) unread: Vec<Error>,
}

/// A release by its tag in the target.
struct Tagged {
    version: Version,
    architecture: String,
    /// Its image, by digest.
    image: Reference,
}

impl TargetReleases<'_> {
    /// The images of the releases that the update service names, as a first run chooses them.
    ///
    /// Errors: Invalid – a channel or version that is not there; Unavailable – the update service; those of the target.
    pub(crate) async fn chosen(&self, sources: &ReleaseSources) -> Result<Read, Error> {
        let chosen = select(&self.mirror.platform, &[], sources).await?.releases;
        self.read(chosen).await
    }

    /// The images of those releases in the target that are within the configured versions: the selection without an update
    /// service.
    ///
    /// Errors: Invalid – a channel without both ends; those of the target.
    pub(crate) async fn between(&self) -> Result<Read, Error> {
        let mut chosen = Vec::new();
        if let Some(release) = &self.mirror.platform.release {
            let payload = release.clone();
            let named = None;
            chosen.push(Chosen { payload, named });
        }
        let tagged = self.tagged().await?;
        for channel in &self.mirror.platform.channels {
            let (min, max) = ends(channel)?;
            for architecture in architectures(&self.mirror.platform) {
                let own = architecture_of(&architecture);
                let is_meant =
                    |it: &&Tagged| it.architecture == own && (&min..=&max).contains(&&it.version);
                chosen.extend(tagged.iter().filter(is_meant).map(|it| Chosen {
                    payload: it.image.to_string(),
                    named: Some(Named {
                        version: it.version.clone(),
                        channel: channel.name.clone(),
                        architecture: architecture.clone(),
                    }),
                }));
            }
        }
        self.read(chosen).await
    }

    /// The images of all releases in the target but those with the digests of `left`.
    ///
    /// Errors: those of the target.
    pub(crate) async fn others(
        &self,
        left: &BTreeSet<Digest>,
    ) -> Result<Vec<SelectedImage>, Error> {
        let tagged = self.tagged().await?.into_iter();
        let others = tagged
            .map(|it| it.image)
            .filter(|it| it.digest.as_ref().is_none_or(|it| !left.contains(it)));
        let found: Vec<_> = stream::iter(others)
            .map(|image| async move {
                let chosen = Chosen {
                    payload: image.to_string(),
                    named: None,
                };
                match self.whole(&image).await {
                    Ok(payload) => images(&chosen, &payload, &self.mirror.platform),
                    // The image of another tool: it has no components.
                    Err(Error::Invalid { .. } | Error::NotFound { .. }) => Ok(Vec::new()),
                    Err(error) => Err(error),
                }
            })
            .buffered(READERS)
            .try_collect()
            .await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn read(&self, chosen: Vec<Chosen>) -> Result<Read, Error> {
        let found: Vec<(Chosen, Result<Payload, Error>)> = stream::iter(chosen)
            .map(|chosen| async move {
                let payload = self.payload(&reference(&chosen)?).await?;
                Ok::<_, Error>((chosen, payload))
            })
            .buffered(READERS)
            .try_collect()
            .await?;
        let (mut all, mut boot_images) = (Read::default(), BootImages::default());
        for (chosen, payload) in found {
            match payload {
                Ok(payload) => {
                    let images = images(&chosen, &payload, &self.mirror.platform)?;
                    all.wanted.extend(images);
                    boot_images.add(&payload)?;
                }
                Err(error) => all.unread.push(error),
            }
        }
        for image in boot_images.images() {
            let there = self.target.registry.clone();
            all.wanted.push(image.selected(there)?);
        }
        Ok(all)
    }

    /// The payload of a release: out of the target, or else of its source.
    async fn payload(&self, release: &Reference) -> Result<Result<Payload, Error>, Error> {
        let Self {
            target,
            sources,
            mirror,
            scratch,
        } = *self;
        let (platform, boot) = (&mirror.platform, BootArchitectures::of(mirror));
        let boot = boot.as_ref();
        let place = target.place(&RELEASES.parse()?)?;
        let place = match release.target() {
            At::Digest(digest) => place.with_digest(digest),
            At::Tag(tag) => Reference {
                tag: Some(tag),
                ..place
            },
        };
        match payload::read(&target.client, &place, platform, boot, scratch).await {
            Ok(payload) => Ok(Ok(Payload {
                image: release.with_digest(payload.digest.clone()),
                ..payload
            })),
            Err(Error::NotFound { .. }) => {
                let read = payload::read(sources, release, platform, boot, scratch).await;
                Ok(read.map_err(|error| {
                    let cause = model::error::chain(&error);
                    let reason =
                        format!("{place} is not there, and its source cannot be read: {cause}");
                    Error::invalid(format!("release {release}"), reason)
                }))
            }
            Err(error) => Err(error),
        }
    }

    /// The payload of a release in the target, with its disk images if it has any.
    async fn whole(&self, image: &Reference) -> Result<Payload, Error> {
        let read = async |platform: &image_set::PlatformSelection| {
            payload::read(&self.target.client, image, platform, None, self.scratch).await
        };
        match read(&self.mirror.platform).await {
            Err(Error::Invalid { .. }) if self.mirror.platform.kube_virt_container => {
                let plain = image_set::PlatformSelection {
                    kube_virt_container: false,
                    ..self.mirror.platform.clone()
                };
                read(&plain).await
            }
            done => done,
        }
    }

    /// The releases that the target has.
    async fn tagged(&self) -> Result<Vec<Tagged>, Error> {
        let place = self.target.place(&RELEASES.parse()?)?;
        let client = &self.target.client;
        let tags = match client.tags(&place).await {
            Ok(tags) => tags,
            Err(Error::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for tag in tags {
            if artifact_tag::subject(tag.as_str()).is_some() {
                continue;
            }
            let Some((version, architecture)) = tag.as_str().rsplit_once('-') else {
                continue;
            };
            let Ok(version) = version.parse() else {
                continue;
            };
            let architecture = architecture.to_owned();
            let named = Reference {
                tag: Some(tag.clone()),
                ..place.clone()
            };
            if let Some(digest) = client.manifest_digest(&named).await? {
                found.push(Tagged {
                    version,
                    architecture,
                    image: place.with_digest(digest),
                });
            }
        }
        Ok(found)
    }
}

/// Both ends of a channel.
fn ends(channel: &ReleaseChannel) -> Result<(Version, Version), Error> {
    let min = version(channel, "minVersion", &channel.min_version)?;
    let max = version(channel, "maxVersion", &channel.max_version)?;
    min.zip(max).ok_or_else(|| {
        let reason = format!(
            "{} does not name minVersion and maxVersion: only an update service can list its releases",
            channel.name
        );
        Error::invalid("platform.channels", reason)
    })
}
