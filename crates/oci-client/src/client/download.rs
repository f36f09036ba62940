//! A blob on its way: compared with its digest while it passes, resumed where it ended.

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

/// How often a download is begun without a byte more: with the pauses, a registry can restart meanwhile.
const RESUMES: u32 = 8;

/// Where the rest of a blob comes from.
enum Body {
    Response(Response),
    File(ReaderStream<tokio::fs::File>),
}

/// A blob on its way.
pub(super) struct Download {
    client: Client,
    /// Where it is asked for.
    pub(super) reference: Reference,
    blob: Descriptor,
    /// Taken when the last byte was seen.
    hasher: Option<Hasher>,
    received: u64,
    body: Option<Body>,
    /// Bytes that come again, from a registry without Range.
    skip: u64,
    failures: u32,
}

impl Download {
    /// One that has not begun. `hasher` has seen the first `received` bytes.
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

    /// Begins, or goes on after what was received.
    ///
    /// Errors: as [`Client::pull_manifest`].
    pub(super) async fn open(&mut self) -> Result<(), Error> {
        if let Some(local) = self.client.local(&self.reference) {
            let file = local.blob(&self.blob.digest, self.received).await?;
            self.body = Some(Body::File(file));
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
        self.body = Some(Body::Response(response));
        Ok(())
    }

    /// What comes next; nothing after the last byte, which is given when size and digest were right.
    ///
    /// Errors: as [`Self::open`]; Invalid – what was sent has another size or digest.
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
                Some(Body::Response(response)) => {
                    let chunk = response.chunk().await;
                    chunk.map_err(|e| {
                        let place = reference.scope("pull").place();
                        error::unavailable(&place, &e.without_url())
                    })
                }
                Some(Body::File(file)) => match file.next().await.transpose() {
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
                        // Nobody gets the last bytes of something else: who counts them would not ask what comes after.
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

    /// Goes on where it ended, also when the registry is away for a moment.
    async fn resume(&mut self, failure: Option<Error>) -> Result<(), Error> {
        let mut failure = failure.unwrap_or_else(|| {
            let (digest, received) = (&self.blob.digest, self.received);
            error::strange(
                &self.reference.scope("pull").place(),
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
        Error::invalid("blob", format!("{id}: what was sent {how}"))
    }
}
