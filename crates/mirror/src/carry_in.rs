//! An archive set is carried into a registry: the one way of the mirroring command, of the installation of a bundle, and of
//! the API server's jobs.
//!
//! | stage | purpose |
//! |---|---|
//! | plan | the set is compared with the registry, which may have it already |
//! | decide | the caller consents to the pruning, or drops it |
//! | send | images, catalogs; images that left the set are pruned |
//! | keep | the caller keeps the results |
//! | record | the registry's metadata names the set: the next one may follow |
//!
//! Content that the registry has is not sent again, so that an interrupted publication continues.

use model::Error;

use crate::archive::Set;
use crate::history::Pruning;
use crate::publish::MirrorTarget;
use crate::results::MirrorResults;
use crate::run::{self, PlannedPublication, RunContext, RunOutcome};

/// The decision of the caller about a pruning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    Given,
    /// Nothing is published.
    Withheld,
}

/// Outcome of a publication.
#[derive(Debug)]
pub enum CarriedIn<R> {
    /// The registry has it, for this reason.
    Unchanged(&'static str),
    /// Consent to this pruning was withheld.
    Withheld(Pruning),
    /// It was published, and recorded.
    Published { outcome: Box<RunOutcome>, kept: R },
}

/// Publishes a set. `decide` gets the plan of a pruning, and may empty it; `keep` stores the results before they
/// are recorded. `checks_sequence`: whether the set has to follow the one in the registry's metadata.
///
/// Errors: Conflict – another sequence comes first; Invalid – an archive is damaged; those of the registry, of `decide` and of
/// `keep`.
pub async fn publish<R>(
    set: Set,
    target: &MirrorTarget,
    context: RunContext<'_>,
    checks_sequence: bool,
    decide: impl AsyncFnOnce(&mut Pruning) -> Result<Consent, Error>,
    keep: impl FnOnce(&MirrorResults) -> Result<R, Error>,
) -> Result<CarriedIn<R>, Error> {
    let mut plan = match run::plan_publication(set, target, checks_sequence).await? {
        PlannedPublication::Nothing(reason) => return Ok(CarriedIn::Unchanged(reason)),
        PlannedPublication::Publish(plan) => *plan,
    };
    if !plan.pruning.is_empty() && decide(&mut plan.pruning).await? == Consent::Withheld {
        return Ok(CarriedIn::Withheld(plan.pruning));
    }
    let mut outcome = run::publish(context, plan, target).await?;
    let kept = keep(&outcome.results)?;
    outcome.record(target).await?;
    let outcome = Box::new(outcome);
    Ok(CarriedIn::Published { outcome, kept })
}
