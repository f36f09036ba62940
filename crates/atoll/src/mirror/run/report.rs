//! Messages and result files of a run.

use std::path::PathBuf;

use ::mirror::content::{ImageContent, LeftOut, SelectedImage};
use ::mirror::progress::Amount;
use ::mirror::publish::MirrorTarget;
use ::mirror::results::{self, Forms};
use ::mirror::run::{self, PreparedRun, RunContext, RunOutcome};
use model::size::mib;

use super::error::RunError;
use super::flags::RunArgs;
use crate::terminal;

/// Folder of a dry run's mapping. Source: oc-mirror v2.
const V2_DRY_RUN: &str = "dry-run";

impl RunArgs {
    /// Prints notes, broken catalog rules and the explanation of `--why`.
    pub(super) fn explain(&self, prepared: &PreparedRun) {
        prepared
            .notes
            .iter()
            .for_each(|note| terminal::notice(note));
        if self.why_refused {
            let all = prepared.rule_violations.join("\n");
            let none = "no catalog package has validation errors";
            terminal::print(if all.is_empty() { none } else { &all });
        }
        if let Some(name) = &self.why {
            let reasons = run::reasons(prepared, name);
            if reasons.is_empty() {
                terminal::print(&format!("no mirrored bundle or image matches {name}"));
                return;
            }
            terminal::print(&reasons.join("\n"));
        }
    }

    /// Writes the mapping of a dry run, with the manifests of indexes where they are wanted.
    pub(super) fn write_mapping(
        &self,
        mut mapping: String,
        content: &ImageContent,
        target: Option<&MirrorTarget>,
    ) -> Result<(), model::Error> {
        if self.dry_run_manifest_lists {
            mapping.push_str(&run::manifest_mapping(content, target)?);
        }
        let folder = if self.is_v2 {
            self.dir.join(V2_DRY_RUN)
        } else {
            self.dir.clone()
        };
        let path = folder.join("mapping.txt");
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&path, mapping))
            .map_err(|e| model::Error::internal(format!("writing {}", path.display()), e))?;
        terminal::print(&format!(
            "dry run: nothing was mirrored; mapping written to {}",
            path.display()
        ));
        Ok(())
    }

    /// Writes the manifests for clusters and returns their folder.
    pub(super) fn write_results(
        &self,
        context: RunContext<'_>,
        outcome: &results::MirrorResults,
    ) -> Result<PathBuf, model::Error> {
        if self.is_v2 {
            let files = results::v2_files(outcome, &self.api_group_map)?;
            let replaced = results::V2_FOLDER;
            let write = || results::replace(&self.dir, replaced, &files, &outcome.charts);
            tokio::task::block_in_place(write)?;
            return Ok(self.dir.join(replaced));
        }
        let forms = Forms {
            mirror_sets: self.all_results,
            cluster_catalogs: self.all_results,
            registries_conf: self.all_results,
            api_group_map: self.api_group_map.clone(),
        };
        if outcome.names_by_tag() && !self.all_results {
            terminal::notice(results::NEEDS_TAG_MIRRORS);
        }
        let files = results::files(outcome, &forms)?;
        let time = u64::try_from(context.now).unwrap_or_default();
        let write = || results::write(&self.dir, time, &files, &outcome.charts);
        tokio::task::block_in_place(write)
    }

    /// Writes the manifests for clusters, where they are wanted. Returns words about them.
    pub(super) fn keep(
        &self,
        context: RunContext<'_>,
        outcome: &results::MirrorResults,
    ) -> Result<String, model::Error> {
        let folder = self.write_results(context, outcome)?;
        let folder = folder.display();
        Ok(format!("; manifests for clusters written to {folder}"))
    }
}

/// Prints a summary of a run to a target.
pub(crate) fn print_outcome(outcome: &RunOutcome, manifests: &str) {
    outcome.notes.iter().for_each(|note| terminal::notice(note));
    let Amount { items, bytes } = outcome.sent;
    terminal::print(&format!(
        "mirrored {} images and {} catalogs; sent {items} blobs ({}){manifests}",
        outcome.results.images.len(),
        outcome.results.catalogs.len(),
        mib(bytes),
    ));
    for error in &outcome.stayed {
        terminal::notice(&format!("not deleted: {}", error.chain()));
    }
    if outcome.pruned > 0 {
        let remainder = match outcome.stayed.len() {
            0 => String::new(),
            stayed => format!("; {stayed} of their manifests could not be deleted"),
        };
        terminal::print(&format!("pruned {} images{remainder}", outcome.pruned));
    }
}

/// Prints a summary, and the omissions.
///
/// Errors: Incomplete – something was not; Conflict – manifests were not deleted.
pub(super) fn report(outcome: &RunOutcome, manifests: &str) -> Result<(), RunError> {
    print_outcome(outcome, manifests);
    report_failures(&outcome.failed, &outcome.unread, &outcome.left_out)?;
    Ok(outcome.check_stayed()?)
}

/// Reports images, charts and parts of catalogs that were not mirrored.
///
/// Errors: Incomplete – there are some.
pub(in crate::mirror) fn report_failures(
    failed: &[(SelectedImage, model::Error)],
    unread: &[model::Error],
    left_out: &[LeftOut],
) -> Result<(), RunError> {
    let left_out_errors = left_out.iter().map(LeftOut::error);
    for error in unread.iter().chain(left_out_errors) {
        terminal::notice(&error.chain());
    }
    for (wanted, error) in failed {
        terminal::notice(&format!("{}: {}", wanted.source, error.chain()));
    }
    if failed.is_empty() && unread.is_empty() && left_out.is_empty() {
        return Ok(());
    }
    let images = failed.iter().map(|(wanted, _)| wanted.clone());
    Err(RunError::Incomplete {
        images: images.collect(),
        charts: unread.len(),
        catalog_parts: left_out.len(),
    })
}
