//! Resumable downloads of OS images into files.

mod artifact;
mod error;
mod image_file;
mod machine_os;
mod registry;

use std::collections::BTreeMap;
use std::path::Path;

use futures_util::TryStreamExt as _;
use oci::Reference;
use reqwest::header::{CONTENT_RANGE, ETAG, HeaderMap, IF_RANGE, LAST_MODIFIED, RANGE};
use reqwest::{Client, StatusCode};
use url::Url;

pub(crate) use error::DownloadError;
use image_file::ImageTarget;
pub(crate) use image_file::{DownloadLimits, DownloadProgress};

use crate::catalog::CatalogImage;
use crate::os_image::OCI_SCHEME;

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
    /// Downloads `image` into `path` and syncs it. `path` may hold the partial file of an earlier call.
    pub(crate) async fn fetch(
        &mut self,
        client: &DownloadClient,
        image: &CatalogImage,
        path: &Path,
    ) -> Result<(), DownloadError> {
        let (url, progress) = (image.url.as_str(), &image.progress);
        if let Some(reference) = url.strip_prefix(OCI_SCHEME) {
            let reference: Reference = reference.parse()?;
            let target = ImageTarget {
                path,
                progress,
                limits: client.limits,
            };
            let fetch = registry::fetch(&client.registries, reference, image, target);
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
