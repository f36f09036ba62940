//! Stage 7, record: the target is pruned, and the metadata of the run is written for the next one.
//!
//! Metadata is written after archives and target are complete: a run that fails before is repeated from the previous one.

mod metadata;

use std::path::PathBuf;

use model::Error;
use model::mirror_metadata::{Association, MirrorMetadata};

pub(super) use self::metadata::next;
use super::outcome::{MetadataWrites, RunOutcome};
use super::setup::{RunContext, blocking};
use super::transfer::CompleteArchives;
use crate::history::{MetadataStore, Pruning, prune, stored};
use crate::publish::MirrorTarget;

/// Records an archive set in `store`; the paths of its files.
///
/// Errors: those of the store; Internal – the journal cannot be removed.
pub(super) async fn archives(
    archives: CompleteArchives,
    store: Option<&MetadataStore>,
) -> Result<Vec<PathBuf>, Error> {
    let CompleteArchives {
        paths,
        metadata,
        history,
        writer,
    } = archives;
    if let Some(store) = store {
        store.write(metadata).await?;
    }
    // After the metadata: a list alone is the history of the peer, and the next archive leaves its blobs out.
    if let Some(history) = history {
        blocking(move || history.write()).await?;
    }
    // The journal goes last: where the metadata could not be written, the same run finds its archives complete.
    blocking(move || writer.forget()).await?;
    Ok(paths)
}

/// Prunes the target after all images were sent. A run with failed images neither prunes nor records: the next one retries.
/// Manifests that cannot be deleted stay in the metadata, where the run continues on errors.
///
/// Errors: a manifest that cannot be deleted, unless the run continues on errors.
pub(super) async fn pruned(
    context: RunContext<'_>,
    target: &MirrorTarget,
    pruning: &Pruning,
    metadata: MetadataWrites,
    mut outcome: RunOutcome,
) -> Result<RunOutcome, Error> {
    if !outcome.failed.is_empty() {
        return Ok(outcome);
    }
    outcome.pruned = pruning.images;
    let mut stayed = prune(pruning, target, context.limits.parallel).await;
    if !context.limits.continue_on_error && !stayed.is_empty() {
        return Err(stayed.swap_remove(0).1);
    }
    let manifests: Vec<_> = stayed.iter().map(|(manifest, _)| manifest).collect();
    let remaining = pruning.remembered_of(&manifests, target)?;
    outcome.metadata = Some(metadata.with(remaining)?);
    outcome.stayed = stayed.into_iter().map(|(_, error)| error).collect();
    Ok(outcome)
}

impl MetadataWrites {
    /// Adds past associations.
    fn with(self, associations: Vec<Association>) -> Result<Self, Error> {
        if associations.is_empty() {
            return Ok(self);
        }
        let metadata = serde_json::from_slice::<MirrorMetadata>(&self.metadata);
        let mut metadata = metadata.map_err(|e| Error::internal("reading metadata", e))?;
        metadata.past_associations.extend(associations);
        Ok(Self {
            metadata: stored(&metadata)?,
            ..self
        })
    }
}

impl RunOutcome {
    /// Writes the metadata of the run, into the target first. It is the last step, after the results: until then, the same run
    /// can be repeated to get its results.
    ///
    /// Errors: metadata that cannot be written.
    pub async fn record(&mut self, target: &MirrorTarget) -> Result<(), Error> {
        let Some(MetadataWrites { metadata, stores }) = self.metadata.take() else {
            return Ok(());
        };
        for store in stores {
            store.write(metadata.clone()).await?;
        }
        if let Err(error) = target.client.sweep(&target.registry).await {
            self.stayed.push(error);
        }
        Ok(())
    }
}
