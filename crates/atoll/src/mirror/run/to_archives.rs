//! From registries into archives.

use std::path::Path;

use ::mirror::archive::{self, Signer};
use ::mirror::progress::Amount;
use ::mirror::results;
use ::mirror::run::{
    self, ArchiveOutput, ArchivesPlan, PlannedArchives, PreparedRun, RunContext, Sources,
};
use model::size::mib;

use super::error::RunError;
use super::flags::RunArgs;
use super::report::report_failures;
use crate::terminal;

/// The first archive of a run. Source: oc-mirror v2.
const V2_FIRST: &str = "mirror_000001.tar";

impl RunArgs {
    pub(super) async fn pack(
        &self,
        sources: Sources<'_>,
        context: RunContext<'_>,
        folder: &Path,
    ) -> Result<(), RunError> {
        let (store, previous) = self.history(sources.set).await?;
        let mut prepared = run::prepare(sources, context, &previous, None).await?;
        self.explain(&prepared);
        let signer = self.signer()?;
        let archives = match run::plan_archives(context, &prepared, &previous, signer.as_ref())? {
            PlannedArchives::Nothing(reason) => {
                terminal::print(reason);
                // The previous run may have crashed after it renamed its last archive.
                archive::forget_finished(folder)?;
                return report_failures(&prepared.failed, &prepared.unread, &prepared.left_out);
            }
            PlannedArchives::Archives(archives) => *archives,
        };
        report_plan(&prepared, &archives);
        report_large_files(&archives, sources.set.archive_size);
        if self.is_dry() {
            let mapping = results::archive_mapping(&prepared.content);
            self.write_mapping(mapping, &prepared.content, None)?;
        } else {
            let replaced = self.is_v2 && folder.join(V2_FIRST).is_file();
            let output = ArchiveOutput {
                folder,
                signer: signer.as_ref(),
                store: store.as_ref(),
            };
            let all = &mut prepared;
            let packed = run::write_available_archives(sources, context, all, &previous, output);
            for path in packed.await? {
                terminal::print(&path.display().to_string());
            }
            if replaced {
                terminal::notice(
                    "the archives of the previous run in this folder are replaced: for a target that did not get them, pack again with --since",
                );
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

/// Names the members that are larger than an archive file may be.
fn report_large_files(archives: &ArchivesPlan, archive_size: Option<u64>) {
    let limit = archive::size_limit(archive_size);
    let large = archives.plan.files.iter().filter(|it| it.size > limit);
    for file in large {
        for member in &file.members {
            let (name, size) = (&file.name, mib(member.size));
            terminal::notice(&format!(
                "{name} is larger than archiveSize: {} has {size}, and members are never split; choose a larger size, or --strict-archive to refuse it",
                member.path
            ));
        }
    }
}

fn report_plan(prepared: &PreparedRun, archives: &ArchivesPlan) {
    let plan = &archives.plan;
    let Amount { items, bytes } = archives.fetched();
    let (fetched, size) = (mib(bytes), mib(plan.size()));
    terminal::print(&format!(
        "sequence {}: {} images, {items} blobs ({fetched}) to fetch, {} archive files ({size})",
        plan.sequence,
        prepared.content.images.len(),
        plan.files.len()
    ));
}
