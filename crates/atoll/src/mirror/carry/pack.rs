//! Into archives.

use std::path::Path;

use ::mirror::history::{Former, Store};
use ::mirror::progress::Amount;
use ::mirror::results;
use ::mirror::run::{self, Archives, Planned, Prepared, Setup};
use model::image_set::Storage;

use super::flags::Arguments;
use super::tell::not_carried;
use crate::terminal;

impl Arguments {
    pub(super) async fn pack(&self, setup: Setup<'_>, folder: &Path) -> Result<(), model::Error> {
        let store = match &setup.set.storage {
            Some(storage @ Storage::Registry { skip_tls: true, .. }) => {
                Some(Store::new(storage, &self.client(true)?)?)
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
        let prepared = run::prepare(setup, &former).await?;
        self.explain(&prepared);
        let archives = match run::plan(setup, &prepared, &former, None)? {
            Planned::Nothing(reason) => {
                terminal::say(reason);
                return not_carried(&prepared.failed);
            }
            Planned::Archives(archives) => *archives,
        };
        tell_plan(&prepared, &archives);
        if self.dry_run {
            let mapping = results::archive_mapping(&prepared.content);
            self.write_mapping(&mapping)?;
        } else {
            for path in run::pack(setup, archives, store.as_ref(), folder).await? {
                terminal::say(&path.display().to_string());
            }
        }
        not_carried(&prepared.failed)
    }
}

fn tell_plan(prepared: &Prepared, archives: &Archives) {
    let plan = &archives.plan;
    let Amount { items, bytes } = archives.fetched();
    let (fetched, size) = (terminal::mib(bytes), terminal::mib(plan.size()));
    terminal::say(&format!(
        "sequence {}: {} images; {items} blobs with {fetched} are fetched, {} files take {size}",
        plan.sequence,
        prepared.content.images.len(),
        plan.files.len()
    ));
}
