//! Into a registry: from registries, or out of archives.

use std::path::Path;

use ::mirror::archive::Set;
use ::mirror::publish::Target;
use ::mirror::run::{self, PlannedCopy, Setup, Unpacked};

use super::error::RunError;
use super::flags::RunArgs;
use super::report::report_failures;
use crate::terminal;

impl RunArgs {
    pub(super) async fn direct(&self, setup: Setup<'_>, target: &Target) -> Result<(), RunError> {
        let (store, former) = self.history(setup).await?;
        let former = former.in_target(target).await?;
        let prepared = run::prepare(setup, &former, Some(target)).await?;
        self.explain(&prepared);
        let (store, checks_sequence) = (store.as_ref(), self.checks_sequence());
        let planned =
            run::plan_direct(setup, &prepared, &former, target, store, checks_sequence).await?;
        let mut plan = match planned {
            PlannedCopy::Nothing(reason) => {
                terminal::print(reason);
                return report_failures(&prepared.failed, &prepared.unread);
            }
            PlannedCopy::Copy(plan) => *plan,
        };
        if self.dry_run {
            let mapping = run::mapping(&prepared, target)?;
            self.write_mapping(&mapping)?;
            self.write_pruning(&plan.pruning, target)?;
            return report_failures(&prepared.failed, &prepared.unread);
        }
        self.confirm_pruning(&mut plan.pruning, setup.progress)
            .await?;
        let outcome = run::direct(setup, prepared, plan, target).await?;
        self.finish(setup, outcome, target).await
    }

    pub(super) async fn unpack(
        &self,
        setup: Setup<'_>,
        from: &Path,
        target: &Target,
    ) -> Result<(), RunError> {
        let from = from.to_owned();
        let opened = tokio::task::spawn_blocking(move || Set::open(&from)).await;
        let set = opened.map_err(|e| model::Error::internal("opening the archives", e))??;
        if self.manifests_only {
            let folder = self.write_results(setup, &run::names_of(&set, target)?)?;
            terminal::print(&format!(
                "nothing was mirrored; manifests for clusters written to {}",
                folder.display()
            ));
            return Ok(());
        }
        let mut publication = match run::open(set, target, self.checks_sequence()).await? {
            Unpacked::Nothing(reason) => {
                terminal::print(reason);
                return Ok(());
            }
            Unpacked::Publish(publication) => *publication,
        };
        if self.dry_run {
            let mapping = run::publication_mapping(&publication, target)?;
            self.write_mapping(&mapping)?;
            self.write_pruning(&publication.pruning, target)?;
            return Ok(());
        }
        self.confirm_pruning(&mut publication.pruning, setup.progress)
            .await?;
        let outcome = run::unpack(setup, publication, target).await?;
        self.finish(setup, outcome, target).await
    }
}
