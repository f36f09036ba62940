//! Resumable downloads of OS images into files.

mod artifact;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, TryStreamExt as _};
use model::Error;
use oci::Reference;
use reqwest::header::{CONTENT_RANGE, ETAG, HeaderMap, IF_RANGE, LAST_MODIFIED, RANGE};
use reqwest::{Client, StatusCode};
use tokio::fs::{File, OpenOptions};
use tokio::io::AsyncWriteExt as _;
use url::Url;

use crate::settings::OCI_SCHEME;

/// Bytes of one write: the network delivers a few kilobytes at a time, and each write is a task on the blocking pool.
const PIECE: usize = 1 << 20;

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
            let registries = &client.registries;
            let fetch = artifact::fetch(registries, reference, architecture, path, progress);
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
        let mut file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(start == 0)
            .append(start > 0)
            .open(path)
            .await
            .map_err(|error| disk(path, error))?;
        progress.begin(start, announced);
        let chunks = response.bytes_stream().map_err(connection);
        let received = receive(chunks, path, &mut file, progress).await;
        let found = progress.received();
        if let Err(error) = received {
            self.left = validator.map(|validator| (validator, found));
            return Err(error);
        }
        // Synced before the caller renames it: after a crash, a file under its final name is whole.
        file.sync_all().await.map_err(|error| disk(path, error))?;
        match announced {
            Some(announced) if announced != found => {
                Err(DownloadError::Length { found, announced })
            }
            _ => Ok(()),
        }
    }
}

/// Writes the body to the file. `progress` counts the bytes in the file, also after an error.
async fn receive(
    chunks: impl Stream<Item = Result<Bytes, DownloadError>>,
    path: &Path,
    file: &mut File,
    progress: &DownloadProgress,
) -> Result<(), DownloadError> {
    let mut chunks = pin!(chunks);
    let mut pending = BytesMut::with_capacity(PIECE);
    let outcome = loop {
        match chunks.try_next().await {
            Ok(Some(chunk)) => pending.extend_from_slice(&chunk),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
        while pending.len() >= PIECE {
            write(path, file, &pending.split_to(PIECE), progress).await?;
        }
    };
    // Also after an error: the next attempt resumes from there.
    write(path, file, &pending, progress).await?;
    file.flush().await.map_err(|error| disk(path, error))?;
    outcome
}

async fn write(
    path: &Path,
    file: &mut File,
    piece: &[u8],
    progress: &DownloadProgress,
) -> Result<(), DownloadError> {
    let written = file.write_all(piece).await;
    written.map_err(|error| disk(path, error))?;
    progress.received.fetch_add(piece.len() as u64, Relaxed);
    Ok(())
}

/// The URL may hold credentials, so it stays out of errors.
fn connection(error: reqwest::Error) -> DownloadError {
    DownloadError::Connection(error.without_url())
}

fn disk(path: &Path, source: io::Error) -> DownloadError {
    let path = path.display().to_string();
    DownloadError::Disk { path, source }
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
