//! Extraction of files from images, through the mirrors.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cluster_files::make_folder;
use model::Error;
use oci::{Platform, Reference};
use oci_client::image::{self, FileSelection, FileTree};
use oci_client::{Client, ClientOptions, Credentials, Mirrors};
use secrecy::{ExposeSecret, SecretString};
use uuid::Uuid;

use crate::failure::{PreparationFailure, blocking};
use crate::mirrors::SiteMirrors;

/// Image access with a cluster's pull secret.
pub(crate) struct Images {
    client: Client,
    mirrors: Mirrors,
    platform: Platform,
}

/// A file extracted from an image.
pub(crate) struct ExtractedFile {
    /// The image that had it, pinned by digest.
    pub(crate) image: Reference,
    /// Index of its path in the requested paths.
    pub(crate) index: usize,
}

impl Images {
    /// Access with `pull_secret`.
    pub(crate) fn new(
        access: &RegistryAccess,
        pull_secret: &SecretString,
    ) -> Result<Self, PreparationFailure> {
        let mirrors = access.mirrors.get();
        let mut ca = access.ca_pem.clone().unwrap_or_default();
        if let Some(bundle) = mirrors.as_ref().and_then(|it| it.ca_bundle.as_ref()) {
            ca.push(b'\n');
            ca.extend_from_slice(bundle.as_bytes());
        }
        let mirrors = mirrors.map(|it| it.mirrors.clone()).unwrap_or_default();
        let client = Client::new(ClientOptions {
            credentials: Credentials::from_pull_secret(pull_secret.expose_secret())?,
            ca_pem: Some(ca).filter(|ca| !ca.trim_ascii().is_empty()),
            insecure: access.insecure,
            insecure_registries: mirrors.insecure().map(str::to_owned).collect(),
            plain_http_remedy: Some("SKIP_CERT_VERIFICATION=true"),
            ..ClientOptions::default()
        })?;
        Ok(Self {
            client,
            mirrors,
            platform: Platform::linux(machine()),
        })
    }

    /// References of `image`, most preferred first.
    ///
    /// Errors: as [`Mirrors::candidates`]; Invalid – malformed reference.
    pub(crate) fn candidates(&self, image: &str) -> Result<Vec<Reference>, Error> {
        self.mirrors.candidates(&image.parse()?)
    }

    /// References of an image of `release`, most preferred first.
    ///
    /// Mirroring tools put the images of a release into its own repository, without rewriting the references in it. So
    /// that repository precedes the original registry, which may be unreachable.
    ///
    /// Errors: as [`Self::candidates`].
    pub(crate) fn component_candidates(
        &self,
        image: &str,
        release: &str,
    ) -> Result<Vec<Reference>, Error> {
        let (image, release): (Reference, Reference) = (image.parse()?, release.parse()?);
        let candidates = self.mirrors.candidates(&image);
        let Some(digest) = image.digest.filter(|_| image.registry != release.registry) else {
            return candidates;
        };
        let mut candidates = match candidates {
            // A block of the original registry is none of the release's.
            Err(Error::Forbidden { .. }) => Vec::new(),
            candidates => candidates?,
        };
        let last = candidates.len().saturating_sub(1);
        candidates.insert(last, release.with_digest(digest));
        Ok(candidates)
    }

    /// Extracts the first existing one of `paths` from the first reachable candidate to `destination`, with its digest
    /// verified.
    ///
    /// `timeout` applies to each candidate, so that a silent registry does not prevent the next attempt.
    ///
    /// Errors: the failure of each candidate.
    pub(crate) async fn extract(
        &self,
        candidates: &[Reference],
        paths: &[&str],
        destination: &Path,
        timeout: Option<Duration>,
    ) -> Result<ExtractedFile, PreparationFailure> {
        let mut reasons = Vec::with_capacity(candidates.len());
        let mut is_temporary = false;
        for candidate in candidates {
            let extracting = Box::pin(self.extract_from(candidate, paths, destination));
            let why = match with_timeout(timeout, extracting).await {
                Some(Ok(extracted)) => return Ok(extracted),
                Some(Err(error)) => {
                    is_temporary |= matches!(error, Error::Unavailable { .. });
                    error.chain()
                }
                None => {
                    is_temporary = true;
                    let seconds = timeout.unwrap_or_default().as_secs();
                    format!("no response within {seconds} s")
                }
            };
            let registry = &candidate.registry;
            reasons.push(format!("registry {registry}, image {candidate}: {why}"));
        }
        Err(PreparationFailure {
            reason: reasons.join("; "),
            is_temporary,
        })
    }

    async fn extract_from(
        &self,
        image: &Reference,
        paths: &[&str],
        destination: &Path,
    ) -> Result<ExtractedFile, Error> {
        let manifest = self.client.pull_manifest(image).await?;
        let pinned = image.with_digest(manifest.digest);
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
    pub(crate) async fn tree(
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
pub(crate) struct ScratchFolder(pub(crate) PathBuf);

impl ScratchFolder {
    /// Creates the folder below `parent`.
    pub(crate) async fn make(parent: &Path) -> Result<Self, PreparationFailure> {
        let scratch = Self(parent.join(format!(".new-{}", Uuid::new_v4().simple())));
        let path = scratch.0.clone();
        blocking(move || {
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

/// Access to registries.
#[derive(Debug, Clone, Default)]
pub struct RegistryAccess {
    /// Certificate authorities of registries beside the system's, PEM.
    pub ca_pem: Option<Vec<u8>>,
    /// `SKIP_CERT_VERIFICATION`.
    pub insecure: bool,
    /// Registry mirrors.
    pub mirrors: SiteMirrors,
}
