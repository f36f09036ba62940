//! Out of archives.

use std::path::Path;

use ::mirror::archive::Set;
use ::mirror::publish::Target;
use ::mirror::run::{self, Setup, Unpacked};

use super::flags::Arguments;
use crate::terminal;

impl Arguments {
    pub(super) async fn unpack(
        &self,
        setup: Setup<'_>,
        from: &Path,
        target: &Target,
    ) -> Result<(), model::Error> {
        let from = from.to_owned();
        let opened = tokio::task::spawn_blocking(move || Set::open(&from)).await;
        let set = opened.map_err(|e| model::Error::internal("opening the archives", e))??;
        match run::unpack(setup, set, target, !self.skip_metadata_check).await? {
            Unpacked::Nothing(reason) => {
                terminal::say(reason);
                Ok(())
            }
            Unpacked::Published(outcome) => self.tell(setup, &outcome),
        }
    }
}
