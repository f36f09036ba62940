//! From registries to a registry.

use ::mirror::publish::Target;
use ::mirror::run::{self, PlannedCopy, Setup};

use super::failure::Failure;
use super::flags::Arguments;
use super::tell::not_carried;
use crate::terminal;

impl Arguments {
    pub(super) async fn direct(&self, setup: Setup<'_>, target: &Target) -> Result<(), Failure> {
        let (store, former) = self.history(setup).await?;
        let former = former.in_target(target).await?;
        let prepared = run::prepare(setup, &former, Some(target)).await?;
        self.explain(&prepared);
        let (store, is_checked) = (store.as_ref(), self.is_checked());
        let planned =
            run::plan_direct(setup, &prepared, &former, target, store, is_checked).await?;
        let mut plan = match planned {
            PlannedCopy::Nothing(reason) => {
                terminal::say(reason);
                return not_carried(&prepared.failed, &prepared.unread);
            }
            PlannedCopy::Copy(plan) => *plan,
        };
        if self.dry_run {
            let mapping = run::mapping(&prepared, target)?;
            self.write_mapping(&mapping)?;
            self.write_pruning(&plan.pruning, target)?;
            return not_carried(&prepared.failed, &prepared.unread);
        }
        self.consent(&mut plan.pruning, setup.progress).await?;
        let outcome = run::direct(setup, prepared, plan, target).await?;
        self.end(setup, outcome, target).await
    }
}
