//! Effects of the steps.

use etcd::quorum::{MemberRole, MembershipChange, successor};
use etcd::{
    EtcdEndpoint, EtcdError, EtcdRefusal, MAX_SNAPSHOT_BYTES, SnapshotError, check_snapshot,
    save_snapshot,
};
use serde_json::Value;

use super::case::ReplacementCase;
use super::gate;
use super::journal::JournalError;
use super::progress::ReplaceStepOutcome;
use super::step;
use super::step_id::StepId;
use super::store::OpenReplacement;
use super::template::{installed_host, record_template};
use super::view::ReplacementView;
use super::world::{RecordKind, ReplacementWorld, WorldError};

/// A failed effect.
#[derive(Debug, thiserror::Error)]
pub(super) enum EffectError {
    /// It may have been done, or may succeed later.
    #[error("{0}")]
    Transient(String),
    /// A person must act.
    #[error("{0}")]
    Final(String),
    /// Its files cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl From<WorldError> for EffectError {
    fn from(error: WorldError) -> Self {
        if error.is_transient {
            Self::Transient(error.to_string())
        } else {
            Self::Final(error.to_string())
        }
    }
}

impl From<EtcdError> for EffectError {
    fn from(error: EtcdError) -> Self {
        match error.refusal() {
            // Before the members were connected for some seconds, and while a learner catches up.
            None | Some(EtcdRefusal::Unhealthy | EtcdRefusal::LearnerNotReady) => {
                Self::Transient(error.to_string())
            }
            // The world has changed since the observation: the next one shows how.
            Some(
                EtcdRefusal::MemberNotFound
                | EtcdRefusal::PeerUrlExists
                | EtcdRefusal::NotLearner
                | EtcdRefusal::NotLeader
                | EtcdRefusal::BadTransferee,
            ) => Self::Transient(error.to_string()),
            Some(_) => Self::Final(error.to_string()),
        }
    }
}

/// Causes the effect of a step.
pub(super) async fn cause(
    step: StepId,
    world: &ReplacementWorld<'_>,
    view: &ReplacementView,
    replacement: &OpenReplacement,
) -> Result<ReplaceStepOutcome, EffectError> {
    let progress = replacement.progress();
    let case = &progress.case;
    let kubernetes = world.kubernetes;
    match step {
        StepId::TakeSnapshot => return take_snapshot(world, view, replacement).await,
        StepId::SaveRecords => {
            let records = kubernetes.node_records(case).await?;
            let records: Vec<_> = records.into_iter().map(record_template).collect();
            let records = replacement.save_records(&records)?;
            return Ok(ReplaceStepOutcome {
                records,
                ..ReplaceStepOutcome::default()
            });
        }
        StepId::FenceNode => fence(world, view, case).await?,
        StepId::PausePool => kubernetes.pause_pool(true).await?,
        StepId::AllowRollout => {
            kubernetes.set_rollout_override(&Value::Bool(true)).await?;
        }
        StepId::MoveLeader => move_leader(world, view, case).await?,
        StepId::RemoveMember | StepId::AddMember | StepId::PromoteMember => {
            if let Some(change) = gate::membership_change(step, case, view) {
                change_membership(world, view, change, case).await?;
            }
        }
        StepId::DeleteSecrets => {
            for secret in step::member_secrets(&case.old.name) {
                kubernetes.delete(RecordKind::EtcdSecret, &secret).await?;
            }
        }
        StepId::DeleteHost => {
            delete(world, RecordKind::BareMetalHost, case.host.as_ref(), true).await?;
        }
        StepId::RetireMachine => {
            delete(world, RecordKind::Machine, case.machine.as_ref(), false).await?;
        }
        StepId::DeleteMachine => {
            delete(world, RecordKind::Machine, case.machine.as_ref(), true).await?;
        }
        StepId::DeleteNode => delete(world, RecordKind::Node, Some(&case.old.name), false).await?,
        StepId::CreateRecords => {
            for record in replacement.new_records()? {
                let record = if record["kind"] == "BareMetalHost" {
                    installed_host(record_template(record))
                } else {
                    record_template(record)
                };
                kubernetes.create(&record).await?;
            }
        }
        StepId::BootNode => world.hardware.boot(&case.new).await?,
        StepId::EjectImage => world.hardware.eject(&case.new).await?,
        StepId::RestoreRollout => {
            if let Some(previous) = progress.previous_override() {
                kubernetes.set_rollout_override(previous).await?;
            }
        }
        StepId::ResumePool => {
            if let Some(paused) = progress.was_pool_paused() {
                kubernetes.pause_pool(paused).await?;
            }
        }
        // They wait.
        StepId::JoinNode | StepId::SettleOperators => {}
    }
    Ok(ReplaceStepOutcome::default())
}

/// Makes a change of the membership by the leader.
pub(super) async fn change_membership(
    world: &ReplacementWorld<'_>,
    view: &ReplacementView,
    change: MembershipChange,
    case: &ReplacementCase,
) -> Result<(), EffectError> {
    let leader = world.etcd.leader(&view.etcd)?;
    match change {
        MembershipChange::Remove(member) => leader.remove(member).await?,
        MembershipChange::Promote(member) => leader.promote(member).await?,
        MembershipChange::AddLearner => {
            leader.add_learner(&[peer_url(view, case)]).await?;
        }
    }
    Ok(())
}

/// The peer URL of the new member: its address with the port of the others.
fn peer_url(view: &ReplacementView, case: &ReplacementCase) -> String {
    let members = view.etcd.members.iter();
    let mut addresses = members.filter_map(|it| {
        let url = it.member.peer_urls.first()?;
        url.parse::<etcd::EtcdAddress>().ok()
    });
    let port = addresses.next().map_or(PEER_PORT, |it| it.port);
    let host = case.new.address.to_string();
    etcd::EtcdAddress { host, port }.to_string()
}

/// Port of peers. Source: IANA, etcd-server.
const PEER_PORT: u16 = 2380;

async fn take_snapshot(
    world: &ReplacementWorld<'_>,
    view: &ReplacementView,
    replacement: &OpenReplacement,
) -> Result<ReplaceStepOutcome, EffectError> {
    let path = replacement.snapshot();
    if replacement.progress().request.skips_snapshot {
        return Ok(ReplaceStepOutcome::default());
    }
    // Of a run that was killed after it: a file with this name is whole.
    let snapshot = if path.exists() {
        let checked = tokio::task::spawn_blocking(move || check_snapshot(&path)).await;
        checked.map_err(|error| EffectError::Final(error.to_string()))?
    } else {
        let endpoint = snapshot_source(world, view, &replacement.progress().case)?;
        save_snapshot(&endpoint, &path, MAX_SNAPSHOT_BYTES).await
    };
    match snapshot {
        Ok(snapshot) => Ok(ReplaceStepOutcome {
            snapshot: Some(snapshot),
            ..ReplaceStepOutcome::default()
        }),
        Err(SnapshotError::Etcd(error)) => Err(error.into()),
        Err(error) => Err(EffectError::Final(text(&error))),
    }
}

fn text(error: &SnapshotError) -> String {
    model::error::chain(error)
}

/// A healthy voter that stays: one that follows, if there is one, to spare the leader.
fn snapshot_source(
    world: &ReplacementWorld<'_>,
    view: &ReplacementView,
    case: &ReplacementCase,
) -> Result<EtcdEndpoint, EtcdError> {
    let leader = view.etcd.leader().map(|it| it.member.id);
    let members = view.etcd.members.iter();
    let mut followers = members.filter(|it| {
        let is_voter = it.is_healthy() && it.member.role == MemberRole::Voter;
        is_voter && !case.targets.contains(&it.member.id) && Some(it.member.id) != leader
    });
    match followers.next() {
        Some(follower) => world.etcd.endpoint_of(&view.etcd, follower.member.id),
        None => world.etcd.leader(&view.etcd),
    }
}

async fn fence(
    world: &ReplacementWorld<'_>,
    view: &ReplacementView,
    case: &ReplacementCase,
) -> Result<(), EffectError> {
    if view.old_power.is_none() {
        let node = &case.old.name;
        return Err(EffectError::Final(format!(
            "the power of {node} cannot be read: turn it off, and confirm that it is off"
        )));
    }
    Ok(world.hardware.power_off(&case.old).await?)
}

async fn move_leader(
    world: &ReplacementWorld<'_>,
    view: &ReplacementView,
    case: &ReplacementCase,
) -> Result<(), EffectError> {
    let leader = world.etcd.leader(&view.etcd)?;
    let next = successor(&view.etcd.quorum_members(), &case.goal());
    let next = next.ok_or_else(|| EffectError::Transient("no healthy member stays".to_owned()))?;
    Ok(leader.move_leader(next).await?)
}

/// Deletes a record; with its finalizers where its controller cannot act, since the machine is off.
async fn delete(
    world: &ReplacementWorld<'_>,
    kind: RecordKind,
    name: Option<&String>,
    drops_finalizers: bool,
) -> Result<(), EffectError> {
    let Some(name) = name else {
        return Ok(());
    };
    world.kubernetes.delete(kind, name).await?;
    if drops_finalizers {
        world.kubernetes.drop_finalizers(kind, name).await?;
    }
    Ok(())
}
