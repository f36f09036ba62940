//! Sources of uploads.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use model::Error;
use net::web::{self, Web, WebFile};
use reqwest::{Body, Url};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, Take};
use tokio_util::io::ReaderStream;

use super::Client;
use super::download::{BlobDownload, BlobPlace};
use oci::{Descriptor, Digest, Hasher, Reference};

/// Units: bytes. Read buffer of a file.
pub(super) const BUFFER_BYTES: usize = 256 * 1024;

/// The source of a blob, which can be read again when an upload is retried.
#[derive(Debug, Clone)]
pub enum BlobSource {
    /// From memory.
    Bytes(Bytes),
    /// From a file that does not change during the upload.
    File(PathBuf),
    /// From a range of a file that does not change during the upload.
    Part {
        /// The file.
        path: Arc<Path>,
        /// Offset of the range. Units: bytes.
        offset: u64,
        /// Units: bytes.
        size: u64,
    },
    /// From a range of a file of a web server; another version of the file is an error.
    WebPart(Box<WebPart>),
    /// From another registry, verified while streaming, in one piece.
    Remote(Box<RemoteBlob>),
    /// From a web server, otherwise as [`Self::Remote`].
    Web(Box<WebBlob>),
}

/// A range of a file of a web server.
#[derive(Debug, Clone)]
pub struct WebPart {
    /// The file.
    pub file: WebFile,
    /// Offset of the range. Units: bytes.
    pub offset: u64,
    /// Units: bytes.
    pub size: u64,
}

impl WebPart {
    /// The bytes after the first `at` ones, at most `length` of them.
    fn stream(&self, at: u64, length: u64) -> BoxStream<'static, Result<Bytes, Error>> {
        let length = length.min(self.size.saturating_sub(at));
        let range = self.file.range(self.offset.saturating_add(at), length);
        range.into_stream().boxed()
    }
}

/// A blob of another registry.
#[derive(Debug, Clone)]
pub struct RemoteBlob {
    /// Client of the other registry.
    pub client: Client,
    /// Its repository.
    pub reference: Reference,
    /// The blob.
    pub blob: Descriptor,
}

/// A blob that a web server has as a file.
#[derive(Debug, Clone)]
pub struct WebBlob {
    /// Client of the server.
    pub web: Web,
    /// The file.
    pub url: Url,
    /// The blob.
    pub blob: Descriptor,
}

impl WebBlob {
    /// The bytes after the first `received`, which `hasher` has; resumed after interruptions. The last item is an error
    /// unless size and digest match.
    ///
    /// Errors: NotFound – no such file; Unavailable – the server cannot be reached; Invalid – it refuses.
    pub async fn stream_after(
        &self,
        hasher: Hasher,
        received: u64,
    ) -> Result<BoxStream<'static, Result<Bytes, Error>>, Error> {
        let place = BlobPlace::File(self.web.clone(), self.url.clone());
        let mut download = BlobDownload::new(place, &self.blob, hasher, received);
        if received < self.blob.size {
            download.open().await?;
        }
        Ok(download.into_stream().boxed())
    }
}

/// Bytes that one attempt has read from its source.
#[derive(Debug, Default)]
pub(super) struct SourceProgress {
    /// Units: bytes.
    pub(super) bytes: Arc<AtomicU64>,
    /// Error of the source.
    failure: Mutex<Option<Error>>,
}

impl SourceProgress {
    /// Counts in `bytes`, from zero.
    pub(super) fn counting(bytes: &Arc<AtomicU64>) -> Arc<Self> {
        bytes.store(0, Ordering::Relaxed);
        Arc::new(Self {
            bytes: Arc::clone(bytes),
            failure: Mutex::default(),
        })
    }

    /// Error of the source, which is the reason of a truncated upload.
    pub(super) fn failure(&self) -> Option<Error> {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn fail(&self, error: Error) -> std::io::Error {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        *failure = Some(error);
        std::io::Error::other("the source of an upload failed")
    }
}

impl BlobSource {
    /// Size of the blob. Units: bytes. Errors: Internal – the file cannot be read.
    pub async fn size(&self) -> Result<u64, Error> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.len() as u64),
            Self::Part { size, .. } => Ok(*size),
            Self::WebPart(part) => Ok(part.size),
            Self::Remote(remote) => Ok(remote.blob.size),
            Self::Web(file) => Ok(file.blob.size),
            Self::File(path) => match tokio::fs::metadata(path).await {
                Ok(metadata) => Ok(metadata.len()),
                Err(e) => Err(unreadable(path, e)),
            },
        }
    }

    /// The bytes of a small blob, verified.
    ///
    /// Errors: TooLarge – more than `limit` bytes; Invalid – another digest; Internal – unreadable; those of the other
    /// registry.
    pub async fn bytes(&self, digest: &Digest, limit: u64) -> Result<Bytes, Error> {
        let size = self.size().await?;
        if size > limit {
            let what = "blob";
            return Err(Error::TooLarge { what, limit });
        }
        let bytes = match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::File(path) => read(path, 0, size).await?,
            Self::Part { path, offset, .. } => read(path, *offset, size).await?,
            Self::WebPart(part) => {
                let chunks: Vec<Bytes> = part.stream(0, size).try_collect().await?;
                chunks.concat().into()
            }
            Self::Remote(remote) => {
                let client = &remote.client;
                let bytes = client.pull_blob_bytes(&remote.reference, &remote.blob, limit);
                bytes.await?
            }
            Self::Web(file) => {
                let chunks = file.stream_after(Hasher::new(digest.algorithm()), 0);
                let chunks: Vec<Bytes> = chunks.await?.try_collect().await?;
                chunks.concat().into()
            }
        };
        if digest.matches(&bytes) {
            return Ok(bytes);
        }
        Err(match self {
            Self::File(path) => damaged(&path.display(), digest),
            Self::Part { path, .. } => damaged(&path.display(), digest),
            Self::WebPart(part) => damaged(&web::shown(part.file.url()), digest),
            Self::Bytes(_) | Self::Remote(_) | Self::Web(_) => {
                Error::invalid("blob", format!("{digest}: its bytes have another digest"))
            }
        })
    }

    /// The bytes after the first `at` ones, which `hasher` has.
    ///
    /// Errors: Internal – unreadable; those of the other registry or the web server.
    pub async fn chunks_after(
        &self,
        hasher: Hasher,
        at: u64,
    ) -> Result<BoxStream<'static, Result<Bytes, Error>>, Error> {
        match self {
            Self::Bytes(bytes) => {
                let at = usize::try_from(at).map_or(bytes.len(), |at| at.min(bytes.len()));
                let rest = bytes.slice(at..);
                Ok(stream::once(async { Ok(rest) }).boxed())
            }
            Self::File(path) => file_chunks(path, at, u64::MAX).await,
            Self::Part { path, offset, size } => {
                file_chunks(path, offset + at, size.saturating_sub(at)).await
            }
            Self::WebPart(part) => Ok(part.stream(at, part.size)),
            Self::Remote(remote) => {
                let (client, blob) = (&remote.client, &remote.blob);
                let stream = client.blob_stream_after(&remote.reference, blob, hasher, at);
                Ok(stream.await?.boxed())
            }
            Self::Web(file) => file.stream_after(hasher, at).await,
        }
    }

    /// Whether a range can be read without the bytes before it.
    pub(super) fn is_seekable(&self) -> bool {
        !matches!(self, Self::Remote(_) | Self::Web(_))
    }

    /// `length` bytes from `at`, counted in `taken`.
    pub(super) async fn body(
        &self,
        at: u64,
        length: u64,
        taken: Arc<SourceProgress>,
    ) -> Result<Body, Error> {
        match self {
            Self::Bytes(bytes) => {
                let size = bytes.len() as u64;
                let range = |at: u64| usize::try_from(at.min(size)).unwrap_or(bytes.len());
                taken.bytes.fetch_add(length, Ordering::Relaxed);
                Ok(Body::from(bytes.slice(range(at)..range(at + length))))
            }
            Self::File(path) => part(path, at, length, taken).await,
            Self::Part { path, offset, .. } => part(path, offset + at, length, taken).await,
            Self::WebPart(part) => Ok(streamed(part.stream(at, length), taken)),
            Self::Remote(remote) => self.verified(&remote.blob, taken).await,
            Self::Web(file) => self.verified(&file.blob, taken).await,
        }
    }

    async fn verified(&self, blob: &Descriptor, taken: Arc<SourceProgress>) -> Result<Body, Error> {
        let hasher = Hasher::new(blob.digest.algorithm());
        Ok(streamed(self.chunks_after(hasher, 0).await?, taken))
    }
}

fn streamed(chunks: BoxStream<'static, Result<Bytes, Error>>, taken: Arc<SourceProgress>) -> Body {
    Body::wrap_stream(chunks.map(move |chunk| match chunk {
        Ok(chunk) => {
            let count = chunk.len() as u64;
            taken.bytes.fetch_add(count, Ordering::Relaxed);
            Ok(chunk)
        }
        Err(error) => Err(taken.fail(error)),
    }))
}

async fn file_chunks(
    path: &Path,
    offset: u64,
    length: u64,
) -> Result<BoxStream<'static, Result<Bytes, Error>>, Error> {
    let stream = file_stream(path, offset, length).await?;
    let path = path.to_owned();
    Ok(stream.map_err(move |e| unreadable(&path, e)).boxed())
}

async fn part(
    path: &Path,
    offset: u64,
    length: u64,
    taken: Arc<SourceProgress>,
) -> Result<Body, Error> {
    let stream = file_stream(path, offset, length).await?;
    Ok(Body::wrap_stream(stream.inspect_ok(move |chunk| {
        taken.bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
    })))
}

async fn file_stream(
    path: &Path,
    offset: u64,
    length: u64,
) -> Result<ReaderStream<Take<File>>, Error> {
    let opened = open(path, offset, length).await;
    let file = opened.map_err(|e| unreadable(path, e))?;
    Ok(ReaderStream::with_capacity(file, BUFFER_BYTES))
}

async fn read(path: &Path, offset: u64, length: u64) -> Result<Bytes, Error> {
    let mut bytes = Vec::new();
    let read = async {
        let mut file = open(path, offset, length).await?;
        file.read_to_end(&mut bytes).await
    };
    read.await.map_err(|e| unreadable(path, e))?;
    Ok(bytes.into())
}

async fn open(path: &Path, offset: u64, length: u64) -> std::io::Result<Take<File>> {
    let mut file = File::open(path).await?;
    file.seek(std::io::SeekFrom::Start(offset)).await?;
    Ok(file.take(length))
}

fn damaged(file: &dyn Display, digest: &Digest) -> Error {
    Error::invalid(file.to_string(), format!("blob {digest} is damaged"))
}

fn unreadable(path: &Path, error: std::io::Error) -> Error {
    Error::internal(format!("reading {}", path.display()), error)
}
