//! Blobs into archive files: from their sources straight to their places, several at a time.

use bytes::Bytes;
use futures_util::stream::StreamExt as _;
use model::Error;
use oci::Digest;
use oci_client::client::BlobSource;

use crate::archive::{ArchiveWriter, BlobWriter, Missing};
use crate::blobs::Registries;
use crate::parallel::RegistryLimit;
use crate::progress::{Amount, Phase, RunProgress};
use crate::publish::TransferLimits;

/// Size of one write, so that threads change seldom. Units: bytes.
const WRITE_BYTES: usize = 1 << 20;

/// Fetches missing blobs of an archive. An unavailable blob is tried in all its repositories; after the first failure
/// nothing new is begun, and the next run resumes. Where the run continues on errors, the failures are returned.
///
/// Errors: Invalid – content with another digest; Conflict – the medium is full; those of the registries.
pub async fn fetch(
    sources: &Registries<'_>,
    writer: &ArchiveWriter,
    limits: TransferLimits,
    progress: &RunProgress,
) -> Result<Vec<(Digest, Error)>, Error> {
    let missing = writer.missing();
    let whole = Amount {
        items: missing.len() as u64,
        bytes: missing.iter().map(|blob| blob.size - blob.written).sum(),
    };
    progress.begin(Phase::Packing, whole);
    let fetcher = Fetcher {
        sources,
        writer,
        progress,
    };
    // Few blobs are fetched elsewhere after their first repository refused them: these are not under the concurrency limit
    // of the others.
    let first = |missing: &&Missing| {
        let places = sources.blobs.get(&missing.digest).map(|blob| &blob.sources);
        let first = places.and_then(|places| places.first());
        first.map(|place| place.registry.clone())
    };
    let limit = RegistryLimit::new(limits.parallel);
    let mut fetches = limit.work(&missing, first, async |missing| fetcher.blob(missing).await);
    let mut failed = Vec::new();
    while let Some((index, fetched)) = fetches.next().await {
        match fetched {
            Err(error) if limits.continue_on_error && !is_of_medium(&error) => {
                failed.push((missing[index].digest.clone(), error));
            }
            fetched => fetched?,
        }
        progress.add_items(1);
    }
    Ok(failed)
}

/// Whether it is a failure of the local disk, where other repositories do not help.
fn is_of_medium(error: &Error) -> bool {
    matches!(error, Error::Internal { .. } | Error::Conflict { .. })
}

struct Fetcher<'a> {
    sources: &'a Registries<'a>,
    writer: &'a ArchiveWriter,
    progress: &'a RunProgress,
}

impl Fetcher<'_> {
    async fn blob(&self, missing: &Missing) -> Result<(), Error> {
        let digest = &missing.digest;
        let mut failure = Error::not_found("blob", digest);
        for source in self.sources.all(digest) {
            match self.from(&source, digest).await {
                Ok(()) => return Ok(()),
                Err(error) if is_of_medium(&error) => return Err(error),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn from(&self, source: &BlobSource, digest: &Digest) -> Result<(), Error> {
        let (writer, named) = (self.writer.clone(), digest.clone());
        let Some(mut place) = blocking(move || writer.blob(&named)).await? else {
            return Ok(());
        };
        let (there, hasher) = (place.written(), place.take_hasher());
        let mut chunks = source.chunks_after(hasher, there).await?;
        let (mut batch, mut size) = (Vec::new(), 0);
        loop {
            let chunk = match chunks.next().await {
                Some(Ok(chunk)) => Some(chunk),
                None => None,
                Some(Err(error)) => {
                    // The next attempt resumes after these bytes, unless they were wrong.
                    if matches!(error, Error::Invalid { .. }) {
                        place.restart();
                    } else {
                        write(place, batch).await?;
                    }
                    return Err(error);
                }
            };
            let is_end = chunk.is_none();
            if let Some(chunk) = chunk {
                size += chunk.len();
                self.progress.add_bytes(chunk.len() as u64);
                batch.push(chunk);
            }
            if size >= WRITE_BYTES || is_end {
                place = write(place, std::mem::take(&mut batch)).await?;
                size = 0;
            }
            if is_end {
                return blocking(move || place.finish()).await;
            }
        }
    }
}

async fn write(mut place: BlobWriter, batch: Vec<Bytes>) -> Result<BlobWriter, Error> {
    blocking(move || {
        for chunk in &batch {
            place.write(chunk)?;
        }
        Ok(place)
    })
    .await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Error::internal("writing an archive", error)))
}
