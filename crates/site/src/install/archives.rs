//! Archives of the bundle: published from their place in it, so that the registry alone writes their bytes.

use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::time::Duration;

use mirror::archive::{Set, describe};
use mirror::carry_in::{self, CarriedIn, Consent};
use mirror::history::{MetadataStore, Pruning};
use mirror::progress::RunProgress;
use mirror::results::{self, Forms};
use mirror::run::{RunContext, archived_results};
use mirror::workspace::Workspace;
use model::mirror_metadata::MirrorMetadata;
use service::{Error, ResultExt as _};

use super::bundled_set::{BundledSet, open};
use super::local_registry::LocalRegistry;
use super::record::InstallRecord;
use super::request::Dialogue;
use crate::event::{SiteEvent, SiteObserver};

/// Interval of progress reports.
const TICK: Duration = Duration::from_millis(500);
/// Folder for the run, which is removed at the end.
const WORK: &str = "atoll-archives";
/// Files for clusters.
const RESULTS: &str = "mirror-results";

/// Publishes sets, except those that the record or the registry lists, and writes the files for clusters.
///
/// Errors: those of archives and of the registry; pruning that is not allowed.
pub(super) fn publish(
    sets: &[BundledSet],
    registry: &LocalRegistry,
    dir: &Path,
    installed: Option<&InstallRecord>,
    dialogue: &dyn Dialogue,
    observe: SiteObserver<'_>,
) -> Result<(), Error> {
    let is_recorded = |set: &&BundledSet| installed.is_some_and(|it| it.has_archives(set));
    for set in sets.iter().filter(|it| !is_recorded(it)) {
        let doing = || format!("publishing {}", set.path.display());
        let opened = open(set)?;
        if !has_later(set, registry)? {
            send(opened.clone(), registry, dir, dialogue, observe)
                .map_err(|e| e.chain())
                .doing(doing)?;
        }
        write_results(&opened, registry, dir, observe)
            .map_err(|e| e.chain())
            .doing(doing)?;
    }
    observe(SiteEvent::Rested);
    Ok(())
}

/// Carries a set into the registry, in a folder that is removed at the end.
fn send(
    set: Set,
    registry: &LocalRegistry,
    dir: &Path,
    dialogue: &dyn Dialogue,
    observe: SiteObserver<'_>,
) -> Result<(), model::Error> {
    let workspace = dir.join(WORK);
    let removed = |e| model::Error::internal(format!("removing {}", workspace.display()), e);
    if workspace.exists() {
        // Of an interrupted installation.
        fs::remove_dir_all(&workspace).map_err(removed)?;
    }
    let _entered = Workspace::enter(&workspace)?;
    let target = registry.target(&registry.address)?;
    let progress = RunProgress::default();
    let context = RunContext::new(&workspace, service::clock::now().timestamp(), &progress);
    let decide = async |pruning: &mut Pruning| {
        progress.rest();
        let asked = dialogue.allows_pruning(pruning);
        let is_allowed = asked.map_err(|e| model::Error::internal("asking", e))?;
        Ok(if is_allowed {
            Consent::Given
        } else {
            Consent::Withheld
        })
    };
    let publication = carry_in::publish(set, &target, context, true, decide, |_| Ok(()));
    let carried = registry.run(async {
        tokio::select! {
            carried = publication => carried,
            never = tick(&progress, observe) => match never {},
        }
    })?;
    match carried {
        CarriedIn::Unchanged(reason) => observe(SiteEvent::Unchanged(reason)),
        CarriedIn::Withheld(pruning) => {
            let images = pruning.images;
            let reason = format!(
                "{images} images would be pruned, which may be a mistake in the image set of the archives: at a terminal you are \
                 asked; nothing was changed"
            );
            return Err(model::Error::conflict(reason));
        }
        CarriedIn::Published { outcome, .. } => {
            observe(SiteEvent::Published(&outcome));
            outcome.check_stayed()?;
        }
    }
    fs::remove_dir_all(&workspace).map_err(removed)
}

/// Reports progress until it is dropped.
async fn tick(progress: &RunProgress, observe: SiteObserver<'_>) -> Infallible {
    loop {
        tokio::time::sleep(TICK).await;
        observe(SiteEvent::Publishing(progress));
    }
}

/// Clusters know the registry by the host's name, which need not be known here.
fn write_results(
    set: &Set,
    registry: &LocalRegistry,
    dir: &Path,
    observe: SiteObserver<'_>,
) -> Result<(), model::Error> {
    let workspace = dir.join(RESULTS);
    let _entered = Workspace::enter(&workspace)?;
    let all = archived_results(set, &registry.target(&registry.public)?)?;
    if all.names_by_tag() {
        observe(SiteEvent::Noted(results::NEEDS_TAG_MIRRORS));
    }
    let files = results::files(&all, &Forms::default())?;
    let now = u64::try_from(service::clock::now().timestamp()).unwrap_or_default();
    let folder = results::write(&workspace, now, &files, &all.charts)?;
    observe(SiteEvent::ResultsWritten(&folder));
    Ok(())
}

/// Whether the registry has a later archive of the same set: of an installation that was interrupted after it.
fn has_later(set: &BundledSet, registry: &LocalRegistry) -> Result<bool, Error> {
    let failed = |e: model::Error| Error::new(format!("reading {}", set.path.display()), e.chain());
    let MirrorMetadata {
        uid, past_mirror, ..
    } = describe(&set.path).map_err(failed)?;
    let target = registry.target(&registry.address).map_err(failed)?;
    let store = MetadataStore::in_target(&target, uid).map_err(failed)?;
    let there = registry.run(store.read()).map_err(failed)?;
    Ok(there.is_some_and(|it| it.past_mirror.sequence > past_mirror.sequence))
}
