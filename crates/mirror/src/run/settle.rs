//! The end of a run into a target: what nobody wants any more leaves it, and what was carried is remembered.

use bytes::Bytes;
use model::Error;

use super::{Outcome, Setup};
use crate::history::{Pruning, Store, prune};
use crate::publish::Target;

/// What is done when all images are in the target.
pub(super) struct Ending<'a> {
    /// What leaves.
    pub(super) pruning: &'a Pruning,
    /// What is remembered.
    pub(super) metadata: &'a Bytes,
    /// Where, in this order.
    pub(super) stores: &'a [Store],
}

/// Ends a run. One that has left something out is not remembered: the next one tries again, and prunes then.
///
/// Errors: a manifest that cannot be deleted, unless the run goes on then; metadata that cannot be written.
pub(super) async fn settle(
    setup: Setup<'_>,
    target: &Target,
    ending: Ending<'_>,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    if !outcome.failed.is_empty() {
        return Ok(());
    }
    outcome.pruned = ending.pruning.images;
    outcome.stayed = prune(ending.pruning, target, setup.limits.parallel).await;
    if !setup.limits.goes_on && !outcome.stayed.is_empty() {
        return Err(outcome.stayed.swap_remove(0));
    }
    for store in ending.stores {
        store.write(ending.metadata.clone()).await?;
    }
    if let Err(error) = target.client.sweep(&target.registry).await {
        outcome.stayed.push(error);
    }
    Ok(())
}
