//! From registries to a registry.

use ::mirror::history::Former;
use ::mirror::publish::Target;
use ::mirror::run::{self, Setup};

use super::flags::Arguments;
use super::tell::not_carried;
use crate::terminal;

impl Arguments {
    pub(super) async fn direct(
        &self,
        setup: Setup<'_>,
        target: &Target,
    ) -> Result<(), model::Error> {
        if setup.set.storage.is_some() {
            terminal::problem("storageConfig is for archives: the target itself shows what it has");
        }
        let prepared = run::prepare(setup, &Former::default()).await?;
        self.explain(&prepared);
        if self.dry_run {
            let mapping = run::mapping(&prepared, target)?;
            self.write_mapping(&mapping)?;
            return not_carried(&prepared.failed);
        }
        let outcome = run::direct(setup, prepared, target).await?;
        self.tell(setup, &outcome)
    }
}
