//! Into a registry: from registries, or out of archives.

use std::ffi::OsStr;

use ::mirror::archive::Set;
use ::mirror::carry_in::{self, CarriedIn, Consent};
use ::mirror::history::Pruning;
use ::mirror::publish::MirrorTarget;
use ::mirror::run::{self, PlannedCopy, PlannedPublication, RunContext, Sources};

use super::error::RunError;
use super::flags::RunArgs;
use super::prune::withheld;
use super::report::{report, report_failures};
use crate::terminal;

impl RunArgs {
    pub(super) async fn direct(
        &self,
        sources: Sources<'_>,
        context: RunContext<'_>,
        target: &MirrorTarget,
    ) -> Result<(), RunError> {
        let (store, previous) = self.history(sources.set).await?;
        let previous = previous.in_target(target).await?;
        let prepared = run::prepare(sources, context, &previous, Some(target)).await?;
        self.explain(&prepared);
        let (store, checks_sequence) = (store.as_ref(), self.checks_sequence());
        let planned = run::plan_copy(
            context,
            &prepared,
            &previous,
            target,
            store,
            checks_sequence,
        );
        let mut plan = match planned.await? {
            PlannedCopy::Nothing(reason) => {
                terminal::print(reason);
                return report_failures(&prepared.failed, &prepared.unread, &prepared.left_out);
            }
            PlannedCopy::Copy(plan) => *plan,
        };
        if self.is_dry() {
            let mapping = run::mapping(&prepared, target)?;
            self.write_mapping(mapping, &prepared.content, Some(target))?;
            self.write_pruning(&plan.pruning, target)?;
            for note in run::vanishing_by_copy(context, &prepared, target).await? {
                terminal::notice(&note);
            }
            return report_failures(&prepared.failed, &prepared.unread, &prepared.left_out);
        }
        let consent = self.confirm_pruning(&mut plan.pruning, context.progress);
        if consent.await? == Consent::Withheld {
            return Err(withheld(&plan.pruning).into());
        }
        let mut outcome = run::copy(sources, context, prepared, plan, target).await?;
        let manifests = self.keep(context, &outcome.results)?;
        outcome.record(target).await?;
        report(&outcome, &manifests)
    }

    pub(super) async fn unpack(
        &self,
        context: RunContext<'_>,
        from: &OsStr,
        target: &MirrorTarget,
    ) -> Result<(), RunError> {
        let from = self.registries.archives(from).await?;
        let opened = tokio::task::spawn_blocking(move || Set::open(from)).await;
        let set = opened.map_err(|e| model::Error::internal("opening the archives", e))??;
        if self.manifests_only {
            let results = tokio::task::block_in_place(|| run::archived_results(&set, target))?;
            let folder = self.write_results(context, &results)?;
            terminal::print(&format!(
                "manifests for clusters written to {}",
                folder.display()
            ));
            return Ok(());
        }
        if self.is_dry() {
            return self.plan_unpacking(context, set, target).await;
        }
        let decide =
            async |pruning: &mut Pruning| self.confirm_pruning(pruning, context.progress).await;
        let keep = |results: &_| self.keep(context, results);
        let checks_sequence = self.checks_sequence();
        let carried = carry_in::publish(set, target, context, checks_sequence, decide, keep);
        match carried.await? {
            CarriedIn::Unchanged(reason) => {
                terminal::print(reason);
                Ok(())
            }
            CarriedIn::Published { outcome, kept } => report(&outcome, &kept),
            CarriedIn::Withheld(pruning) => Err(withheld(&pruning).into()),
        }
    }

    /// Writes the plan of a publication.
    async fn plan_unpacking(
        &self,
        context: RunContext<'_>,
        set: Set,
        target: &MirrorTarget,
    ) -> Result<(), RunError> {
        let planned = run::plan_publication(set, target, self.checks_sequence());
        let publication = match planned.await? {
            PlannedPublication::Nothing(reason) => {
                terminal::print(reason);
                return Ok(());
            }
            PlannedPublication::Publish(publication) => *publication,
        };
        let mapping = run::publication_mapping(&publication, target)?;
        self.write_mapping(mapping, &publication.content, Some(target))?;
        self.write_pruning(&publication.pruning, target)?;
        for note in run::vanishing_by_publication(context, &publication, target).await? {
            terminal::notice(&note);
        }
        Ok(())
    }
}
