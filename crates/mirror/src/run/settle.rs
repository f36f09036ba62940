//! The end of a run into a target: what nobody wants any more leaves it, and what was carried is remembered.

use bytes::Bytes;
use model::Error;

use super::{Outcome, Setup};
use crate::history::{Pruning, Store, prune};
use crate::publish::Target;

/// What is remembered of a run, and where, in this order.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    pub(super) metadata: Bytes,
    pub(super) stores: Vec<Store>,
}

/// Takes out of the target what leaves it, when all images are there. After a run that has left something out nothing does,
/// and it is not remembered: the next one tries again, and prunes then.
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
    outcome.stayed = prune(pruning, target, setup.limits.parallel).await;
    if !setup.limits.goes_on && !outcome.stayed.is_empty() {
        return Err(outcome.stayed.swap_remove(0));
    }
    outcome.memory = Some(memory);
    Ok(())
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
