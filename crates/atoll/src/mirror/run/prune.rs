//! Pruning of a target: reported first, and confirmed when it is large.

use std::io::{self, IsTerminal as _};

use ::mirror::carry_in::Consent;
use ::mirror::history::Pruning;
use ::mirror::progress::RunProgress;
use ::mirror::publish::MirrorTarget;

use super::flags::RunArgs;
use crate::terminal;

/// Repositories that are listed one by one; the rest is counted.
const LISTED: usize = 20;

impl RunArgs {
    /// Reports the pruning plan and asks for confirmation; `--skip-pruning` empties the plan.
    ///
    /// Errors: the answer cannot be read.
    pub(super) async fn confirm_pruning(
        &self,
        pruning: &mut Pruning,
        progress: &RunProgress,
    ) -> Result<Consent, model::Error> {
        if pruning.is_empty() {
            return Ok(Consent::Given);
        }
        // Images that left the set stay until `delete` removes them, as with oc-mirror v2.
        if self.skip_pruning || self.is_v2 {
            terminal::notice(&format!(
                "pruning skipped: {} images that left the image set are kept",
                pruning.images
            ));
            *pruning = Pruning::default();
            return Ok(Consent::Given);
        }
        // The progress line must not overwrite the prompt.
        progress.rest();
        for line in pruning_lines(pruning) {
            terminal::notice(&line);
        }
        if !pruning.needs_consent() || self.prune {
            return Ok(Consent::Given);
        }
        let failed = |e: io::Error| model::Error::internal("reading the answer", e);
        let asked = tokio::task::spawn_blocking(ask_to_prune).await;
        let asked = asked.map_err(|e| failed(io::Error::other(e)))?;
        Ok(if asked.map_err(failed)? {
            Consent::Given
        } else {
            Consent::Withheld
        })
    }

    /// Writes the pruning plan of a dry run.
    pub(super) fn write_pruning(
        &self,
        pruning: &Pruning,
        target: &MirrorTarget,
    ) -> Result<(), model::Error> {
        let path = self.dir.join("pruning-plan.json");
        let failed = |e| model::Error::internal(format!("writing {}", path.display()), e);
        std::fs::write(&path, pruning.to_json(target)?).map_err(failed)?;
        terminal::print(&format!(
            "{} images would be pruned: see {}",
            pruning.images,
            path.display()
        ));
        Ok(())
    }
}

/// The error of a run whose pruning is not consented to.
pub(super) fn withheld(pruning: &Pruning) -> model::Error {
    let images = pruning.images;
    model::Error::conflict(format!(
        "{images} images would be pruned, which may be a mistake in the configuration: \
         --prune deletes them, --skip-pruning keeps them; nothing was changed"
    ))
}

/// A pruning plan, in words.
pub(crate) fn pruning_lines(pruning: &Pruning) -> Vec<String> {
    let images = pruning.images;
    let mut lines = vec![format!(
        "{images} images are pruned: they left the image set"
    )];
    let repositories = pruning.deletions.iter().take(LISTED);
    lines.extend(repositories.map(|(name, manifests)| format!("  {name}: {}", manifests.len())));
    let others = pruning.deletions.len().saturating_sub(LISTED);
    if others > 0 {
        lines.push(format!("  and {others} other repositories"));
    }
    let emptied = pruning.emptied.iter();
    lines.extend(emptied.map(|section| format!("  all images of section {section}")));
    lines
}

/// Asks at the terminal; false without a terminal. Blocking.
pub(crate) fn ask_to_prune() -> io::Result<bool> {
    if !io::stdin().is_terminal() || !terminal::is_terminal() {
        return Ok(false);
    }
    terminal::notice("Delete these images? Type yes:");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(answer.trim().eq_ignore_ascii_case("yes"))
}
