//! Resumable downloads of OS images into files.

mod artifact;
mod image_file;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures_util::TryStreamExt as _;
use model::Error;
use oci::Reference;
use reqwest::header::{CONTENT_RANGE, ETAG, HeaderMap, IF_RANGE, LAST_MODIFIED, RANGE};
use reqwest::{Client, StatusCode};
use url::Url;

use image_file::ImageTarget;

use crate::settings::OCI_SCHEME;

/// Failure of a download.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DownloadError {
    /// The URL cannot be used.
    #[error("{0:?} is no URL with http, https or oci")]
    Url(String),
    /// The server cannot be reached or the connection broke.
    #[error("the server cannot be reached, or the connection broke")]
    Connection(#[source] reqwest::Error),
    /// The server refuses.
    #[error("the server answered {0}")]
    Status(StatusCode),
    /// Fewer or more bytes than announced.
    #[error("received {found} of {announced} announced bytes")]
    Length {
        /// Units: bytes.
        found: u64,
        /// Units: bytes.
        announced: u64,
    },
    /// The registry's, or the reference is malformed.
    #[error(transparent)]
    Registry(#[from] Error),
    /// The artifact is no live image.
    #[error("{0}")]
    Artifact(String),
    /// The image passes the bound.
    #[error(
        "it has more than {limit} bytes, the MAX_OS_IMAGE_BYTES of one image: raise that, or correct the url"
    )]
    TooLarge {
        /// Units: bytes.
        limit: u64,
    },
    /// The file system would have less free space than the reserve.
    #[error(
        "{path} would leave {free} free bytes, less than the OS_IMAGE_RESERVE_BYTES of {reserve}: free some space, or \
         enlarge the disk"
    )]
    NoSpace {
        /// The file.
        path: String,
        /// Units: bytes.
        free: u64,
        /// Units: bytes.
        reserve: u64,
    },
    /// The file system refuses.
    #[error("writing {path}")]
    Disk {
        /// The file.
        path: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// Bounds of the file of a download.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DownloadLimits {
    /// Longest image. Units: bytes.
    pub(crate) image_bytes: u64,
    /// Free space that stays on the file system. Units: bytes.
    pub(crate) reserve_bytes: u64,
}

/// Progress of a download. Units: bytes.
#[derive(Debug, Default)]
pub(crate) struct DownloadProgress {
    received: AtomicU64,
    /// Zero when the server does not announce it.
    announced: AtomicU64,
}

impl DownloadProgress {
    fn begin(&self, received: u64, announced: Option<u64>) {
        self.received.store(received, Relaxed);
        self.announced.store(announced.unwrap_or(0), Relaxed);
    }

    /// Bytes in the file.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }
}

/// As in `: 512 of 1024 MiB`; empty before the first byte.
impl fmt::Display for DownloadProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = |bytes: u64| bytes >> 20;
        let (received, announced) = (self.received(), self.announced.load(Relaxed));
        match (received, announced) {
            (0, 0) => Ok(()),
            (received, 0) => write!(f, ": {} MiB", mebibytes(received)),
            (received, all) => write!(f, ": {} of {} MiB", mebibytes(received), mebibytes(all)),
        }
    }
}

/// The client of downloads. Headers and parameters may be secrets: they are not sent to other hosts that the server
/// redirects to.
#[derive(Debug)]
pub(crate) struct DownloadClient {
    pub(crate) client: Client,
    /// Headers of each request.
    pub(crate) headers: HeaderMap,
    /// Query parameters of each request.
    pub(crate) query: BTreeMap<String, String>,
    /// The client of `oci` URLs.
    pub(crate) registries: oci_client::Client,
    /// Bounds of each file.
    pub(crate) limits: DownloadLimits,
}

/// A download that resumes after a failure while the server still has the same version of the file.
#[derive(Debug, Default)]
pub(crate) struct ImageDownload {
    /// Validator and length of the partial file. The length is compared with the file: another replica may have written
    /// it since.
    left: Option<(String, u64)>,
}

impl ImageDownload {
    /// Downloads `url` into `path` and syncs it. `path` may hold the partial file of an earlier call. `architecture` is that
    /// of the image, where a registry has several.
    pub(crate) async fn fetch(
        &mut self,
        client: &DownloadClient,
        url: &str,
        architecture: &str,
        path: &Path,
        progress: &DownloadProgress,
    ) -> Result<(), DownloadError> {
        if let Some(reference) = url.strip_prefix(OCI_SCHEME) {
            let reference: Reference = reference.parse()?;
            let fetch = artifact::fetch(client, reference, architecture, path, progress);
            return Box::pin(fetch).await;
        }
        let mut parsed = Url::parse(url).map_err(|_| DownloadError::Url(url.to_owned()))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(DownloadError::Url(url.to_owned()));
        }
        if !client.query.is_empty() {
            parsed.query_pairs_mut().extend_pairs(&client.query);
        }
        self.fetch_http(client, parsed, path, progress).await
    }

    async fn fetch_http(
        &mut self,
        client: &DownloadClient,
        url: Url,
        path: &Path,
        progress: &DownloadProgress,
    ) -> Result<(), DownloadError> {
        let mut request = client.client.get(url).headers(client.headers.clone());
        let held = tokio::fs::metadata(path)
            .await
            .map_or(0, |metadata| metadata.len());
        let left = self.left.take();
        if let Some((validator, _)) = left.filter(|(_, left)| held > 0 && *left == held) {
            request = request
                .header(RANGE, format!("bytes={held}-"))
                .header(IF_RANGE, validator);
        }
        let request = request.build().map_err(connection)?;
        let redirected = net::redirect::send(&client.client, request).await;
        let response = redirected.map_err(connection)?.response;
        let start = match response.status() {
            StatusCode::OK => 0,
            StatusCode::PARTIAL_CONTENT if content_start(response.headers()) == Some(held) => held,
            status => return Err(DownloadError::Status(status)),
        };
        let validator = validator(response.headers());
        let announced = response.content_length().map(|length| start + length);
        let target = ImageTarget {
            path,
            progress,
            limits: client.limits,
        };
        let mut file = target.open(start, announced).await?;
        let received = file.receive(response.bytes_stream().map_err(connection));
        let received = received.await;
        let found = progress.received();
        if let Err(error) = received {
            self.left = validator.map(|validator| (validator, found));
            return Err(error);
        }
        file.sync().await?;
        match announced {
            Some(announced) if announced != found => {
                Err(DownloadError::Length { found, announced })
            }
            _ => Ok(()),
        }
    }
}

/// The URL may hold credentials, so it stays out of errors.
fn connection(error: reqwest::Error) -> DownloadError {
    DownloadError::Connection(error.without_url())
}

/// Validator for a later `If-Range`: a strong entity tag, or the date.
fn validator(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name)?.to_str().ok().map(str::to_owned);
    text(ETAG)
        .filter(|tag| !tag.starts_with("W/"))
        .or_else(|| text(LAST_MODIFIED))
}

fn content_start(headers: &HeaderMap) -> Option<u64> {
    let range = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    service::range::piece(range).map(|(first, _)| first)
}
