//! Publication of an archive set to the registry.

use bytes::Bytes;
use mirror::archive::Set;
use mirror::carry_in::{self, CarriedIn, Consent};
use mirror::history::Pruning;
use mirror::progress::RunProgress;
use mirror::publish::MirrorTarget;
use mirror::results::{self, Forms, MirrorResults};
use mirror::run::{RunContext, RunOutcome, archived_results};
use mirror::workspace::Workspace;
use model::Error;
use model::api_group_map::ApiGroupMap;
use model::jobs::{ArchivePublication, JobFile};

use super::{CarryIn, blocking};

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
        let context = RunContext::new(&workspace, service::clock::now().timestamp(), progress);
        let decide = async |pruning: &mut Pruning| {
            Ok(if pruning.needs_consent() && !prunes {
                Consent::Withheld
            } else {
                Consent::Given
            })
        };
        let groups = self.api_group_map.clone();
        let kept = move |results: &MirrorResults| files(results, groups);
        let publication = carry_in::publish(set.clone(), &target, context, true, decide, kept);
        match publication.await? {
            CarriedIn::Unchanged(_) => {
                published_before(set, target, self.api_group_map.clone()).await
            }
            CarriedIn::Withheld(pruning) => Ok(PublishedArchives {
                publication: ArchivePublication {
                    unconfirmed_prunes: pruning.images as u64,
                    ..ArchivePublication::default()
                },
                files: Vec::new(),
            }),
            CarriedIn::Published { outcome, kept } => Ok(PublishedArchives {
                publication: publication_of(&outcome, &kept),
                files: kept,
            }),
        }
    }
}

/// The results of a publication that was recorded: a server that ended right after it has not stored them.
async fn published_before(
    set: Set,
    target: MirrorTarget,
    groups: ApiGroupMap,
) -> Result<PublishedArchives, Error> {
    let files = blocking(move || files(&archived_results(&set, &target)?, groups)).await?;
    let publication = ArchivePublication {
        is_unchanged: true,
        files: listed(&files),
        ..ArchivePublication::default()
    };
    Ok(PublishedArchives { publication, files })
}

/// The manifests for clusters and other files, without charts.
///
/// Errors: TooLarge; those of [`results::files`].
fn files(
    results: &MirrorResults,
    api_group_map: ApiGroupMap,
) -> Result<Vec<(String, Bytes)>, Error> {
    let forms = Forms {
        mirror_sets: true,
        cluster_catalogs: true,
        registries_conf: true,
        api_group_map,
    };
    let files = results::files(results, &forms)?;
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

fn publication_of(outcome: &RunOutcome, files: &[(String, Bytes)]) -> ArchivePublication {
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
