//! Downloads of blobs: verified while streaming, resumed after interruptions.

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _};
use model::Error;
use net::web::{self, Web};
use reqwest::header::RANGE;
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use tokio_util::io::ReaderStream;

use super::addresses::Addresses as _;
use super::send;
use super::{Client, error};
use oci::{Descriptor, Digest, Hasher, Reference};

/// Attempts to resume without progress: with backoff, enough for a registry to restart.
const RESUMES: u32 = 8;

/// The source of the rest of a blob.
enum DownloadBody {
    Response(Response),
    File(ReaderStream<tokio::fs::File>),
}

/// The place of a blob.
pub(super) enum BlobPlace {
    /// A repository.
    Repository(Client, Reference),
    /// A file of a web server.
    File(Web, Url),
}

/// A download in progress.
pub(super) struct BlobDownload {
    pub(super) place: BlobPlace,
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
    pub(super) fn new(place: BlobPlace, blob: &Descriptor, hasher: Hasher, received: u64) -> Self {
        Self {
            place,
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
        let (digest, from) = (&self.blob.digest, self.received);
        let response = match &self.place {
            BlobPlace::File(web, url) => web.open(url, from).await?,
            BlobPlace::Repository(client, reference) => {
                if let Some(local) = client.local(reference) {
                    let file = local.blob(digest, from).await?;
                    self.body = Some(DownloadBody::File(file));
                    return Ok(());
                }
                let path = reference.path(&format!("blobs/{digest}"));
                let (scope, method) = (reference.scope("pull"), Method::GET);
                let ranged = |request: RequestBuilder| match from {
                    0 => request,
                    from => request.header(RANGE, format!("bytes={from}-")),
                };
                let response = client.send(&scope, method, &path, ranged).await?;
                match response.status() {
                    StatusCode::OK => {}
                    StatusCode::PARTIAL_CONTENT if from > 0 => {}
                    _ => {
                        let (registry, id) = (&reference.registry, reference.blob_id(digest));
                        return Err(error::refused(registry, response, "blob", &id).await);
                    }
                }
                response
            }
        };
        self.skip = match response.status() {
            StatusCode::PARTIAL_CONTENT => 0,
            _ => from,
        };
        self.body = Some(DownloadBody::Response(response));
        Ok(())
    }

    /// The chunks. The last item is an error unless size and digest match.
    pub(super) fn into_stream(self) -> impl Stream<Item = Result<Bytes, Error>> + Send {
        stream::try_unfold(self, |mut download| async move {
            Ok(download.next().await?.map(|chunk| (chunk, download)))
        })
    }

    /// The next chunk; `None` after the last one, which is returned only if size and digest match.
    ///
    /// Errors: as [`Self::open`]; Invalid – size or digest differ.
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if self.hasher.is_none() {
                return Ok(None);
            }
            if self.received == self.blob.size {
                return self.verify().map(|()| None);
            }
            let place = &self.place;
            let chunk = match &mut self.body {
                Some(DownloadBody::Response(response)) => {
                    let chunk = response.chunk().await;
                    chunk.map_err(|e| place.broken(e))
                }
                Some(DownloadBody::File(file)) => match file.next().await.transpose() {
                    Ok(None) => return Err(self.wrong("is smaller than its manifest says")),
                    Ok(chunk) => Ok(chunk),
                    Err(e) => {
                        let id = place.blob_id(&self.blob.digest);
                        return Err(Error::internal(format!("reading {id}"), e));
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
            let text = format!("blob {digest} ended after {received} bytes");
            error::protocol_error(self.place.name(), text)
        });
        loop {
            self.failures += 1;
            if self.failures >= RESUMES || self.place.is_tried_once() {
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
        let id = self.place.blob_id(&self.blob.digest);
        Error::invalid("blob", format!("{id}: the received content {how}"))
    }
}

impl BlobPlace {
    fn name(&self) -> String {
        match self {
            Self::Repository(_, reference) => reference.scope("pull").place(),
            Self::File(_, url) => web::shown(url),
        }
    }

    fn blob_id(&self, digest: &Digest) -> String {
        match self {
            Self::Repository(_, reference) => reference.blob_id(digest),
            Self::File(_, url) => format!("{}@{digest}", web::shown(url)),
        }
    }

    fn broken(&self, failure: reqwest::Error) -> Error {
        match self {
            Self::Repository(..) => error::unavailable(&self.name(), &failure.without_url()),
            Self::File(_, url) => web::broken(url, failure),
        }
    }

    fn is_tried_once(&self) -> bool {
        matches!(self, Self::Repository(client, _) if client.0.attempts == 1)
    }
}
