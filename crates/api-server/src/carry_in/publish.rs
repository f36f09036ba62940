//! Publication of an archive set to the registry.

use bytes::Bytes;
use mirror::archive::Set;
use mirror::names::Naming;
use mirror::platform::{ReleaseSources, public_graph_data, usual_graph_base};
use mirror::progress::RunProgress;
use mirror::publish::{MirrorTarget, TransferLimits};
use mirror::results::{self, Forms, MirrorResults};
use mirror::run::{self, CatalogForm, PlannedPublication, RunOutcome, Setup};
use mirror::workspace::Workspace;
use model::Error;
use model::image_set::ImageSet;
use model::jobs::{ArchivePublication, JobFile};
use net::web::Web;

use super::{CarryIn, blocking};

/// Concurrent transfers, as in the mirroring tool.
const PARALLEL: usize = 8;
/// Most bytes of the files of the results. Units: bytes. Those of a release and three catalogs have a few hundred thousand.
const RESULTS_BYTES: usize = 16 << 20;

/// The result of a publication.
#[derive(Debug, Default)]
pub(crate) struct PublishedArchives {
    pub(crate) publication: ArchivePublication,
    /// Files of the results, by name.
    pub(crate) files: Vec<(String, Bytes)>,
}

impl CarryIn {
    /// Publishes a set. Content that the registry has is not sent again, so that an interrupted publication continues.
    /// `prunes`: also when many images leave the registry; without it, that is the result, and nothing is published.
    ///
    /// Errors: as [`CarryIn::check`]; Conflict – another sequence comes first; Invalid – an archive is damaged; those of the
    /// registry.
    pub(crate) async fn publish(
        &self,
        name: &str,
        prunes: bool,
        progress: &RunProgress,
    ) -> Result<PublishedArchives, Error> {
        let target = self.target()?.open()?;
        let path = self.find(name).await?;
        let workspace = self.workspace().await?;
        let entered = workspace.clone();
        let _workspace = blocking(move || Workspace::enter(&entered)).await?;
        let set = blocking(move || Set::open(path.as_path())).await?;
        let plan = match run::plan_publication(set.clone(), &target, true).await? {
            PlannedPublication::Nothing(_) => return published_before(set, target).await,
            PlannedPublication::Publish(plan) => *plan,
        };
        if plan.pruning.needs_consent() && !prunes {
            let publication = ArchivePublication {
                unconfirmed_prunes: plan.pruning.images as u64,
                ..ArchivePublication::default()
            };
            return Ok(PublishedArchives {
                publication,
                files: Vec::new(),
            });
        }
        let (image_set, platform) = (ImageSet::default(), no_sources()?);
        let setup = Setup {
            client: &target.client,
            set: &image_set,
            platform: &platform,
            limits: TransferLimits {
                parallel: PARALLEL,
                continue_on_error: false,
            },
            skip_missing: false,
            with_attached: true,
            catalogs: CatalogForm::Pinned,
            naming: Naming::default(),
            v2_archives: None,
            workspace: &workspace,
            now: service::clock::now().timestamp(),
            progress,
        };
        let mut outcome = run::publish(setup, plan, &target).await?;
        let files = files(&outcome.results)?;
        outcome.record(&target).await?;
        Ok(PublishedArchives {
            publication: publication(&outcome, &files),
            files,
        })
    }
}

/// The results of a publication that was recorded: a server that ended right after it has not stored them.
async fn published_before(set: Set, target: MirrorTarget) -> Result<PublishedArchives, Error> {
    let files = blocking(move || files(&run::archived_results(&set, &target)?)).await?;
    let publication = ArchivePublication {
        is_unchanged: true,
        files: listed(&files),
        ..ArchivePublication::default()
    };
    Ok(PublishedArchives { publication, files })
}

/// A publication reads archives alone: its sources are never asked.
fn no_sources() -> Result<ReleaseSources, Error> {
    Ok(ReleaseSources {
        web: Web::new(None)?,
        updates: None,
        version_filter: None,
        signature_stores: Vec::new(),
        keyring: None,
        ignores_signatures: false,
        graph_data: public_graph_data(),
        graph_base: usual_graph_base(),
    })
}

/// The manifests for clusters and other files, without charts.
///
/// Errors: TooLarge; those of [`results::files`].
fn files(results: &MirrorResults) -> Result<Vec<(String, Bytes)>, Error> {
    let forms = Forms {
        mirror_sets: true,
        cluster_catalogs: true,
        registries_conf: true,
    };
    let files = results::files(results, forms)?;
    let files: Vec<_> = files.into_iter().map(|it| (it.path, it.content)).collect();
    let bytes: usize = files.iter().map(|(_, content)| content.len()).sum();
    if bytes > RESULTS_BYTES {
        return Err(Error::TooLarge {
            what: "the files of the results",
            limit: RESULTS_BYTES as u64,
        });
    }
    Ok(files)
}

fn publication(outcome: &RunOutcome, files: &[(String, Bytes)]) -> ArchivePublication {
    ArchivePublication {
        images: outcome.results.images.len() as u64,
        catalogs: outcome.results.catalogs.len() as u64,
        sent_blobs: outcome.sent.items,
        sent_bytes: outcome.sent.bytes,
        pruned: outcome.pruned as u64,
        files: listed(files),
        ..ArchivePublication::default()
    }
}

fn listed(files: &[(String, Bytes)]) -> Vec<JobFile> {
    let one = |(name, content): &(String, Bytes)| JobFile {
        name: name.clone(),
        size: content.len() as u64,
    };
    files.iter().map(one).collect()
}
