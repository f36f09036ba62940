//! Blobs and manifests to a registry.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use model::Error;
use reqwest::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, LOCATION, RANGE,
};
use reqwest::{Body, Method, RequestBuilder, Response, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio_util::io::ReaderStream;

use super::access::Scope;
use super::send::{self, ATTEMPTS};
use super::{Client, error};
use crate::{Descriptor, Digest, Manifest, Reference, Repository, Target};

/// Units: bytes. Read from a file at once.
const BUFFER_BYTES: usize = 256 * 1024;
/// Without a byte taken or an answer for this long, an upload is taken for dead; a registry may hash and sync
/// several gigabytes after the last byte.
const UPLOAD_IDLE_LIMIT: Duration = Duration::from_mins(5);
const OCTET_STREAM: &str = "application/octet-stream";

/// Where the bytes of a blob come from; they can be read again when an upload has to be repeated.
#[derive(Debug, Clone)]
pub enum BlobSource {
    /// From memory.
    Bytes(Bytes),
    /// From a file, which must not change meanwhile.
    File(PathBuf),
}

impl BlobSource {
    /// How many bytes there are. Errors: Internal – the file cannot be read.
    pub async fn size(&self) -> Result<u64, Error> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.len() as u64),
            Self::File(path) => match tokio::fs::metadata(path).await {
                Ok(metadata) => Ok(metadata.len()),
                Err(e) => Err(Error::internal(format!("reading {}", path.display()), e)),
            },
        }
    }

    /// `length` bytes from `offset`, counted in `sent` as they are taken.
    async fn body(&self, offset: u64, length: u64, sent: Arc<AtomicU64>) -> Result<Body, Error> {
        match self {
            Self::Bytes(bytes) => {
                let size = bytes.len() as u64;
                let range = |at: u64| usize::try_from(at.min(size)).unwrap_or(bytes.len());
                Ok(Body::from(
                    bytes.slice(range(offset)..range(offset + length)),
                ))
            }
            Self::File(path) => {
                let failed = |e| Error::internal(format!("reading {}", path.display()), e);
                let mut file = tokio::fs::File::open(path).await.map_err(failed)?;
                file.seek(std::io::SeekFrom::Start(offset))
                    .await
                    .map_err(failed)?;
                let stream = ReaderStream::with_capacity(file.take(length), BUFFER_BYTES);
                Ok(Body::wrap_stream(stream.inspect_ok(move |chunk| {
                    sent.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                })))
            }
        }
    }
}

impl Client {
    /// Makes the blob part of the repository of `reference`, in one piece; nothing is sent when it is there.
    ///
    /// Errors: Invalid – the bytes have another digest; Internal – they cannot be read; others as
    /// [`Self::pull_manifest`].
    pub async fn push_blob(
        &self,
        reference: &Reference,
        digest: &Digest,
        source: &BlobSource,
    ) -> Result<(), Error> {
        self.push(reference, digest, source, None).await
    }

    /// [`Self::push_blob`] in pieces of `chunk_bytes`, resumed by piece: for unreliable ways and large blobs.
    ///
    /// Errors: as [`Self::push_blob`].
    pub async fn push_blob_chunked(
        &self,
        reference: &Reference,
        digest: &Digest,
        source: &BlobSource,
        chunk_bytes: u64,
    ) -> Result<(), Error> {
        self.push(reference, digest, source, Some(chunk_bytes.max(1)))
            .await
    }

    /// [`Self::push_blob`] from memory; its descriptor.
    ///
    /// Errors: as [`Self::push_blob`].
    pub async fn push_blob_bytes(
        &self,
        reference: &Reference,
        media_type: &str,
        bytes: Bytes,
    ) -> Result<Descriptor, Error> {
        let (digest, size) = (Digest::sha256(&bytes), bytes.len() as u64);
        self.push_blob(reference, &digest, &BlobSource::Bytes(bytes))
            .await?;
        Ok(Descriptor {
            media_type: media_type.to_owned(),
            digest,
            size,
            platform: None,
            annotations: None,
        })
    }

    /// Makes a blob of the repository `from` part of the one of `reference`; whether the registry could.
    ///
    /// Errors: as [`Self::pull_manifest`].
    pub async fn mount_blob(
        &self,
        reference: &Reference,
        from: &Repository,
        digest: &Digest,
    ) -> Result<bool, Error> {
        let scope = reference.scope("pull,push");
        let path = reference.path("blobs/uploads/");
        let response = self
            .send(&scope, Method::POST, &path, |request| {
                request.query(&[("mount", digest.to_string()), ("from", from.to_string())])
            })
            .await?;
        match response.status() {
            StatusCode::CREATED => Ok(true),
            StatusCode::ACCEPTED => {
                // It opened an upload instead, which nobody will use.
                let location = location(&scope, &response)?;
                self.send(&scope, Method::DELETE, &location, |request| request)
                    .await
                    .map(|_| false)
            }
            _ => Err(error::refused(&scope.registry, response, "blob", &digest.to_string()).await),
        }
    }

    /// Stores `manifest` under the tag or digest of `reference`; its content has to be there.
    ///
    /// Errors: Invalid – the registry refuses it, or the digest is another; others as [`Self::pull_manifest`].
    pub async fn push_manifest(
        &self,
        reference: &Reference,
        manifest: &Manifest,
    ) -> Result<(), Error> {
        let target = reference.target();
        if let Target::Digest(digest) = &target
            && !digest.matches(&manifest.bytes)
        {
            return Err(Error::invalid(
                "image",
                format!(
                    "{reference}: the manifest has the digest {}",
                    manifest.digest
                ),
            ));
        }
        let path = reference.path(&format!("manifests/{target}"));
        let response = self
            .send(
                &reference.scope("pull,push"),
                Method::PUT,
                &path,
                |request| {
                    request
                        .header(CONTENT_TYPE, manifest.media_type)
                        .body(manifest.bytes.clone())
                },
            )
            .await?;
        match response.status() {
            StatusCode::CREATED | StatusCode::OK | StatusCode::ACCEPTED => Ok(()),
            _ => Err(error::refused(
                &reference.registry,
                response,
                "image",
                &reference.to_string(),
            )
            .await),
        }
    }

    async fn push(
        &self,
        reference: &Reference,
        digest: &Digest,
        source: &BlobSource,
        chunk: Option<u64>,
    ) -> Result<(), Error> {
        let size = source.size().await?;
        let mut upload = Upload {
            client: self,
            reference,
            scope: reference.scope("pull,push"),
            digest,
            source,
            size,
        };
        let mut failures = 0;
        loop {
            // Also after a failure: the answer to the last piece may be all that was lost.
            if self.has_blob(reference, digest).await? {
                return Ok(());
            }
            match upload.run(chunk).await {
                Err(Error::Unavailable { .. }) if failures + 1 < ATTEMPTS => {
                    failures += 1;
                    tokio::time::sleep(send::pause(failures)).await;
                }
                result => return result,
            }
        }
    }
}

/// A blob on its way to a registry.
struct Upload<'a> {
    client: &'a Client,
    reference: &'a Reference,
    scope: Scope,
    digest: &'a Digest,
    source: &'a BlobSource,
    size: u64,
}

impl Upload<'_> {
    async fn run(&mut self, chunk: Option<u64>) -> Result<(), Error> {
        let path = self.reference.path("blobs/uploads/");
        let response = self
            .client
            .send(&self.scope, Method::POST, &path, |request| {
                request.header(CONTENT_LENGTH, 0)
            })
            .await?;
        if response.status() != StatusCode::ACCEPTED {
            return Err(self.refused(response).await);
        }
        let mut location = location(&self.scope, &response)?;
        let mut sent = 0;
        if let Some(chunk) = chunk {
            while sent < self.size {
                (location, sent) = self.patch(location, sent, chunk).await?;
            }
        }
        let separator = if location.contains('?') { '&' } else { '?' };
        let finish = format!("{location}{separator}digest={}", self.digest);
        let response = self
            .transmit(Method::PUT, &finish, sent, self.size - sent, |request| {
                request
            })
            .await?;
        match response.status() {
            StatusCode::CREATED => Ok(()),
            _ => Err(self.refused(response).await),
        }
    }

    /// Sends the piece at `sent`; after a failure, the registry says how much of it arrived.
    async fn patch(&self, location: String, sent: u64, chunk: u64) -> Result<(String, u64), Error> {
        let length = chunk.min(self.size - sent);
        let range = format!("{sent}-{}", sent + length - 1);
        let result = self
            .transmit(Method::PATCH, &location, sent, length, |request| {
                request.header(CONTENT_RANGE, range.as_str())
            })
            .await;
        match result {
            Ok(response) if response.status() == StatusCode::ACCEPTED => {
                Ok((self::location(&self.scope, &response)?, sent + length))
            }
            Ok(response) if response.status() != StatusCode::RANGE_NOT_SATISFIABLE => {
                Err(self.refused(response).await)
            }
            Ok(_) | Err(Error::Unavailable { .. }) => {
                let response = self
                    .client
                    .send(&self.scope, Method::GET, &location, |request| request)
                    .await?;
                if response.status() != StatusCode::NO_CONTENT {
                    return Err(self.refused(response).await);
                }
                let received = received(&response)
                    .filter(|received| (sent..=self.size).contains(received))
                    .ok_or_else(|| {
                        error::strange(
                            &self.scope.registry,
                            "it does not say how much of an upload it has",
                        )
                    })?;
                if received == sent {
                    return Err(error::strange(
                        &self.scope.registry,
                        "it takes no further part of an upload",
                    ));
                }
                Ok((
                    self::location(&self.scope, &response).unwrap_or(location),
                    received,
                ))
            }
            Err(error) => Err(error),
        }
    }

    /// One request with a body, not repeated, and given up when nothing moves.
    async fn transmit(
        &self,
        method: Method,
        url: &str,
        offset: u64,
        length: u64,
        prepare: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response, Error> {
        let sent = Arc::new(AtomicU64::new(0));
        let body = self.source.body(offset, length, Arc::clone(&sent)).await?;
        let mut request = self
            .client
            .0
            .uploads
            .request(method, url)
            .header(CONTENT_TYPE, OCTET_STREAM)
            .header(CONTENT_LENGTH, length)
            .body(body);
        if let Some(access) = self.client.access(&self.scope) {
            request = request.header(AUTHORIZATION, access);
        }
        let registry = &self.scope.registry;
        tokio::select! {
            response = prepare(request).send() => response.map_err(|e| error::unavailable(registry, &e.without_url())),
            () = stalled(&sent) => Err(error::strange(registry, "it took no further part of an upload for five minutes")),
        }
    }

    async fn refused(&self, response: Response) -> Error {
        error::refused(
            &self.scope.registry,
            response,
            "blob",
            &self.digest.to_string(),
        )
        .await
    }
}

/// Until no byte was taken for [`UPLOAD_IDLE_LIMIT`].
async fn stalled(sent: &AtomicU64) {
    let mut before = sent.load(Ordering::Relaxed);
    loop {
        tokio::time::sleep(UPLOAD_IDLE_LIMIT).await;
        let now = sent.load(Ordering::Relaxed);
        if now == before {
            return;
        }
        before = now;
    }
}

/// Where to go on with an upload, which has to be on the same server: logins are sent there.
fn location(scope: &Scope, response: &Response) -> Result<String, Error> {
    let header = response
        .headers()
        .get(LOCATION)
        .and_then(|value| value.to_str().ok());
    let url = header
        .and_then(|text| response.url().join(text).ok())
        .ok_or_else(|| error::strange(&scope.registry, "it does not say where to upload to"))?;
    if url.host_str() != response.url().host_str() {
        let registry = &scope.registry;
        return Err(Error::invalid(
            "upload location",
            format!("{registry} wants the upload to go to another host"),
        ));
    }
    Ok(url.to_string())
}

/// How many bytes an upload has: `0-0` stands for none and for one, so none is assumed.
fn received(response: &Response) -> Option<u64> {
    let range = response.headers().get(RANGE)?.to_str().ok()?;
    let (_, last) = range.trim_start_matches("bytes=").split_once('-')?;
    let last: u64 = last.parse().ok()?;
    Some(if last == 0 { 0 } else { last + 1 })
}
