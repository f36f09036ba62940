//! From registries into archives.

use std::path::Path;

use ::mirror::archive::{self, Signer};
use ::mirror::progress::Amount;
use ::mirror::results;
use ::mirror::run::{self, ArchivesPlan, PlannedArchives, PreparedRun, Setup};

use super::error::RunError;
use super::flags::RunArgs;
use super::report::report_failures;
use crate::terminal;

impl RunArgs {
    pub(super) async fn pack(&self, setup: Setup<'_>, folder: &Path) -> Result<(), RunError> {
        let (store, previous) = self.history(setup).await?;
        let mut prepared = run::prepare(setup, &previous, None).await?;
        self.explain(&prepared);
        let signer = self.signer()?;
        let archives = match run::plan_archives(setup, &prepared, &previous, signer.as_ref())? {
            PlannedArchives::Nothing(reason) => {
                terminal::print(reason);
                // The previous run may have crashed after it renamed its last archive.
                archive::forget_finished(folder)?;
                return report_failures(&prepared.failed, &prepared.unread, &prepared.left_out);
            }
            PlannedArchives::Archives(archives) => *archives,
        };
        report_plan(&prepared, &archives);
        if self.is_dry() {
            let mapping = results::archive_mapping(&prepared.content);
            self.write_mapping(mapping, &prepared.content, None)?;
        } else {
            let (signer, store) = (signer.as_ref(), store.as_ref());
            let all = &mut prepared;
            let packed =
                run::write_available_archives(setup, all, &previous, signer, store, folder);
            for path in packed.await? {
                terminal::print(&path.display().to_string());
            }
        }
        report_failures(&prepared.failed, &prepared.unread, &prepared.left_out)
    }

    fn signer(&self) -> Result<Option<Signer>, model::Error> {
        let Some(path) = &self.sign else {
            return Ok(None);
        };
        let wrong = |reason: String| model::Error::invalid(path.display().to_string(), reason);
        let pem = std::fs::read(path).map_err(|e| wrong(e.to_string()))?;
        Signer::from_pem(&pem)
            .map(Some)
            .map_err(|e| wrong(e.to_string()))
    }
}

fn report_plan(prepared: &PreparedRun, archives: &ArchivesPlan) {
    let plan = &archives.plan;
    let Amount { items, bytes } = archives.fetched();
    let (fetched, size) = (terminal::mib(bytes), terminal::mib(plan.size()));
    terminal::print(&format!(
        "sequence {}: {} images, {items} blobs ({fetched}) to fetch, {} archive files ({size})",
        plan.sequence,
        prepared.content.images.len(),
        plan.files.len()
    ));
}
