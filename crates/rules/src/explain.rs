//! Explanations: the ordered causes that keep a cluster, or the unbound hosts of an infra-env, from being ready or
//! installed.
//!
//! Derived from the rows that judge: validations (`validations`), stages and statuses (`states`, `stages`), and their
//! timeouts (`timeout`). No text of a record is parsed.

mod causes;
mod stages;
mod states;
#[cfg(test)]
mod tests;
pub mod validations;

use model::cluster::ClusterStatus;
use model::explain::{ExplainedSubject, Explanation, ExplanationOutcome, SubjectKind};
use model::host::HostStatus;
use model::infra_env::InfraEnv;
use model::time::Timestamp;

use self::causes::Causes;
use self::states::{ClusterInput, HostInput};
use crate::explain::validations::{
    ClusterSubject, HostBlock, HostSubject, Ignored, applicable, cluster_validations,
};
use crate::hardware::requirements::Requirements;
use crate::host::inventory::is_open;
use crate::policy::InstallationPolicy;
use crate::snapshot::Snapshot;
use crate::snapshot::host_state::HostState;
use crate::snapshot::host_texts::HostTexts;

pub use causes::{FailureTimes, MAX_CAUSES};

/// Whether an explanation belongs to the list of problems: work within its time does not.
pub fn is_problem(explanation: &Explanation) -> bool {
    explanation.outcome >= ExplanationOutcome::NotReady
}

/// Explains a cluster. The snapshot is as stored: refreshed, with current heartbeats.
pub fn cluster(
    snapshot: &Snapshot,
    failures: &FailureTimes,
    policy: &InstallationPolicy,
    now: Timestamp,
) -> Explanation {
    let record = &snapshot.cluster;
    let requirements = Requirements::of(policy, &record.openshift_version);
    let texts: Vec<HostTexts> = snapshot.hosts.iter().map(HostTexts::of).collect();
    let subject = ClusterSubject::new(snapshot, &texts, policy);
    let ignored = Ignored::of(record);
    let about = ExplainedSubject {
        kind: SubjectKind::Cluster,
        id: record.id.0,
        name: record.name.clone(),
        infra_env_id: None,
    };
    let mut causes = Causes::new(failures, now);
    let input = ClusterInput { snapshot, policy };
    for row in states::of_cluster(&input) {
        let since = record.status_updated_at;
        causes.add_state(&about, since, &row, &input, snapshot.observed);
    }
    if is_judged(record.status) {
        add_cluster_validations(&mut causes, &about, &subject, &ignored);
    }
    for (host, texts) in snapshot.hosts.iter().zip(&texts) {
        let subject = HostSubject {
            host,
            texts,
            cluster: Some(&subject),
            policy,
            agent_image: &snapshot.components.agent,
            requirements: &requirements,
            now,
        };
        add_host(&mut causes, &subject, &ignored);
    }
    causes.into_explanation(about, record.status.to_string())
}

/// Explains the hosts of an infra-env that have no cluster; they are to run the agent of `agent_image`.
pub fn pool(
    infra_env: &InfraEnv,
    hosts: &[HostState],
    agent_image: &str,
    failures: &FailureTimes,
    policy: &InstallationPolicy,
    now: Timestamp,
) -> Explanation {
    let requirements = Requirements::of(policy, "");
    let about = ExplainedSubject {
        kind: SubjectKind::InfraEnv,
        id: infra_env.id.0,
        name: infra_env.name.clone(),
        infra_env_id: None,
    };
    let mut causes = Causes::new(failures, now);
    for host in hosts {
        let subject = HostSubject {
            host,
            texts: &HostTexts::of(host),
            cluster: None,
            policy,
            agent_image,
            requirements: &requirements,
            now,
        };
        add_host(&mut causes, &subject, &Ignored::default());
    }
    causes.into_explanation(about, String::new())
}

/// Whether validations of the cluster decide its status.
fn is_judged(status: ClusterStatus) -> bool {
    matches!(
        status,
        ClusterStatus::Insufficient | ClusterStatus::Ready | ClusterStatus::PendingForInput
    )
}

fn add_cluster_validations(
    causes: &mut Causes<'_>,
    about: &ExplainedSubject,
    subject: &ClusterSubject<'_>,
    ignored: &Ignored,
) {
    let since = subject.cluster.status_updated_at;
    for row in cluster_validations() {
        let is_disabled = subject
            .policy
            .disabled_cluster_validations
            .contains(&row.id);
        if !is_disabled && !ignored.cluster(row.id) {
            causes.add_cluster_validation(about, since, row, (row.check)(subject));
        }
    }
}

fn add_host(causes: &mut Causes<'_>, subject: &HostSubject<'_>, ignored: &Ignored) {
    let record = &subject.host.record;
    let about = ExplainedSubject {
        kind: SubjectKind::Host,
        id: record.id.0,
        name: subject.host.name(),
        infra_env_id: Some(record.infra_env_id),
    };
    let input = HostInput {
        host: subject.host,
        cluster: subject.cluster.map(|cluster| cluster.cluster),
        policy: subject.policy,
    };
    if let Some(row) = states::of_host(&input) {
        let since = record.status_updated_at;
        causes.add_state(&about, since, &row, &input, subject.host.observed);
    }
    let is_early = is_open(record.status);
    for (row, blocks) in applicable(subject.cluster.is_none()) {
        let is_meant = match blocks {
            HostBlock::Nothing | HostBlock::Preparing => false,
            HostBlock::Connection => is_early || is_installing(record.status),
            _ => is_early,
        };
        let is_disabled = subject.policy.disabled_host_validations.contains(&row.id);
        if is_meant && !is_disabled && !ignored.host(row.id) {
            causes.add_host_validation(&about, record, row, (row.check)(subject));
        }
    }
}

/// Statuses in which only the connection counts.
fn is_installing(status: HostStatus) -> bool {
    matches!(
        status,
        HostStatus::PreparingForInstallation
            | HostStatus::PreparingSuccessful
            | HostStatus::PreparingFailed
            | HostStatus::Installing
            | HostStatus::InstallingInProgress
    )
}
