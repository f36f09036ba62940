//! The reclaim of a host, from its replies to its registration in the infra-env.

use model::host::{HostRole, HostStatus};
use model::steps::{StepReply, StepType};
use model::time::Timestamp;

use super::{AcceptedReply, CheckedReply, accept};
use crate::HostState;
use crate::InstallationPolicy;
use crate::cluster::refresh;
use crate::fixtures::{self, later, now};
use crate::host::{Trigger, apply};

fn reclaiming() -> HostState {
    let mut host = fixtures::host(0, HostRole::Worker, 1);
    host.record.cluster_id = None;
    host.record.status = HostStatus::Reclaiming;
    host.record.status_updated_at = now().into();
    host
}

fn reply(host: &mut HostState, step: StepType, exit_code: i64, at: Timestamp) -> AcceptedReply {
    let reply = StepReply {
        step_type: Some(step),
        exit_code,
        error: "no space left".to_owned(),
        ..StepReply::default()
    };
    let mut reply = CheckedReply::new(reply).unwrap();
    accept(host, None, &mut reply, &InstallationPolicy::default(), at).unwrap()
}

fn refreshed_at(host: &mut HostState, minutes: i64) -> HostStatus {
    refresh::unbound_host(host, "", &InstallationPolicy::default(), later(minutes));
    host.record.status
}

fn register(host: &mut HostState) -> Result<HostStatus, model::Error> {
    let trigger = Trigger::Register {
        agent_version: "atoll-agent/1".to_owned(),
    };
    apply(host, None, trigger, &InstallationPolicy::default(), now())?;
    Ok(host.record.status)
}

#[test]
fn a_reclaimed_host_is_discovered_again() {
    let mut host = reclaiming();
    let accepted = reply(&mut host, StepType::DownloadBootArtifacts, 0, now());
    assert_eq!(host.record.status, HostStatus::ReclaimingRebooting);
    let names: Vec<&str> = accepted.events.iter().map(|event| event.name).collect();
    assert_eq!(names, ["host_status_updated"]);
    let again = reply(&mut host, StepType::DownloadBootArtifacts, 0, now());
    assert_eq!(again, AcceptedReply::default());
    for exit_code in [0, 1] {
        let restarted = reply(&mut host, StepType::RebootForReclaim, exit_code, now());
        assert_eq!(restarted, AcceptedReply::default());
    }
    assert_eq!(register(&mut host).unwrap(), HostStatus::DiscoveringUnbound);
    assert!(host.record.inventory.is_empty());
}

#[test]
fn a_host_without_boot_artifacts_waits_for_its_user() {
    for status in [HostStatus::Reclaiming, HostStatus::ReclaimingRebooting] {
        let mut host = reclaiming();
        host.record.status = status;
        let accepted = reply(&mut host, StepType::DownloadBootArtifacts, -1, now());
        assert!(accepted.refresh && accepted.events.len() == 1);
        assert_eq!(host.record.status, HostStatus::UnbindingPendingUserAction);
        let info = &host.record.status_info;
        assert!(
            info.contains("boot the host") && !info.contains("space"),
            "{info}"
        );
        assert_eq!(register(&mut host).unwrap(), HostStatus::DiscoveringUnbound);
    }
    let mut host = reclaiming();
    host.record.status = HostStatus::KnownUnbound;
    for exit_code in [0, 1] {
        let accepted = reply(&mut host, StepType::DownloadBootArtifacts, exit_code, now());
        assert_eq!(accepted, AcceptedReply::default(), "no longer reclaimed");
    }
}

#[test]
fn each_step_of_a_reclaim_times_out() {
    let mut host = reclaiming();
    assert_eq!(refreshed_at(&mut host, 60), HostStatus::Reclaiming);
    assert!(register(&mut host).is_err(), "before its restart");
    reply(&mut host, StepType::DownloadBootArtifacts, 0, later(60));
    assert_eq!(
        refreshed_at(&mut host, 120),
        HostStatus::ReclaimingRebooting
    );
    assert_eq!(
        refreshed_at(&mut host, 121),
        HostStatus::UnbindingPendingUserAction
    );
    let mut host = reclaiming();
    assert_eq!(
        refreshed_at(&mut host, 61),
        HostStatus::UnbindingPendingUserAction
    );
}
