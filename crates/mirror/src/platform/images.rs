//! Images of releases, with their names in the target.
//!
//! Source: the peer.

use std::path::Path;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use model::Error;
use model::image_set::{self, MirrorSelection};
use model::mirror_metadata::{ChannelStart, ImageType};
use oci::{Reference, Repository};
use oci_client::Client;
use oci_client::signature::{self, Signatures};

use super::boot_images::BootImages;
use super::data::GraphData;
use super::files::ReleaseFiles;
use super::live_image::BootArchitectures;
use super::payload::{self, Payload};
use super::select::{Chosen, ReleaseSelection, select};
use super::settings::ReleaseSources;
use crate::additional_images::platforms;
use crate::content::{SelectedImage, Why};

/// Repository of releases below the target's namespace.
pub(crate) const RELEASES: &str = "openshift/release-images";
/// Repository of their components.
pub(crate) const COMPONENTS: &str = "openshift/release";
/// Releases that are read at the same time.
pub(super) const READERS: usize = 4;

/// Releases of a set, for metadata and results.
#[derive(Debug, Default)]
pub struct Releases {
    /// The configuration with the versions that were chosen.
    pub platform: image_set::PlatformSelection,
    /// From where later runs go on.
    pub starts: Vec<ChannelStart>,
    /// Release signatures.
    pub signatures: Vec<Signatures>,
    /// The data of the upgrade graph.
    pub graph: Option<GraphData>,
    pub(crate) boot_images: BootImages,
    pub(crate) files: ReleaseFiles,
    /// Warnings for the user.
    pub notes: Vec<String>,
}

/// Finds the releases that a configuration names, their boot images, and the images that they consist of.
///
/// Errors: as [`select`] and [`payload::read`].
pub async fn releases(
    client: &Client,
    mirror: &MirrorSelection,
    started: &[ChannelStart],
    sources: &ReleaseSources,
    scratch: &Path,
) -> Result<(Releases, Vec<SelectedImage>), Error> {
    let ReleaseSelection {
        releases,
        platform,
        starts,
        graphs,
    } = select(&mirror.platform, started, sources).await?;
    let boot = BootArchitectures::of(mirror);
    let payloads: Vec<(Chosen, Payload)> = stream::iter(releases)
        .map(|chosen| async {
            let image = reference(&chosen)?;
            let payload = payload::read(client, &image, &platform, boot.as_ref(), scratch).await?;
            Ok::<_, Error>((chosen, payload))
        })
        .buffered(READERS)
        .try_collect()
        .await?;
    let (mut wanted, mut boot_images) = (Vec::new(), BootImages::default());
    for (chosen, payload) in &payloads {
        wanted.extend(images(chosen, payload, &platform)?);
        boot_images.add(payload)?;
    }
    let (signatures, notes) = signatures(&payloads, sources).await?;
    let graph = if platform.graph {
        Some(GraphData::fetch(sources, scratch).await?)
    } else {
        None
    };
    let releases = Releases {
        platform,
        starts,
        signatures,
        graph,
        boot_images,
        files: ReleaseFiles::of(graphs, &payloads),
        notes,
    };
    Ok((releases, wanted))
}

/// The signatures of all releases; warnings for unsigned ones, where these are allowed.
async fn signatures(
    payloads: &[(Chosen, Payload)],
    sources: &ReleaseSources,
) -> Result<(Vec<Signatures>, Vec<String>), Error> {
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    let Some(keyring) = &sources.keyring else {
        if payloads.is_empty() || sources.ignores_signatures {
            return Ok((found, notes));
        }
        let reason = "nobody is trusted to sign releases: name a file with the public keys of the platform's maker \
            with --release-keyring, or carry what nobody has signed with --ignore-release-signature";
        return Err(Error::invalid("release signature", reason));
    };
    let (stores, web) = (&sources.signature_stores, &sources.web);
    for (_, payload) in payloads {
        match signature::find(&payload.digest, keyring, stores, web).await {
            Ok(signatures) => found.push(signatures),
            Err(error) if sources.ignores_signatures => notes.push(model::error::chain(&error)),
            Err(error) => return Err(error),
        }
    }
    Ok((found, notes))
}

/// Reference of a release image.
pub(super) fn reference(chosen: &Chosen) -> Result<Reference, Error> {
    let Chosen { payload, named } = chosen;
    payload.parse().map_err(|error: Error| match named {
        Some(named) => Error::invalid(format!("release {}", named.version), error.to_string()),
        None => error,
    })
}

/// The images of a release that was read.
pub(super) fn images(
    chosen: &Chosen,
    payload: &Payload,
    platform: &image_set::PlatformSelection,
) -> Result<Vec<SelectedImage>, Error> {
    let Payload {
        version,
        architecture,
        ..
    } = payload;
    let name = format!("{version}-{architecture}");
    let (releases, components): (Repository, Repository) = (RELEASES.parse()?, COMPONENTS.parse()?);
    let parts = platforms(&platform.platforms);
    let mut wanted = vec![SelectedImage {
        source: payload.image.clone(),
        repository: releases,
        tag: name.parse()?,
        kind: ImageType::OcpRelease,
        why: vec![Why::Release {
            release: name.clone(),
            channel: chosen.named.as_ref().map(|it| it.channel.clone()),
        }],
        platforms: parts.clone(),
        may_be_missing: false,
    }];
    for (component, image) in &payload.components {
        wanted.push(SelectedImage {
            source: image.clone(),
            repository: components.clone(),
            tag: format!("{name}-{component}").parse()?,
            kind: ImageType::OcpReleaseContent,
            why: vec![Why::Component {
                release: name.clone(),
                component: component.clone(),
            }],
            platforms: parts.clone(),
            may_be_missing: false,
        });
    }
    Ok(wanted)
}
