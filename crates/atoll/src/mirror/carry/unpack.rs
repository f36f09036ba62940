//! Out of archives.

use std::path::Path;

use ::mirror::archive::Set;
use ::mirror::publish::Target;
use ::mirror::run::{self, Setup, Unpacked};

use super::failure::Failure;
use super::flags::Arguments;
use crate::terminal;

impl Arguments {
    pub(super) async fn unpack(
        &self,
        setup: Setup<'_>,
        from: &Path,
        target: &Target,
    ) -> Result<(), Failure> {
        let from = from.to_owned();
        let opened = tokio::task::spawn_blocking(move || Set::open(&from)).await;
        let set = opened.map_err(|e| model::Error::internal("opening the archives", e))??;
        if self.manifests_only {
            let folder = self.write_results(setup, &run::names_of(&set, target)?)?;
            terminal::say(&format!(
                "nothing was carried; what clusters need is in {}",
                folder.display()
            ));
            return Ok(());
        }
        let mut publication = match run::open(set, target, self.is_checked()).await? {
            Unpacked::Nothing(reason) => {
                terminal::say(reason);
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
        self.consent(&mut publication.pruning, setup.progress)
            .await?;
        let outcome = run::unpack(setup, publication, target).await?;
        self.end(setup, outcome, target).await
    }
}
