//! Files out of images in the mirror's registry.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::Error;
use oci::{Platform, Reference};
use oci_client::image::{self, FileSelection, FileTree};
use oci_client::{Client, ClientOptions, Credentials};
use secrecy::{ExposeSecret, SecretString};
use uuid::Uuid;

use super::context::{Context, Failure};
use super::mirrors::Mirrors;
use crate::files::make_folder;

/// Images that one cluster's pull secret opens.
pub(super) struct Images {
    client: Client,
    mirrors: Option<Mirrors>,
    platform: Platform,
}

/// A file that was taken out of an image.
pub(super) struct Taken {
    /// The image, where it was found, pinned by digest.
    pub(super) image: Reference,
    /// Place of the path among those that were wanted.
    pub(super) index: usize,
}

impl Images {
    /// Access with `pull_secret`, as the service's settings say.
    pub(super) fn new(ctx: &Context, pull_secret: &SecretString) -> Result<Self, Failure> {
        let access = &ctx.options().registry;
        let mut ca = access.ca_pem.clone().unwrap_or_default();
        if let Some(bundle) = access
            .mirrors
            .as_ref()
            .and_then(|mirrors| mirrors.ca_bundle.as_ref())
        {
            ca.push(b'\n');
            ca.extend_from_slice(bundle.as_bytes());
        }
        let client = Client::new(ClientOptions {
            credentials: Credentials::from_pull_secret(pull_secret.expose_secret())?,
            ca_pem: Some(ca).filter(|ca| !ca.trim_ascii().is_empty()),
            insecure: access.insecure,
            plain_http_remedy: Some("SKIP_CERT_VERIFICATION=true"),
            ..ClientOptions::default()
        })?;
        Ok(Self {
            client,
            mirrors: access.mirrors.clone(),
            platform: Platform::linux(machine()),
        })
    }

    /// Where `image` may lie, best first: its mirrors, and where it says.
    pub(super) fn candidates(&self, image: &str) -> Vec<String> {
        match &self.mirrors {
            Some(mirrors) => mirrors.candidates(image),
            None => vec![image.to_owned()],
        }
    }

    /// Where an image that `release` names may lie, best first.
    ///
    /// Tools that mirror a release put its images beside it, in one repository, and leave the names in it as
    /// they were. So that place comes before another registry, which may be out of reach.
    pub(super) fn component_candidates(&self, image: &str, release: &str) -> Vec<String> {
        let mut candidates = self.candidates(image);
        let (Some((repository, _)), Some((_, digest))) =
            (release.split_once('@'), image.split_once('@'))
        else {
            return candidates;
        };
        if registry_of(image) != registry_of(release) {
            let beside = format!("{repository}@{digest}");
            candidates.insert(candidates.len() - 1, beside);
        }
        candidates
    }

    /// Takes the first of `paths` that the image has, from the first of `candidates` that answers, to
    /// `destination`; bytes are checked against their digests on the way.
    ///
    /// Each candidate has `limit`, where there is one: a registry that is silent must not cost the others their chance.
    ///
    /// Errors: why each candidate failed, in words.
    pub(super) async fn take(
        &self,
        candidates: &[String],
        paths: &[&str],
        destination: &Path,
        limit: Option<Duration>,
    ) -> Result<Taken, String> {
        let mut reasons = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            let taking = Box::pin(self.take_from(candidate, paths, destination));
            let why = match within(limit, taking).await {
                Some(Ok(taken)) => return Ok(taken),
                Some(Err(error)) => error.chain(),
                None => format!(
                    "it did not deliver within {} s",
                    limit.unwrap_or_default().as_secs()
                ),
            };
            let registry = registry_of(candidate);
            reasons.push(format!("registry {registry}, image {candidate}: {why}"));
        }
        Err(reasons.join("; "))
    }

    async fn take_from(
        &self,
        image: &str,
        paths: &[&str],
        destination: &Path,
    ) -> Result<Taken, Error> {
        let reference: Reference = image.parse()?;
        let manifest = self.client.pull_manifest(&reference).await?;
        let pinned = reference.with_digest(manifest.digest);
        let mut last = Error::not_found("file", image);
        for (index, path) in paths.iter().enumerate() {
            let fetched =
                image::fetch_file(&self.client, &pinned, &self.platform, path, destination).await;
            match fetched {
                Ok(()) => {
                    return Ok(Taken {
                        image: pinned,
                        index,
                    });
                }
                Err(error @ Error::NotFound { kind: "file", .. }) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// Takes what `selection` names out of `image`, as [`Images::take`] found it, into the empty folder `into`.
    pub(super) async fn tree(
        &self,
        image: &Reference,
        selection: &FileSelection,
        into: &Path,
    ) -> Result<FileTree, Error> {
        image::fetch_tree(&self.client, image, &self.platform, selection, into).await
    }
}

/// What `work` yields, unless it takes longer than `limit`.
async fn within<T>(limit: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.ok(),
        None => Some(work.await),
    }
}

/// The registry's host of an image reference, for a text.
pub(super) fn registry_of(image: &str) -> &str {
    image.split('/').next().unwrap_or(image)
}

/// This machine's architecture as images name it: what is taken out is run here.
fn machine() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

/// A folder for what is on its way, removed unless it was renamed away.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    /// Makes the folder below `parent`.
    pub(super) async fn make(parent: &Path) -> Result<Self, Failure> {
        let scratch = Self(parent.join(format!(".new-{}", Uuid::new_v4().simple())));
        let path = scratch.0.clone();
        super::blocking(move || {
            make_folder(&path).map_err(|error| {
                Failure::new(format!("{} cannot be written: {error}", path.display()))
            })
        })
        .await?;
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // After the rename there is nothing to remove.
        let _ = fs::remove_dir_all(&self.0);
    }
}
