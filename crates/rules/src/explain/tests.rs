//! Explanations of clusters in each part of their life, as texts.

use std::fmt::Write as _;
use std::sync::Arc;

use model::cluster::{
    ClusterProgressInfo, ClusterStatus, FinalizingStage, LoadBalancer, LoadBalancerType,
    PreparationStatus,
};
use model::explain::{CauseStatus, Explanation, ExplanationOutcome};
use model::host::{HostProgressInfo, HostRole, HostStage, HostStatus};
use model::infra_env::InfraEnv;
use model::operators::{MonitoredOperator, OperatorStatus};

use super::{FailureTimes, MAX_CAUSES, cluster, is_problem, pool};
use crate::InstallationPolicy;
use crate::Snapshot;
use crate::cluster::refresh;
use crate::fixtures::{self, later, now};

fn explained(snapshot: &Snapshot) -> Explanation {
    let policy = InstallationPolicy::default();
    cluster(snapshot, &FailureTimes::default(), &policy, now())
}

/// One block for each cause.
fn text(explanation: &Explanation) -> String {
    let mut text = format!(
        "{} {} {}: {}\n",
        explanation.subject.kind, explanation.subject.name, explanation.status, explanation.outcome
    );
    for cause in &explanation.causes {
        let since = cause.since.0.map(|time| (now() - time).num_minutes());
        let since = since.map_or("?".to_owned(), |minutes| minutes.to_string());
        let allowed = cause.allowed_seconds.map(|seconds| seconds / 60);
        let allowed = allowed.map_or(String::new(), |minutes| format!(" of {minutes}"));
        let _ = write!(
            text,
            "\n{} {} {} of {} {}, {since}{allowed} min\n  observed: {}\n  required: {}\n  fix: {}\n",
            cause.kind,
            cause.id,
            cause.status,
            cause.subject.kind,
            cause.subject.name,
            cause.observed,
            cause.required,
            cause.fix,
        );
    }
    text
}

fn refreshed(change: fn(&mut Snapshot)) -> Snapshot {
    let mut snapshot = fixtures::snapshot(3, 2);
    change(&mut snapshot);
    refresh::cluster(&mut snapshot, &InstallationPolicy::default(), now());
    snapshot
}

#[test]
fn a_ready_cluster_has_no_causes() {
    let explanation = explained(&refreshed(|_| ()));
    assert_eq!(explanation.outcome, ExplanationOutcome::Settled);
    assert_eq!(explanation.causes, []);
    assert!(!is_problem(&explanation));
}

#[test]
fn causes_before_the_installation_are_ordered() {
    let snapshot = refreshed(|all| {
        all.cluster.base_dns_domain.clear();
        all.cluster.service_networks[0].cidr = "172.20.0.0/16".to_owned();
        all.hosts[0].record.checked_in_at = later(-7).into();
        all.hosts[1].record.inventory.clear();
        all.hosts[1].inventory = None;
        let inventory = Arc::make_mut(all.hosts[2].inventory.as_mut().unwrap());
        inventory.cpu.as_mut().unwrap().count = 2;
        inventory.routes.clear();
    });
    let explanation = explained(&snapshot);
    assert!(is_problem(&explanation));
    insta::assert_snapshot!("not_ready", text(&explanation));
}

#[test]
fn a_missing_machine_network_is_one_cause() {
    let ids = |change: fn(&mut Snapshot)| {
        let explanation = explained(&refreshed(change));
        let ids = explanation.causes.into_iter().map(|cause| cause.id);
        ids.filter(|id| id != "all-hosts-are-ready-to-install")
            .collect::<Vec<_>>()
    };
    let found = ids(|all| {
        all.cluster.machine_networks.clear();
        all.cluster.api_vips.clear();
        all.cluster.ingress_vips.clear();
    });
    assert_eq!(
        found,
        [
            "api-vips-defined",
            "ingress-vips-defined",
            "machine-cidr-defined"
        ]
    );
}

#[test]
fn a_user_managed_load_balancer_needs_machine_networks() {
    let explanation = explained(&refreshed(|all| {
        all.cluster.machine_networks.clear();
        all.cluster.load_balancer = Some(LoadBalancer {
            r#type: Some(LoadBalancerType::UserManaged),
        });
    }));
    let cause = &explanation.causes[0];
    assert_eq!(cause.id, "machine-cidr-defined");
    assert!(
        cause.fix.starts_with("Set machine_networks "),
        "{}",
        cause.fix
    );
}

#[test]
fn recorded_failures_have_their_own_time() {
    let snapshot = refreshed(|all| all.cluster.base_dns_domain.clear());
    let key = (None, "dns-domain-defined".to_owned());
    let failures = FailureTimes::from([(key, later(-90))]);
    let explanation = cluster(&snapshot, &failures, &InstallationPolicy::default(), now());
    assert_eq!(explanation.causes[0].id, "dns-domain-defined");
    assert_eq!(explanation.causes[0].since.0, Some(later(-90)));
}

fn installing(stages: &[(HostStatus, HostStage, i64)]) -> Snapshot {
    let mut snapshot = fixtures::snapshot(3, 2);
    snapshot.cluster.status = ClusterStatus::Installing;
    snapshot.cluster.install_started_at = later(-50).into();
    for (at, (status, stage, minutes)) in stages.iter().enumerate() {
        let record = &mut snapshot.hosts[at].record;
        record.status = *status;
        record.status_updated_at = later(*minutes).into();
        record.progress = Some(HostProgressInfo {
            current_stage: Some(*stage),
            progress_info: "40%".to_owned(),
            stage_updated_at: later(*minutes).into(),
            ..HostProgressInfo::default()
        });
    }
    snapshot
}

#[test]
fn stages_are_overdue_after_their_timeout() {
    use HostStage as G;
    use HostStatus as S;
    let snapshot = installing(&[
        (S::InstallingInProgress, G::WritingImageToDisk, -31),
        (S::InstallingInProgress, G::Rebooting, -39),
        (S::InstallingPendingUserAction, G::Rebooting, -10),
        (S::Installed, G::Done, -5),
        (S::Error, G::Failed, -20),
    ]);
    let explanation = explained(&snapshot);
    assert_eq!(explanation.outcome, ExplanationOutcome::Stuck);
    insta::assert_snapshot!("installing", text(&explanation));
}

#[test]
fn work_within_its_time_is_no_problem() {
    let stage = (
        HostStatus::InstallingInProgress,
        HostStage::WritingImageToDisk,
        -29,
    );
    let explanation = explained(&installing(&[stage; 5]));
    assert_eq!(explanation.outcome, ExplanationOutcome::InProgress);
    assert!(!is_problem(&explanation));
    assert_eq!(explanation.causes.len(), 6);
}

#[test]
fn finalizing_names_the_operators_that_are_not_available() {
    let done = (HostStatus::Installed, HostStage::Done, -80);
    let mut snapshot = installing(&[done; 5]);
    let record = &mut snapshot.cluster;
    record.status = ClusterStatus::Finalizing;
    record.status_updated_at = later(-80).into();
    record.progress = Some(ClusterProgressInfo {
        finalizing_stage: Some(FinalizingStage::AddingRouterCa),
        finalizing_stage_started_at: later(-71).into(),
        ..ClusterProgressInfo::default()
    });
    record.monitored_operators = vec![MonitoredOperator {
        name: "console".to_owned(),
        status: Some(OperatorStatus::Progressing),
        ..MonitoredOperator::default()
    }];
    insta::assert_snapshot!("finalizing", text(&explained(&snapshot)));
}

#[test]
fn a_failed_preparation_is_a_cause_of_a_ready_cluster() {
    let mut snapshot = refreshed(|_| ());
    let preparation = &mut snapshot.cluster.last_installation_preparation;
    preparation.status = Some(PreparationStatus::Failed);
    preparation.reason = "the release image could not be pulled".to_owned();
    let explanation = explained(&snapshot);
    assert_eq!(explanation.outcome, ExplanationOutcome::Stuck);
    let cause = &explanation.causes[0];
    assert_eq!(
        (cause.id.as_str(), cause.observed.as_str()),
        (
            "preparation-failed",
            "the release image could not be pulled"
        )
    );
}

#[test]
fn pool_hosts_are_explained_by_their_own_validations() {
    let mut host = fixtures::host(0, HostRole::AutoAssign, 1);
    host.record.cluster_id = None;
    host.record.status = HostStatus::DiscoveringUnbound;
    host.record.requested_hostname = "localhost".to_owned();
    let policy = InstallationPolicy::default();
    refresh::unbound_host(&mut host, "", &policy, now());
    let infra_env = InfraEnv {
        name: "rack-1".to_owned(),
        ..InfraEnv::default()
    };
    let explanation = pool(
        &infra_env,
        &[host],
        "",
        &FailureTimes::default(),
        &policy,
        now(),
    );
    let ids: Vec<_> = explanation
        .causes
        .iter()
        .map(|one| one.id.as_str())
        .collect();
    assert_eq!(ids, ["hostname-valid"]);
    assert_eq!(explanation.causes[0].status, CauseStatus::Failure);
    assert!(is_problem(&explanation));
}

// limit: causes of an explanation
#[test]
fn the_number_of_causes_is_limited() {
    let mut snapshot = fixtures::snapshot(3, 0);
    let broken: Vec<_> = (0..MAX_CAUSES)
        .map(|at| {
            let mut host = fixtures::discovering(at);
            host.record.checked_in_at = later(-7).into();
            host
        })
        .collect();
    snapshot.hosts = broken.into();
    let explanation = explained(&snapshot);
    assert_eq!(explanation.causes.len(), MAX_CAUSES);
    assert!(explanation.omitted_causes > 0);
}
