//! Downloads of a discovery image, read as slowly as a test needs.

use std::time::Duration;

use crate::{ApiClient, until};
use anyhow::{Context as _, Result, ensure};
use reqwest::{Response, StatusCode, header};
use sha2::{Digest as _, Sha256};

/// Deadline of events that need no action.
const LIMIT: Duration = Duration::from_mins(1);

/// A download in progress.
#[derive(Debug)]
pub struct ImageDownload {
    url: String,
    http: reqwest::Client,
    response: Response,
    tag: Option<header::HeaderValue>,
    total: u64,
    got: u64,
    hash: Sha256,
}

/// A completed download.
#[derive(Debug, PartialEq, Eq)]
pub struct DownloadedImage {
    /// Units: bytes.
    pub length: u64,
    digest: String,
}

/// URL of the image of the first infra-env.
///
/// Errors: there is none.
pub async fn image_url(api: &ApiClient) -> Result<String> {
    let infra_envs = api.get("/v2/infra-envs").await?;
    let list = infra_envs.as_array().context("no list of infra-envs")?;
    // Those of the ledger have no cluster.
    let bound = list.iter().find(|one| one["cluster_id"].is_string());
    let id = bound.or(list.first()).and_then(|one| one["id"].as_str());
    let id = id.context("there is no infra-env")?;
    let answer = api
        .get(&format!("/v2/infra-envs/{id}/downloads/image-url"))
        .await?;
    let url = answer["url"].as_str();
    Ok(url
        .with_context(|| format!("no url in {answer}"))?
        .to_owned())
}

impl ImageDownload {
    /// Requests the whole image; retries while the service responds "not now".
    ///
    /// Errors: any other answer, or none.
    pub async fn begin(url: &str) -> Result<Self> {
        let http = reqwest::Client::builder()
            .tls_certs_only([])
            .build()
            .context("making an HTTP client")?;
        let response = until("the image is offered", LIMIT, async || {
            let response = http.get(url).send().await?;
            let status = response.status();
            ensure!(
                status.is_success() || status == StatusCode::SERVICE_UNAVAILABLE,
                "GET {url}: {status}"
            );
            Ok(status.is_success().then_some(response))
        })
        .await?;
        let total = response.content_length().context("no Content-Length")?;
        Ok(Self {
            url: url.to_owned(),
            http,
            tag: response.headers().get(header::ETAG).cloned(),
            response,
            total,
            got: 0,
            hash: Sha256::new(),
        })
    }

    /// Reads at least `count` bytes and no more than it must: back-pressure stops the server.
    ///
    /// Errors: it breaks off or ends before.
    pub async fn read(&mut self, count: u64) -> Result<()> {
        let end = self.got + count;
        while self.got < end {
            ensure!(
                self.next().await?,
                "the image ended after {} bytes",
                self.got
            );
        }
        Ok(())
    }

    /// Reads to the end; returns whether bytes are missing.
    ///
    /// Errors: it broke after the last byte.
    pub async fn breaks_off(&mut self) -> Result<bool> {
        loop {
            match self.next().await {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(_) => break,
            }
        }
        ensure!(
            self.got < self.total,
            "the connection broke after the last byte"
        );
        Ok(true)
    }

    /// Requests the missing bytes.
    ///
    /// Errors: a response without exactly these.
    pub async fn resume(mut self) -> Result<Self> {
        let mut request = self
            .http
            .get(&self.url)
            .header(header::RANGE, format!("bytes={}-", self.got));
        if let Some(tag) = &self.tag {
            request = request.header(header::IF_RANGE, tag);
        }
        self.response = request.send().await?;
        let status = self.response.status();
        ensure!(status == StatusCode::PARTIAL_CONTENT, "Range: {status}");
        let range = self.response.headers().get(header::CONTENT_RANGE);
        let (got, total) = (self.got, self.total);
        let expected = format!("bytes {got}-{}/{total}", total - 1);
        ensure!(
            range.is_some_and(|range| *range == *expected),
            "{range:?} is not {expected}"
        );
        Ok(self)
    }

    /// Reads the rest.
    ///
    /// Errors: fewer bytes than announced.
    pub async fn whole(mut self) -> Result<DownloadedImage> {
        while self.next().await? {}
        ensure!(
            self.got == self.total,
            "{} of {} bytes",
            self.got,
            self.total
        );
        Ok(DownloadedImage {
            length: self.got,
            digest: hex::encode(self.hash.finalize()),
        })
    }

    async fn next(&mut self) -> Result<bool> {
        let Some(chunk) = self.response.chunk().await? else {
            return Ok(false);
        };
        self.got += chunk.len() as u64;
        self.hash.update(&chunk);
        Ok(true)
    }
}
