//! Pulls of manifests and blobs, verified while streaming.

use bytes::{Bytes, BytesMut};
use futures_util::stream::{Stream, StreamExt as _, TryStreamExt as _};
use model::Error;
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use reqwest::{Method, Response, StatusCode};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::addresses::Addresses as _;
use super::body::collect;
use super::download::{BlobDownload, BlobPlace};
use super::{Client, error};
use crate::mirrors::RequestKind;
use oci::{
    Descriptor, Digest, Hasher, MANIFEST_LIMIT_BYTES, Manifest, Reference, Target, media_type,
};

impl Client {
    /// The manifest or index of `reference`, verified against its digest.
    ///
    /// Errors: NotFound; Unauthenticated; Forbidden; Invalid – malformed, or another digest; Unavailable – the registry
    /// cannot be reached, or its digest header does not match the body.
    pub async fn pull_manifest(&self, reference: &Reference) -> Result<Manifest, Error> {
        if let Some(local) = self.local(reference) {
            return local.manifest().await;
        }
        let mut places = self.places(reference, RequestKind::Named)?;
        loop {
            match self.manifest_at(places.current()).await {
                Ok(manifest) => return Ok(manifest),
                Err(error) => places.pass(error)?,
            }
        }
    }

    async fn manifest_at(&self, reference: &Reference) -> Result<Manifest, Error> {
        let (target, id) = (reference.target(), reference.to_string());
        let path = reference.path(&format!("manifests/{target}"));
        let response = self
            .send(&reference.scope("pull"), Method::GET, &path, |request| {
                request.header(ACCEPT, media_type::ACCEPT_MANIFESTS)
            })
            .await?;
        if response.status() != StatusCode::OK {
            return Err(error::image_refused(reference, response).await);
        }
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| Some(value.to_str().ok()?.to_owned()));
        let sent = sent_digest(&response);
        let bytes = collect(
            &reference.scope("pull").place(),
            response,
            MANIFEST_LIMIT_BYTES,
        )
        .await?;
        if let Target::Digest(digest) = &target
            && !digest.matches(&bytes)
        {
            return Err(Error::invalid(
                "image",
                format!("{id}: the received manifest has another digest"),
            ));
        }
        // Some registries send manifests as text/plain: the body then has the type.
        let content_type = content_type.filter(|text| text.starts_with("application/vnd."));
        let parsed = Manifest::parse(bytes.clone(), content_type.as_deref());
        let own = parsed.as_ref().ok().map(|manifest| &manifest.digest);
        // Of schema 1, the digest covers the signed payload only.
        if sent.is_some_and(|sent| Some(&sent) != own && !sent.matches(&bytes)) {
            let place = reference.scope("pull").place();
            let text = format!("the manifest of {target} does not match its Docker-Content-Digest");
            return Err(error::protocol_error(&place, text));
        }
        parsed.map_err(|e| Error::invalid("image", format!("{id}: {e}")))
    }

    /// The current digest of `reference`; `None` when it does not exist.
    ///
    /// Errors: as [`Self::pull_manifest`].
    pub async fn manifest_digest(&self, reference: &Reference) -> Result<Option<Digest>, Error> {
        if let Some(local) = self.local(reference) {
            return local.manifest_digest().await;
        }
        let mut places = self.places(reference, RequestKind::Named)?;
        loop {
            let passed = match self.digest_at(places.current()).await {
                Ok(Some(digest)) => return Ok(Some(digest)),
                Ok(None) => places.pass(Error::not_found("image", reference)),
                Err(error) => places.pass(error),
            };
            match passed {
                Ok(()) => {}
                Err(Error::NotFound { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    async fn digest_at(&self, reference: &Reference) -> Result<Option<Digest>, Error> {
        let path = reference.path(&format!("manifests/{}", reference.target()));
        let response = self
            .send(&reference.scope("pull"), Method::HEAD, &path, |request| {
                request.header(ACCEPT, media_type::ACCEPT_MANIFESTS)
            })
            .await?;
        match response.status() {
            StatusCode::NOT_FOUND => return Ok(None),
            StatusCode::OK => {}
            _ => return Err(error::image_refused(reference, response).await),
        }
        match sent_digest(&response) {
            Some(digest) => Ok(Some(digest)),
            // The header is optional in the protocol.
            None => Ok(Some(self.manifest_at(reference).await?.digest)),
        }
    }

    /// Whether the repository of `reference` has a blob.
    ///
    /// Errors: as [`Self::pull_manifest`].
    pub async fn has_blob(&self, reference: &Reference, digest: &Digest) -> Result<bool, Error> {
        Ok(match self.local(reference) {
            Some(local) => local.blob_size(digest).await?.is_some(),
            None => self.head_blob(reference, digest).await?.is_some(),
        })
    }

    /// The size of a blob; `None` when the repository of `reference` does not have it. Units: bytes.
    ///
    /// Errors: as [`Self::pull_manifest`].
    pub async fn blob_size(
        &self,
        reference: &Reference,
        digest: &Digest,
    ) -> Result<Option<u64>, Error> {
        if let Some(local) = self.local(reference) {
            return local.blob_size(digest).await;
        }
        let Some(response) = self.head_blob(reference, digest).await? else {
            return Ok(None);
        };
        // Not reqwest's content length, which is zero for HEAD.
        let size = response
            .headers()
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse().ok())
            .ok_or_else(|| {
                let text = format!("its response has no size of blob {digest}");
                error::protocol_error(reference.scope("pull").place(), text)
            })?;
        Ok(Some(size))
    }

    async fn head_blob(
        &self,
        reference: &Reference,
        digest: &Digest,
    ) -> Result<Option<Response>, Error> {
        let path = reference.path(&format!("blobs/{digest}"));
        let response = self
            .send(&reference.scope("pull"), Method::HEAD, &path, |request| {
                request
            })
            .await?;
        match response.status() {
            StatusCode::OK => Ok(Some(response)),
            StatusCode::NOT_FOUND => Ok(None),
            _ => {
                let id = reference.blob_id(digest);
                Err(error::refused(&reference.registry, response, "blob", &id).await)
            }
        }
    }

    /// The bytes of a blob, resumed after interruptions. The last item is an error unless size and digest match.
    ///
    /// Errors: as [`Self::pull_manifest`].
    pub async fn blob_stream(
        &self,
        reference: &Reference,
        blob: &Descriptor,
    ) -> Result<impl Stream<Item = Result<Bytes, Error>> + Send + use<>, Error> {
        let hasher = Hasher::new(blob.digest.algorithm());
        self.blob_stream_after(reference, blob, hasher, 0).await
    }

    /// The bytes of a blob after the first `received`, which `hasher` has. Otherwise as [`Self::blob_stream`].
    ///
    /// Errors: as [`Self::blob_stream`].
    pub async fn blob_stream_after(
        &self,
        reference: &Reference,
        blob: &Descriptor,
        hasher: Hasher,
        received: u64,
    ) -> Result<impl Stream<Item = Result<Bytes, Error>> + Send + use<>, Error> {
        let place = BlobPlace::Repository(self.clone(), reference.clone());
        let mut download = BlobDownload::new(place, blob, hasher, received);
        if received < blob.size || received == 0 {
            let mut places = self.places(reference, RequestKind::Rest)?;
            loop {
                download.place = BlobPlace::Repository(self.clone(), places.current().clone());
                match download.open().await {
                    Ok(()) => break,
                    Err(error) => places.pass(error)?,
                }
            }
        }
        Ok(download.into_stream())
    }

    /// Writes a blob to `out`, whose content is undefined after an error.
    ///
    /// Errors: as [`Self::blob_stream`]; Internal – `out` cannot be written.
    pub async fn pull_blob(
        &self,
        reference: &Reference,
        blob: &Descriptor,
        out: &mut (impl AsyncWrite + Unpin + Send),
    ) -> Result<(), Error> {
        let failed = |e| Error::internal(format!("writing blob {}", blob.digest), e);
        let mut stream = Box::pin(self.blob_stream(reference, blob).await?);
        while let Some(chunk) = stream.next().await {
            out.write_all(&chunk?).await.map_err(failed)?;
        }
        out.flush().await.map_err(failed)
    }

    /// The bytes of a small blob.
    ///
    /// Errors: as [`Self::blob_stream`]; TooLarge – more than `limit` bytes.
    pub async fn pull_blob_bytes(
        &self,
        reference: &Reference,
        blob: &Descriptor,
        limit: u64,
    ) -> Result<Bytes, Error> {
        if blob.size > limit {
            return Err(Error::TooLarge {
                what: "blob",
                limit,
            });
        }
        let stream = self.blob_stream(reference, blob).await?;
        let bytes: BytesMut = Box::pin(stream)
            .try_fold(BytesMut::new(), |mut bytes, chunk| async move {
                bytes.extend_from_slice(&chunk);
                Ok(bytes)
            })
            .await?;
        Ok(bytes.freeze())
    }
}

/// The `Docker-Content-Digest` of a response.
fn sent_digest(response: &Response) -> Option<Digest> {
    let named = response.headers().get("docker-content-digest")?;
    named.to_str().ok()?.parse().ok()
}
