//! Extraction of files from images, through the mirrors.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::Error;
use oci::{Platform, Reference};
use oci_client::image::{self, FileSelection, FileTree};
use oci_client::{Client, ClientOptions, Credentials};
use secrecy::{ExposeSecret, SecretString};
use uuid::Uuid;

use super::context::{InstallContext, PreparationFailure};
use super::mirrors::RegistryMirrors;
use crate::files::make_folder;

/// Image access with a cluster's pull secret.
pub(super) struct Images {
    client: Client,
    mirrors: Option<RegistryMirrors>,
    platform: Platform,
}

/// A file extracted from an image.
pub(super) struct ExtractedFile {
    /// The image that had it, pinned by digest.
    pub(super) image: Reference,
    /// Index of its path in the requested paths.
    pub(super) index: usize,
}

impl Images {
    /// Access with `pull_secret` and the service's settings.
    pub(super) fn new(
        ctx: &InstallContext,
        pull_secret: &SecretString,
    ) -> Result<Self, PreparationFailure> {
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

    /// References of `image`: its mirrors first, itself last.
    pub(super) fn candidates(&self, image: &str) -> Vec<String> {
        match &self.mirrors {
            Some(mirrors) => mirrors.candidates(image),
            None => vec![image.to_owned()],
        }
    }

    /// References of an image of `release`, most preferred first.
    ///
    /// Mirroring tools put the images of a release into its own repository, without rewriting the references in it. So
    /// that repository precedes the original registry, which may be unreachable.
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

    /// Extracts the first existing one of `paths` from the first reachable candidate to `destination`, with its digest
    /// verified.
    ///
    /// `timeout` applies to each candidate, so that a silent registry does not prevent the next attempt.
    ///
    /// Errors: the failure of each candidate.
    pub(super) async fn extract(
        &self,
        candidates: &[String],
        paths: &[&str],
        destination: &Path,
        timeout: Option<Duration>,
    ) -> Result<ExtractedFile, String> {
        let mut reasons = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            let extracting = Box::pin(self.extract_from(candidate, paths, destination));
            let why = match with_timeout(timeout, extracting).await {
                Some(Ok(extracted)) => return Ok(extracted),
                Some(Err(error)) => error.chain(),
                None => format!(
                    "no response within {} s",
                    timeout.unwrap_or_default().as_secs()
                ),
            };
            let registry = registry_of(candidate);
            reasons.push(format!("registry {registry}, image {candidate}: {why}"));
        }
        Err(reasons.join("; "))
    }

    async fn extract_from(
        &self,
        image: &str,
        paths: &[&str],
        destination: &Path,
    ) -> Result<ExtractedFile, Error> {
        let reference: Reference = image.parse()?;
        let manifest = self.client.pull_manifest(&reference).await?;
        let pinned = reference.with_digest(manifest.digest);
        let mut last = Error::not_found("file", image);
        for (index, path) in paths.iter().enumerate() {
            let fetched =
                image::fetch_file(&self.client, &pinned, &self.platform, path, destination).await;
            match fetched {
                Ok(()) => {
                    return Ok(ExtractedFile {
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

    /// Extracts `selection` from `image`, found by [`Images::extract`], into the empty folder `into`.
    pub(super) async fn tree(
        &self,
        image: &Reference,
        selection: &FileSelection,
        into: &Path,
    ) -> Result<FileTree, Error> {
        image::fetch_tree(&self.client, image, &self.platform, selection, into).await
    }
}

/// Runs `work` with an optional timeout.
async fn with_timeout<T>(timeout: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    match timeout {
        Some(timeout) => tokio::time::timeout(timeout, work).await.ok(),
        None => Some(work.await),
    }
}

/// The registry host of an image reference, for messages.
pub(super) fn registry_of(image: &str) -> &str {
    image.split('/').next().unwrap_or(image)
}

/// This machine's architecture, as images name it.
fn machine() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

/// A temporary folder, removed on drop unless it was renamed.
pub(super) struct ScratchFolder(pub(super) PathBuf);

impl ScratchFolder {
    /// Creates the folder below `parent`.
    pub(super) async fn make(parent: &Path) -> Result<Self, PreparationFailure> {
        let scratch = Self(parent.join(format!(".new-{}", Uuid::new_v4().simple())));
        let path = scratch.0.clone();
        super::blocking(move || {
            make_folder(&path).map_err(|error| {
                PreparationFailure::new(format!("{} cannot be written: {error}", path.display()))
            })
        })
        .await?;
        Ok(scratch)
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // Fails after a rename, when there is nothing to remove.
        let _ = fs::remove_dir_all(&self.0);
    }
}
