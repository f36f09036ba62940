//! The end of a run into a target: what nobody wants any more leaves it, and what was carried is remembered.

use bytes::Bytes;
use model::Error;
use model::mirror_metadata::{Association, MirrorMetadata};

use super::{Outcome, Setup};
use crate::history::{Pruning, Store, prune, stored};
use crate::publish::Target;

/// What is remembered of a run, and where, in this order.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    pub(super) metadata: Bytes,
    pub(super) stores: Vec<Store>,
}

/// Takes out of the target what leaves it, when all images are there. After a run that could not send something nothing does,
/// and it is not remembered: the next one tries again, and prunes then. What cannot be deleted, where the run goes on then, is
/// remembered as well.
///
/// Errors: a manifest that cannot be deleted, unless the run goes on then.
pub(super) async fn settle(
    setup: Setup<'_>,
    target: &Target,
    pruning: &Pruning,
    memory: Memory,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    if !outcome.failed.is_empty() {
        return Ok(());
    }
    outcome.pruned = pruning.images;
    let mut stayed = prune(pruning, target, setup.limits.parallel).await;
    if !setup.limits.goes_on && !stayed.is_empty() {
        return Err(stayed.swap_remove(0).1);
    }
    let manifests: Vec<_> = stayed.iter().map(|(manifest, _)| manifest).collect();
    let remembered = pruning.remembered_of(&manifests, target)?;
    let memory = memory.with(remembered)?;
    outcome.stayed = stayed.into_iter().map(|(_, error)| error).collect();
    outcome.memory = Some(memory);
    Ok(())
}

impl Memory {
    /// With more images.
    fn with(self, remembered: Vec<Association>) -> Result<Self, Error> {
        if remembered.is_empty() {
            return Ok(self);
        }
        let metadata = serde_json::from_slice::<MirrorMetadata>(&self.metadata);
        let mut metadata = metadata.map_err(|e| Error::internal("reading metadata", e))?;
        metadata.past_associations.extend(remembered);
        Ok(Self {
            metadata: stored(&metadata)?,
            ..self
        })
    }
}

impl Outcome {
    /// Has the run remembered, in its target first. It is the last step: until then, the same run can be done again to get
    /// its results.
    ///
    /// Errors: metadata that cannot be written.
    pub async fn remember(&mut self, target: &Target) -> Result<(), Error> {
        let Some(Memory { metadata, stores }) = self.memory.take() else {
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
