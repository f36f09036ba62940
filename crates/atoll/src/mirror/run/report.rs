//! What people are told of a run, and the files that it leaves.

use std::path::PathBuf;

use ::mirror::content::Wanted;
use ::mirror::progress::Amount;
use ::mirror::publish::Target;
use ::mirror::results::{self, Forms};
use ::mirror::run::{self, Outcome, Prepared, Setup};

use super::error::RunError;
use super::flags::RunArgs;
use crate::terminal;

impl RunArgs {
    /// Tells why what was asked about is carried, and what else people should know.
    pub(super) fn explain(&self, prepared: &Prepared) {
        prepared
            .notes
            .iter()
            .for_each(|note| terminal::notice(note));
        if self.why_refused {
            let all = prepared.breaches.join("\n");
            let none = "no package of the catalogs breaks a rule";
            terminal::print(if all.is_empty() { none } else { &all });
        }
        if let Some(name) = &self.why {
            let reasons = run::reasons(prepared, name);
            if reasons.is_empty() {
                terminal::print(&format!("nothing that is carried is called {name}"));
                return;
            }
            terminal::print(&reasons.join("\n"));
        }
    }

    pub(super) fn write_mapping(&self, mapping: &str) -> Result<(), model::Error> {
        let path = self.dir.join("mapping.txt");
        std::fs::write(&path, mapping)
            .map_err(|e| model::Error::internal(format!("writing {}", path.display()), e))?;
        terminal::print(&format!(
            "nothing was carried; {} has the names",
            path.display()
        ));
        Ok(())
    }

    /// Writes what clusters need; into which folder.
    pub(super) fn write_results(
        &self,
        setup: Setup<'_>,
        outcome: &results::Outcome,
    ) -> Result<PathBuf, model::Error> {
        let forms = Forms {
            mirror_sets: self.all_results,
            cluster_catalogs: self.all_results,
            registries_conf: self.all_results,
        };
        if outcome.names_by_tag() && !self.all_results {
            terminal::notice(
                "catalogs name images by tag: clusters find these in the target by the ImageTagMirrorSet that --all-results writes",
            );
        }
        let files = results::files(outcome, forms)?;
        let time = u64::try_from(setup.now).unwrap_or_default();
        results::write(&self.dir, time, &files, &outcome.charts)
    }

    /// Writes the results of a run, has it remembered, and tells what came of it.
    pub(super) async fn finish(
        &self,
        setup: Setup<'_>,
        mut outcome: Outcome,
        target: &Target,
    ) -> Result<(), RunError> {
        let folder = self.write_results(setup, &outcome.results)?;
        outcome.remember(target).await?;
        let Amount { items, bytes } = outcome.sent;
        terminal::print(&format!(
            "{} images and {} catalogs are there; {items} blobs with {} were sent; what clusters need is in {}",
            outcome.results.images.len(),
            outcome.results.catalogs.len(),
            terminal::mib(bytes),
            folder.display()
        ));
        for error in &outcome.stayed {
            terminal::notice(&format!("not deleted: {}", error.chain()));
        }
        if outcome.pruned > 0 {
            let remainder = match outcome.stayed.len() {
                0 => String::new(),
                stayed => format!("; {stayed} manifests of them could not be deleted"),
            };
            terminal::print(&format!(
                "{} images have left the target{remainder}",
                outcome.pruned
            ));
        }
        report_failures(&outcome.failed, &outcome.unread)?;
        match outcome.stayed.len() {
            0 => Ok(()),
            stayed => {
                let reason =
                    format!("{stayed} manifests were not deleted; the next run tries it again");
                Err(model::Error::conflict(reason).into())
            }
        }
    }
}

/// Tells what was not carried, which is a failure of the run.
pub(in crate::mirror) fn report_failures(
    failed: &[(Wanted, model::Error)],
    unread: &[model::Error],
) -> Result<(), RunError> {
    for error in unread {
        terminal::notice(&error.chain());
    }
    for (wanted, error) in failed {
        terminal::notice(&format!("{}: {}", wanted.source, error.chain()));
    }
    if failed.is_empty() && unread.is_empty() {
        return Ok(());
    }
    let images = failed.iter().map(|(wanted, _)| wanted.clone());
    Err(RunError::Incomplete {
        images: images.collect(),
        charts: unread.len(),
    })
}
