//! Where the runs of a set are remembered.

use ::mirror::history::{Former, Store};
use ::mirror::run::Setup;

use super::flags::Arguments;

impl Arguments {
    /// Where the set is remembered, if it is, and what is known of its former runs.
    pub(super) async fn history(
        &self,
        setup: Setup<'_>,
    ) -> Result<(Option<Store>, Former), model::Error> {
        let storage = setup.set.storage.as_ref();
        let store = storage.map(|it| self.registries.store(it)).transpose()?;
        let stored = match &store {
            Some(store) => store.read().await?,
            None => None,
        };
        let former = Former::new(stored);
        let former = if self.ignore_history {
            former.forgotten()
        } else {
            former
        };
        Ok((store, former))
    }

    /// Whether a run has to be the one that follows what the target has.
    pub(super) fn is_checked(&self) -> bool {
        // Source: the peer, where the one includes the other.
        !(self.skip_metadata_check || self.skip_pruning)
    }
}
