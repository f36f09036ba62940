//! What leaves a target: told before, and asked for where it looks like a mistake.

use std::io::{self, IsTerminal as _};

use ::mirror::history::Pruning;
use ::mirror::progress::Progress;
use ::mirror::publish::Target;

use super::flags::RunArgs;
use crate::terminal;

/// How many repositories are told one by one; the others are counted.
const LISTED: usize = 20;

impl RunArgs {
    /// Tells what would leave the target, and takes it out of the plan when it is to stay.
    ///
    /// Errors: Conflict – it is much, and nobody has said that it is meant.
    pub(super) async fn confirm_pruning(
        &self,
        pruning: &mut Pruning,
        progress: &Progress,
    ) -> Result<(), model::Error> {
        if pruning.is_empty() {
            return Ok(());
        }
        let images = pruning.images;
        if self.skip_pruning {
            terminal::notice(&format!(
                "{images} images stay in the target that the set does not have any more"
            ));
            *pruning = Pruning::default();
            return Ok(());
        }
        // Nothing is written over the question.
        progress.rest();
        terminal::progress("");
        for line in lines(pruning) {
            terminal::notice(&line);
        }
        if !pruning.needs_consent() || self.prune {
            return Ok(());
        }
        if is_confirmed().await? {
            return Ok(());
        }
        let reason = format!(
            "{images} images would leave the target, which may be a mistake in the configuration: \
             --prune deletes them, --skip-pruning lets them stay; nothing was changed"
        );
        Err(model::Error::conflict(reason))
    }

    /// Writes what a run would delete.
    pub(super) fn write_pruning(
        &self,
        pruning: &Pruning,
        target: &Target,
    ) -> Result<(), model::Error> {
        let path = self.dir.join("pruning-plan.json");
        let failed = |e| model::Error::internal(format!("writing {}", path.display()), e);
        std::fs::write(&path, pruning.to_json(target)?).map_err(failed)?;
        terminal::print(&format!(
            "{} images would leave the target, as {} tells",
            pruning.images,
            path.display()
        ));
        Ok(())
    }
}

fn lines(pruning: &Pruning) -> Vec<String> {
    let images = pruning.images;
    let mut lines = vec![format!(
        "{images} images leave the target: the set does not have them any more"
    )];
    let repositories = pruning.deletions.iter().take(LISTED);
    lines.extend(repositories.map(|(name, manifests)| format!("  {name}: {}", manifests.len())));
    let others = pruning.deletions.len().saturating_sub(LISTED);
    if others > 0 {
        lines.push(format!("  and {others} other repositories"));
    }
    let emptied = pruning.emptied.iter();
    lines.extend(emptied.map(|section| format!("  none of the section {section} stays")));
    lines
}

/// Whether the person at the terminal wants it; nobody there wants nothing.
async fn is_confirmed() -> Result<bool, model::Error> {
    if !io::stdin().is_terminal() || !terminal::is_terminal() {
        return Ok(false);
    }
    let ask = || {
        terminal::notice("delete them? Type yes:");
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(answer.trim().eq_ignore_ascii_case("yes"))
    };
    let failed = |e: io::Error| model::Error::internal("reading the answer", e);
    let asked = tokio::task::spawn_blocking(ask).await;
    asked
        .map_err(|e| failed(io::Error::other(e)))?
        .map_err(failed)
}
