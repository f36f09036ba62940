//! The plan of a copy from registries to a target.

use model::Error;

use super::prepared::PreparedRun;
use crate::history::{MetadataStore, PreviousRuns, Pruning, step, stored};
use crate::publish::MirrorTarget;
use crate::run::outcome::MetadataWrites;
use crate::run::record::next;
use crate::run::setup::RunContext;

/// Whether a run to a target has something to copy.
#[derive(Debug)]
pub enum PlannedCopy {
    /// Copies the prepared content, and does this.
    Copy(Box<CopyPlan>),
    /// Previous runs mirrored all of it; the message for the user.
    Nothing(&'static str),
}

/// The steps of a copy besides its content.
#[derive(Debug, Default)]
pub struct CopyPlan {
    /// Images to prune; none after `std::mem::take`.
    pub pruning: Pruning,
    /// Empty for a set without history.
    pub(in crate::run) metadata: MetadataWrites,
}

/// Plans the pruning, and the metadata for the target and for `store`, if the set has one. `is_checked`: the run must follow
/// the sequence of the target.
///
/// Errors: Conflict – the target has another sequence of the set; Invalid – its metadata is malformed; those of the target.
pub async fn copy(
    context: RunContext<'_>,
    prepared: &PreparedRun,
    previous: &PreviousRuns,
    target: &MirrorTarget,
    store: Option<&MetadataStore>,
    is_checked: bool,
) -> Result<PlannedCopy, Error> {
    let Some(store) = store else {
        return Ok(PlannedCopy::Copy(Box::default()));
    };
    let next = next(context, prepared, previous, Some(target))?;
    let in_target = MetadataStore::in_target(target, next.metadata.uid)?;
    let there = in_target.read().await?;
    if is_checked {
        // The same sequence is that of a run that wrote its metadata into the target and then failed to write it into the store.
        step(there.as_ref(), &next.metadata)?;
    }
    let past = there.as_ref().map_or(&[][..], |it| &it.past_associations);
    let (uid, coming) = (next.metadata.uid, &next.metadata.past_associations);
    let pruning = Pruning::plan(uid, past, coming, target).await?;
    if pruning.is_empty()
        && let Some(reason) = next.reason_to_stop()
    {
        return Ok(PlannedCopy::Nothing(reason));
    }
    Ok(PlannedCopy::Copy(Box::new(CopyPlan {
        pruning,
        metadata: MetadataWrites {
            metadata: stored(&next.metadata)?,
            // The target first: a run that fails in between is repeated, and finds the same sequence there.
            stores: vec![in_target, store.clone()],
        },
    })))
}
