//! Blobs on their way from an upstream into the store.

use std::convert::Infallible;
use std::sync::{Arc, PoisonError};

use blob_store::{ContentStore as _, StoreError};
use futures_util::{StreamExt as _, stream};
use oci::{Descriptor, Digest};
use tokio::sync::watch;
use uuid::Uuid;

use super::Source;
use super::in_progress::{Landing, Progress};
use super::metrics::{self, Traffic};
use super::registry::Refusal;
use crate::error::RegistryError;

/// Pieces of the network that are written at once, when they are there already.
const BATCH_PIECES: usize = 32;

impl Source {
    /// Starts the fetch of a blob, or joins the one in progress. It continues when every client leaves.
    pub(super) fn begin_fetch(&self, digest: &Digest) -> watch::Receiver<Progress> {
        let fetches = &self.all.0.fetches;
        let key = (self.name.clone(), digest.clone());
        let mut running = fetches
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(progress) = running.get(&key) {
            return progress.clone();
        }
        let (sender, progress) = watch::channel(Progress::Asking);
        running.insert(key.clone(), progress.clone());
        let landing = Landing {
            running: Arc::clone(&fetches.running),
            key,
        };
        let (source, digest) = (self.clone(), digest.clone());
        let mut tasks = fetches.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let end = match source.fetch_blob(&digest, &sender).await {
                Ok(size) => Progress::Kept { size },
                Err(refusal) => Progress::Failed(refusal),
            };
            // The end is published before the entry is removed: a caller in between joins this fetch and sees its end.
            sender.send_replace(end);
            drop(landing);
        });
        progress
    }

    async fn fetch_blob(
        &self,
        digest: &Digest,
        progress: &watch::Sender<Progress>,
    ) -> Result<u64, Refusal> {
        let _turn = self.upstream.blobs.acquire().await;
        let store = &self.all.0.store;
        let size = self.remote_size(digest).await?;
        // The upstream has it, and another local repository stores it already. Its size is that of the store: the
        // upstream may state another one.
        if store
            .mount_blob(&self.name, None, digest)
            .await
            .map_err(Refusal::own)?
        {
            let size = store.blob_size(&self.name, digest).await;
            return size.map_err(Refusal::own);
        }
        let now = service::clock::now();
        let upload = store
            .start_upload(&self.name, now)
            .await
            .map_err(Refusal::own)?;
        let received = self.receive(digest, size, upload, progress).await;
        if received.is_err() {
            store.cancel_upload(&self.name, upload).await.ok();
        }
        received.map(|()| size)
    }

    async fn receive(
        &self,
        digest: &Digest,
        size: u64,
        upload: Uuid,
        progress: &watch::Sender<Progress>,
    ) -> Result<(), Refusal> {
        let store = &self.all.0.store;
        let refused = |error: oci::Error| {
            let unknown = StoreError::UnknownBlob(digest.clone());
            self.upstream.refusal(&error, RegistryError::from(unknown))
        };
        let blob = Descriptor {
            media_type: String::new(),
            digest: digest.clone(),
            size,
            platform: None,
            annotations: None,
        };
        let client = &self.upstream.client;
        let pieces = client.blob_stream(&self.remote, &blob).await;
        let pieces = self.upstream.heard(pieces).map_err(refused)?;
        let mut batches = Box::pin(pieces).ready_chunks(BATCH_PIECES);
        let mut written = 0;
        while let Some(batch) = batches.next().await {
            let batch: Result<Vec<_>, _> = batch.into_iter().collect();
            let batch = self.upstream.heard(batch).map_err(refused)?;
            let length = batch.iter().map(|piece| piece.len() as u64).sum();
            metrics::pulled(Traffic::Blob, length);
            let batch = stream::iter(batch.into_iter().map(Ok::<_, Infallible>));
            written = store
                .append_upload(&self.name, upload, Some(written), batch)
                .await
                .map_err(Refusal::own)?;
            if written < size {
                progress.send_replace(Progress::Coming {
                    size,
                    written,
                    upload,
                });
            }
        }
        let finished = store.finish_upload(&self.name, upload, digest).await;
        finished.map_err(Refusal::own)
    }
}
