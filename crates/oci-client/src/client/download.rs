//! Downloads of blobs: verified while streaming, resumed after interruptions.

use bytes::Bytes;
use futures_util::StreamExt as _;
use model::Error;
use reqwest::header::RANGE;
use reqwest::{Method, Response, StatusCode};
use tokio_util::io::ReaderStream;

use super::addresses::Addresses as _;
use super::send;
use super::{Client, error};
use oci::{Descriptor, Hasher, Reference};

/// Attempts to resume without progress: with backoff, enough for a registry to restart.
const RESUMES: u32 = 8;

/// The source of the rest of a blob.
enum DownloadBody {
    Response(Response),
    File(ReaderStream<tokio::fs::File>),
}

/// A download in progress.
pub(super) struct BlobDownload {
    client: Client,
    /// The repository.
    pub(super) reference: Reference,
    blob: Descriptor,
    /// Taken after the last byte.
    hasher: Option<Hasher>,
    received: u64,
    body: Option<DownloadBody>,
    /// Bytes to skip, from a registry that ignores Range.
    skip: u64,
    failures: u32,
}

impl BlobDownload {
    /// A download that has not started. `hasher` has the first `received` bytes.
    pub(super) fn new(
        client: &Client,
        reference: &Reference,
        blob: &Descriptor,
        hasher: Hasher,
        received: u64,
    ) -> Self {
        Self {
            client: client.clone(),
            reference: reference.clone(),
            blob: blob.clone(),
            hasher: Some(hasher),
            received,
            body: None,
            skip: 0,
            failures: 0,
        }
    }

    /// Starts, or resumes after the received bytes.
    ///
    /// Errors: as [`Client::pull_manifest`].
    pub(super) async fn open(&mut self) -> Result<(), Error> {
        if let Some(local) = self.client.local(&self.reference) {
            let file = local.blob(&self.blob.digest, self.received).await?;
            self.body = Some(DownloadBody::File(file));
            return Ok(());
        }
        let path = self.reference.path(&format!("blobs/{}", self.blob.digest));
        let from = self.received;
        let response = self
            .client
            .send(
                &self.reference.scope("pull"),
                Method::GET,
                &path,
                |request| match from {
                    0 => request,
                    from => request.header(RANGE, format!("bytes={from}-")),
                },
            )
            .await?;
        self.skip = match response.status() {
            StatusCode::OK => from,
            StatusCode::PARTIAL_CONTENT if from > 0 => 0,
            _ => {
                let id = self.reference.blob_id(&self.blob.digest);
                return Err(error::refused(&self.reference.registry, response, "blob", &id).await);
            }
        };
        self.body = Some(DownloadBody::Response(response));
        Ok(())
    }

    /// The next chunk; `None` after the last one, which is returned only if size and digest match.
    ///
    /// Errors: as [`Self::open`]; Invalid – size or digest differ.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if self.hasher.is_none() {
                return Ok(None);
            }
            if self.received == self.blob.size {
                return self.verify().map(|()| None);
            }
            let reference = &self.reference;
            let chunk = match &mut self.body {
                Some(DownloadBody::Response(response)) => {
                    let chunk = response.chunk().await;
                    chunk.map_err(|e| {
                        let place = reference.scope("pull").place();
                        error::unavailable(&place, &e.without_url())
                    })
                }
                Some(DownloadBody::File(file)) => match file.next().await.transpose() {
                    Ok(None) => return Err(self.wrong("is smaller than its manifest says")),
                    Ok(chunk) => Ok(chunk),
                    Err(e) => {
                        return Err(Error::internal(
                            format!("reading {}", reference.registry),
                            e,
                        ));
                    }
                },
                None => Ok(None),
            };
            match chunk {
                Ok(Some(chunk)) => {
                    if let Some(chunk) = self.take(chunk)? {
                        // Before the last chunk: a caller that counts bytes never polls the end of the stream.
                        if self.received == self.blob.size {
                            self.verify()?;
                        }
                        return Ok(Some(chunk));
                    }
                }
                Ok(None) => self.resume(None).await?,
                Err(failure) => self.resume(Some(failure)).await?,
            }
        }
    }

    fn take(&mut self, mut chunk: Bytes) -> Result<Option<Bytes>, Error> {
        let again = usize::try_from(self.skip)
            .unwrap_or(usize::MAX)
            .min(chunk.len());
        self.skip -= again as u64;
        chunk = chunk.split_off(again);
        if chunk.is_empty() {
            return Ok(None);
        }
        self.received += chunk.len() as u64;
        if self.received > self.blob.size {
            return Err(self.wrong("is larger than its manifest says"));
        }
        self.failures = 0;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&chunk);
        }
        Ok(Some(chunk))
    }

    /// Resumes an interrupted download, with backoff while the registry is unavailable.
    async fn resume(&mut self, failure: Option<Error>) -> Result<(), Error> {
        let mut failure = failure.unwrap_or_else(|| {
            let (digest, received) = (&self.blob.digest, self.received);
            error::protocol_error(
                self.reference.scope("pull").place(),
                format!("blob {digest} ended after {received} bytes"),
            )
        });
        loop {
            self.failures += 1;
            if self.failures >= RESUMES || self.client.0.attempts == 1 {
                return Err(failure);
            }
            tokio::time::sleep(send::pause(self.failures)).await;
            match self.open().await {
                Err(again @ Error::Unavailable { .. }) => failure = again,
                opened => return opened,
            }
        }
    }

    fn verify(&mut self) -> Result<(), Error> {
        let actual = self.hasher.take().map(Hasher::finish);
        if actual.as_ref() == Some(&self.blob.digest) {
            Ok(())
        } else {
            Err(self.wrong("has another digest"))
        }
    }

    fn wrong(&self, how: &str) -> Error {
        let id = self.reference.blob_id(&self.blob.digest);
        Error::invalid("blob", format!("{id}: the received content {how}"))
    }
}
