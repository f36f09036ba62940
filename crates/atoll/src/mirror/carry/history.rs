//! Where the runs of a set are remembered.

use ::mirror::history::{Former, Store};
use ::mirror::run::Setup;
use model::image_set::Storage;

use super::flags::Arguments;

impl Arguments {
    /// Where the set is remembered, if it is, and what is known of its former runs.
    pub(super) async fn history(
        &self,
        setup: Setup<'_>,
    ) -> Result<(Option<Store>, Former), model::Error> {
        let store = match &setup.set.storage {
            Some(storage @ Storage::Registry { skip_tls: true, .. }) => {
                Some(Store::new(storage, &self.registries.client(true)?)?)
            }
            Some(storage) => Some(Store::new(storage, setup.client)?),
            None => None,
        };
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
