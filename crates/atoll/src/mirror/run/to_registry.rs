//! Into a registry: from registries, or out of archives.

use std::ffi::OsStr;

use ::mirror::archive::Set;
use ::mirror::publish::MirrorTarget;
use ::mirror::run::{self, PlannedCopy, PlannedPublication, Setup};

use super::error::RunError;
use super::flags::RunArgs;
use super::report::report_failures;
use crate::terminal;

impl RunArgs {
    pub(super) async fn direct(
        &self,
        setup: Setup<'_>,
        target: &MirrorTarget,
    ) -> Result<(), RunError> {
        let (store, previous) = self.history(setup).await?;
        let previous = previous.in_target(target).await?;
        let prepared = run::prepare(setup, &previous, Some(target)).await?;
        self.explain(&prepared);
        let (store, checks_sequence) = (store.as_ref(), self.checks_sequence());
        let planned =
            run::plan_copy(setup, &prepared, &previous, target, store, checks_sequence).await?;
        let mut plan = match planned {
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
            for note in run::vanishing_by_copy(setup, &prepared, target).await? {
                terminal::notice(&note);
            }
            return report_failures(&prepared.failed, &prepared.unread, &prepared.left_out);
        }
        self.confirm_pruning(&mut plan.pruning, setup.progress)
            .await?;
        let outcome = run::copy(setup, prepared, plan, target).await?;
        self.finish(setup, outcome, target).await
    }

    pub(super) async fn unpack(
        &self,
        setup: Setup<'_>,
        from: &OsStr,
        target: &MirrorTarget,
    ) -> Result<(), RunError> {
        let from = self.registries.archives(from).await?;
        let opened = tokio::task::spawn_blocking(move || Set::open(from)).await;
        let set = opened.map_err(|e| model::Error::internal("opening the archives", e))??;
        if self.manifests_only {
            let results = tokio::task::block_in_place(|| run::archived_results(&set, target))?;
            let folder = self.write_results(setup, &results)?;
            terminal::print(&format!(
                "manifests for clusters written to {}",
                folder.display()
            ));
            return Ok(());
        }
        let mut publication =
            match run::plan_publication(set, target, self.checks_sequence()).await? {
                PlannedPublication::Nothing(reason) => {
                    terminal::print(reason);
                    return Ok(());
                }
                PlannedPublication::Publish(publication) => *publication,
            };
        if self.is_dry() {
            let mapping = run::publication_mapping(&publication, target)?;
            self.write_mapping(mapping, &publication.content, Some(target))?;
            self.write_pruning(&publication.pruning, target)?;
            for note in run::vanishing_by_publication(setup, &publication, target).await? {
                terminal::notice(&note);
            }
            return Ok(());
        }
        self.confirm_pruning(&mut publication.pruning, setup.progress)
            .await?;
        let outcome = run::publish(setup, publication, target).await?;
        self.finish(setup, outcome, target).await
    }
}
