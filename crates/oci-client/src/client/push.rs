//! Pushes of blobs and manifests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use model::Error;
use reqwest::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, LOCATION, RANGE,
};
use reqwest::{Method, RequestBuilder, Response, StatusCode};

use super::addresses::{Addresses as _, Scope};
use super::send;
use super::source::{BlobSource, SourceProgress};
use super::{Client, error, origin};
use oci::{Descriptor, Digest, Manifest, Reference, Repository, Target};

/// Idle timeout of an upload, without a byte sent or a response; a registry may hash and sync several gigabytes after
/// the last byte.
const UPLOAD_IDLE_LIMIT: Duration = Duration::from_mins(5);
const OCTET_STREAM: &str = "application/octet-stream";

/// How a blob was provided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provided {
    /// It existed, or was mounted from another repository.
    There,
    /// It was uploaded.
    Sent,
}

/// Response to the start of an upload.
enum UploadStart {
    There,
    BlobUpload(String),
}

impl Client {
    /// Uploads the blob to the repository of `reference` in one piece, unless it exists.
    ///
    /// Errors: Invalid – another digest; Internal – the source cannot be read; others as [`Self::pull_manifest`].
    pub async fn push_blob(
        &self,
        reference: &Reference,
        digest: &Digest,
        source: &BlobSource,
    ) -> Result<(), Error> {
        self.push(reference, digest, source, None).await
    }

    /// [`Self::push_blob`] in chunks of `chunk_bytes`, each resumable: for unreliable networks and large blobs.
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

    /// [`Self::push_blob`] from memory. Returns the descriptor.
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

    /// Mounts a blob of the repository `from` into the one of `reference`. Returns whether the registry did.
    ///
    /// Errors: as [`Self::pull_manifest`].
    pub async fn mount_blob(
        &self,
        reference: &Reference,
        from: &Repository,
        digest: &Digest,
    ) -> Result<bool, Error> {
        if reference.registry.folder().is_some() {
            // A folder stores blobs once for all repositories.
            return self.has_blob(reference, digest).await;
        }
        let scope = reference.scope("pull,push");
        let path = reference.path("blobs/uploads/");
        let response = self
            .send(&scope, Method::POST, &path, |request| {
                request.query(&[("mount", digest.to_string()), ("from", from.to_string())])
            })
            .await?;
        match response.status() {
            StatusCode::CREATED => {
                self.note_mount(&scope.registry, true);
                Ok(true)
            }
            StatusCode::ACCEPTED => {
                // The registry opened an upload session instead: cancel it.
                let location = location(&scope, &response)?;
                self.send(&scope, Method::DELETE, &location, |request| request)
                    .await
                    .map(|_| false)
            }
            _ => {
                let id = reference.blob_id(digest);
                Err(error::refused(&scope.registry, response, "blob", &id).await)
            }
        }
    }

    /// [`Self::push_blob`], mounted from the repository `from` of the same registry if possible. `sent` counts
    /// the bytes of the upload.
    ///
    /// Errors: as [`Self::push_blob`].
    pub async fn provide_blob(
        &self,
        reference: &Reference,
        digest: &Digest,
        source: &BlobSource,
        from: Option<&Repository>,
        sent: &Arc<AtomicU64>,
    ) -> Result<Provided, Error> {
        if let Some(local) = self.local(reference) {
            return local.provide(digest, source, sent).await;
        }
        let mut upload = BlobUpload::new(self, reference, digest, source).await?;
        upload.sent = Arc::clone(sent);
        upload.provide(from).await
    }

    /// Pushes `manifest` to the tag or digest of `reference`, after its content.
    ///
    /// Errors: Invalid – refused by the registry, or another digest; others as [`Self::pull_manifest`].
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
        if let Some(local) = self.local(reference) {
            return local.push_manifest(manifest).await;
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
            _ => Err(error::image_refused(reference, response).await),
        }
    }

    async fn push(
        &self,
        reference: &Reference,
        digest: &Digest,
        source: &BlobSource,
        chunk: Option<u64>,
    ) -> Result<(), Error> {
        if let Some(local) = self.local(reference) {
            let sent = AtomicU64::default();
            return local.provide(digest, source, &sent).await.map(drop);
        }
        let mut upload = BlobUpload::new(self, reference, digest, source).await?;
        upload.chunk = chunk.filter(|_| source.is_seekable());
        upload.provide(None).await.map(drop)
    }
}

/// An upload in progress.
struct BlobUpload<'a> {
    client: &'a Client,
    reference: &'a Reference,
    scope: Scope,
    digest: &'a Digest,
    source: &'a BlobSource,
    size: u64,
    /// Size of a chunk; `None` for one piece. Units: bytes.
    chunk: Option<u64>,
    /// Bytes that the current attempt has read from the source. Units: bytes.
    sent: Arc<AtomicU64>,
}

impl<'a> BlobUpload<'a> {
    async fn new(
        client: &'a Client,
        reference: &'a Reference,
        digest: &'a Digest,
        source: &'a BlobSource,
    ) -> Result<Self, Error> {
        Ok(Self {
            client,
            reference,
            scope: reference.scope("pull,push"),
            digest,
            source,
            size: source.size().await?,
            chunk: None,
            sent: Arc::default(),
        })
    }

    async fn provide(&self, from: Option<&Repository>) -> Result<Provided, Error> {
        let (mut failures, mut is_renewed) = (0, false);
        loop {
            // A registry that does not mount without `from` needs a HEAD request. Also after a failure: perhaps only
            // the response to the last chunk was lost.
            let finds = from.is_some() || self.client.mounts(&self.scope.registry) == Some(true);
            let asks = failures > 0 || !finds;
            if asks && self.client.has_blob(self.reference, self.digest).await? {
                return Ok(Provided::There);
            }
            let sent = match self.begin(from).await? {
                UploadStart::There => return Ok(Provided::There),
                UploadStart::BlobUpload(location) => self.run(location).await,
            };
            match sent {
                // A token may expire before the bytes are sent. If the next one is refused, too, none will do.
                Err(Error::Unauthenticated { .. }) if !is_renewed => {
                    is_renewed = true;
                    self.client.forget_access(&self.scope);
                }
                Err(Error::Unavailable { .. }) if failures + 1 < self.client.0.attempts => {
                    failures += 1;
                    tokio::time::sleep(send::pause(failures)).await;
                }
                sent => {
                    sent?;
                    self.learn().await;
                    return Ok(Provided::Sent);
                }
            }
        }
    }

    /// Finds out once, by a blob that exists now, whether the registry mounts blobs without `from`: it saves a HEAD
    /// request for each further blob.
    async fn learn(&self) {
        let registry = &self.scope.registry;
        if self.client.mounts(registry).is_none() {
            self.client.note_mount(registry, false);
            let own = &self.reference.repository;
            // It caches its result; after a failure, each blob gets a HEAD request as before.
            let _ = self
                .client
                .mount_blob(self.reference, own, self.digest)
                .await;
        }
    }

    /// Mounts the blob from `from`, or from the repository itself, and opens an upload session otherwise: one request
    /// instead of two.
    async fn begin(&self, from: Option<&Repository>) -> Result<UploadStart, Error> {
        let path = self.reference.path("blobs/uploads/");
        let from = from.unwrap_or(&self.reference.repository);
        let (mount, from) = (self.digest.to_string(), from.as_str());
        let response = self
            .client
            .send(&self.scope, Method::POST, &path, |request| {
                request
                    .query(&[("mount", mount.as_str()), ("from", from)])
                    .header(CONTENT_LENGTH, 0)
            })
            .await?;
        let response = match response.status() {
            StatusCode::CREATED => {
                self.client.note_mount(&self.scope.registry, true);
                return Ok(UploadStart::There);
            }
            StatusCode::ACCEPTED => response,
            // Some registries refuse a mount that fails.
            _ => {
                self.client
                    .send(&self.scope, Method::POST, &path, |request| {
                        request.header(CONTENT_LENGTH, 0)
                    })
                    .await?
            }
        };
        if response.status() != StatusCode::ACCEPTED {
            return Err(self.refused(response).await);
        }
        location(&self.scope, &response).map(UploadStart::BlobUpload)
    }

    async fn run(&self, mut location: String) -> Result<(), Error> {
        let mut sent = 0;
        if let Some(chunk) = self.chunk {
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

    /// Sends the chunk at `sent`; after a failure, the registry reports its offset.
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
                        error::protocol_error(
                            self.scope.place(),
                            "its response about an upload has no Range header",
                        )
                    })?;
                if received == sent {
                    return Err(error::protocol_error(
                        self.scope.place(),
                        "it accepts no further bytes of an upload",
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

    /// Sends one request with a body, without retries, and with an idle timeout.
    async fn transmit(
        &self,
        method: Method,
        url: &str,
        offset: u64,
        length: u64,
        prepare: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response, Error> {
        let url = self
            .client
            .own_url(&self.scope.registry, url)
            .await?
            .ok_or_else(|| leaves(&self.scope))?;
        let taken = SourceProgress::counting(&self.sent);
        let body = self.source.body(offset, length, Arc::clone(&taken)).await?;
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
        let place = self.scope.place();
        let response = tokio::select! {
            response = prepare(request).send() => response.map_err(|e| self.client.unreachable(&place, e)),
            () = stalled(&self.sent) => Err(error::protocol_error(&place, "it accepted no further bytes of an upload for five minutes")),
        };
        match taken.failure() {
            Some(failure) => Err(failure),
            None => response,
        }
    }

    async fn refused(&self, response: Response) -> Error {
        error::refused(
            &self.scope.registry,
            response,
            "blob",
            &self.reference.blob_id(self.digest),
        )
        .await
    }
}

/// Waits until no byte was taken for [`UPLOAD_IDLE_LIMIT`].
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

/// The URL of an upload session, which must be at the same server: it gets the login.
fn location(scope: &Scope, response: &Response) -> Result<String, Error> {
    let header = response
        .headers()
        .get(LOCATION)
        .and_then(|value| value.to_str().ok());
    let named = header.ok_or_else(|| {
        error::protocol_error(
            scope.place(),
            "its response about an upload has no Location header",
        )
    })?;
    let url = origin::same_server(response.url(), named).ok_or_else(|| leaves(scope))?;
    Ok(url.into())
}

fn leaves(scope: &Scope) -> Error {
    let registry = &scope.registry;
    let reason = format!("{registry} wants the upload to go to another host or port");
    Error::invalid("upload location", reason)
}

/// The size of an upload: `0-0` means none or one byte, so none is assumed.
fn received(response: &Response) -> Option<u64> {
    let range = response.headers().get(RANGE)?.to_str().ok()?;
    let (_, last) = range.trim_start_matches("bytes=").split_once('-')?;
    let last: u64 = last.parse().ok()?;
    Some(if last == 0 { 0 } else { last + 1 })
}
