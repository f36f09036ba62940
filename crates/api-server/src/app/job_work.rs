//! The work of jobs: archives are verified and published, sites are rehearsed.

use std::collections::BTreeMap;

use mirror::progress::RunProgress;
use model::Error;
use model::jobs::{JobCreateParams, JobKind, JobProgress, RehearsalFinding, RehearsalResult};
use rehearsal::{RehearsalProgress, RehearsalReport};

use super::jobs::Jobs;
use crate::carry_in::PublishedArchives;
use crate::db::jobs::{JobEnd, JobResult};
use crate::db::{schema, tx};
use crate::rehearse::{self, ReadSite};

/// Findings of a result: those of more hosts repeat them.
const FINDINGS: usize = 1000;

/// Counters that the work of a job moves. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct JobCounters {
    archives: RunProgress,
    rehearsal: RehearsalProgress,
}

impl JobCounters {
    /// The progress now; none before its first phase.
    pub(super) fn now(&self) -> Option<JobProgress> {
        if let Some((phase, whole, done)) = self.archives.now() {
            return Some(JobProgress {
                phase: phase.as_str().to_owned(),
                items: done.items,
                items_total: whole.items,
                bytes: done.bytes,
                bytes_total: whole.bytes,
                ..JobProgress::default()
            });
        }
        let state = self.rehearsal.now();
        let counts = state.hosts.into_iter();
        let hosts: BTreeMap<_, _> = counts.map(|(stage, count)| (stage, count as u64)).collect();
        (state.machines > 0).then(|| JobProgress {
            phase: state.clusters.into_keys().next().unwrap_or_default(),
            items: hosts.values().sum(),
            items_total: state.machines as u64,
            hosts,
            ..JobProgress::default()
        })
    }
}

impl Jobs {
    /// Does the work of a job.
    pub(super) async fn work(&self, params: &JobCreateParams, counters: &JobCounters) -> JobEnd {
        let name = params.archives.as_str();
        let done = match params.kind {
            JobKind::VerifyArchives => self.verify_archives(name, counters).await,
            JobKind::PublishArchives => self.publish_archives(name, params.prune, counters).await,
            JobKind::Rehearsal => self.rehearse(params, counters).await,
        };
        done.unwrap_or_else(|error| JobEnd::failed(error.chain()))
    }

    async fn verify_archives(&self, name: &str, counters: &JobCounters) -> Result<JobEnd, Error> {
        let verified = self.carry_in.verify(name, &counters.archives).await?;
        let reason = match verified.fault_count {
            0 => "",
            _ => "the archives are damaged: copy them again",
        };
        let result = JobResult {
            verification: Some(verified),
            ..JobResult::default()
        };
        Ok(JobEnd::new(reason.to_owned(), result))
    }

    async fn publish_archives(
        &self,
        name: &str,
        prunes: bool,
        counters: &JobCounters,
    ) -> Result<JobEnd, Error> {
        let publishing = self.carry_in.publish(name, prunes, &counters.archives);
        let published = publishing.await;
        // Also after a failure: some images were published.
        self.site_content.has_changed();
        let published = published?;
        let PublishedArchives { publication, files } = published;
        let reason = match publication.unconfirmed_prunes {
            0 => String::new(),
            count => format!(
                "it removes {count} images from the registry, which has to be confirmed: nothing was published"
            ),
        };
        let result = JobResult {
            publication: Some(publication),
            ..JobResult::default()
        };
        Ok(JobEnd {
            files,
            ..JobEnd::new(reason, result)
        })
    }

    /// Plays the installation of a site on a server with a schema of its own.
    async fn rehearse(
        &self,
        params: &JobCreateParams,
        counters: &JobCounters,
    ) -> Result<JobEnd, Error> {
        let params = params.rehearsal.clone().unwrap_or_default();
        let is_of_profile = params.site.is_empty();
        let profile = params.profile.clone();
        let script = match rehearse::read(params).await? {
            ReadSite::Script(script) => *script,
            ReadSite::Mistake(finding) => {
                return Ok(rehearsed(profile, &RehearsalReport::of_data(vec![finding])));
            }
        };
        let subject = if is_of_profile {
            profile
        } else {
            script.name().to_owned()
        };
        // Rehearsals run one at a time: other schemas are of killed servers.
        self.drop_schemas_of_rehearsals().await?;
        let schema = tx("make schema of a rehearsal", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            schema::create_of_rehearsal(&mut connection).await
        })
        .await?;
        let folder = self.settings.work_dir.join("rehearsal");
        let mut settings = rehearse::settings(&self.settings, &self.offer.get(), schema, folder);
        if is_of_profile {
            settings = rehearse::settings_of_profile(settings);
        }
        let report = rehearse::play(script, settings, counters.rehearsal.clone()).await?;
        Ok(rehearsed(subject, &report))
    }

    /// Removes the temporary data of a job that has ended, or was cancelled.
    pub(super) async fn clean_up(&self, kind: JobKind) {
        if kind != JobKind::Rehearsal {
            return;
        }
        if let Err(error) = self.drop_schemas_of_rehearsals().await {
            let error = error.chain();
            tracing::warn!(
                error,
                "schema of a rehearsal not dropped: the next one drops it"
            );
        }
    }

    async fn drop_schemas_of_rehearsals(&self) -> Result<(), Error> {
        tx("drop schemas of rehearsals", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            schema::drop_of_rehearsals(&mut connection).await
        })
        .await
    }
}

/// Mistakes of the site are a result, and no failure of the job.
fn rehearsed(subject: String, report: &RehearsalReport) -> JobEnd {
    let data = report.of_site().iter();
    let findings = data.chain(report.of_clusters().into_keys());
    let findings = findings.map(|finding| RehearsalFinding {
        id: finding.id.clone(),
        host: finding.host.clone(),
        observed: finding.observed.clone(),
        required: finding.required.clone(),
        fix: finding.fix.clone(),
    });
    let rehearsal = RehearsalResult {
        subject,
        verdict: report.verdict(),
        good: report.is_good(),
        findings: findings.take(FINDINGS).collect(),
    };
    let result = JobResult {
        rehearsal: Some(rehearsal),
        ..JobResult::default()
    };
    JobEnd::new(String::new(), result)
}
