//! `atoll node restore`: a majority of etcd's members is lost.
//!
//! One member continues with its own data, without the others; only without any survivor, a snapshot is restored. The
//! platform's scripts do it on the node, as a person starts them. Source: openshift/cluster-etcd-operator,
//! quorum-restore.sh and cluster-restore.sh.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use etcd::{
    EtcdAddress, EtcdCluster, EtcdSurvivor, EtcdSurvivors, EtcdView, SnapshotFile, check_snapshot,
};
use model::size::mib;
use service::runtime;
use service::{Error, ResultExt as _};

use super::etcd::{EtcdArgs, observe_elected};
use crate::catalog::table::table;
use crate::cluster_args::ClusterArgs;
use crate::terminal;

const DOING: &str = "restoring etcd";
const POLL: Duration = Duration::from_secs(3);

/// Arguments of `restore`.
#[derive(Debug, Clone, Args)]
pub(crate) struct NodeRestoreArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    etcd: EtcdArgs,
    /// Your decision: the member at this endpoint continues with its data, all others are dropped
    #[arg(long, value_name = "URL", conflicts_with = "snapshot")]
    survivor: Option<EtcdAddress>,
    /// Your decision when no member is left: this snapshot of `atoll node backup` is restored
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// You have seen that the machines of all other members are off: two clusters would write otherwise
    #[arg(long)]
    others_are_off: bool,
    /// Accept that the survivor lacks writes that another member has
    #[arg(long, requires = "survivor")]
    accept_loss: bool,
}

/// Shows the survivors, or guides through the restoration.
///
/// Errors: quorum is not lost; a decision that loses data or risks two clusters; the snapshot is damaged.
pub(super) fn run(arguments: &NodeRestoreArgs) -> Result<(), Error> {
    runtime::block_on(async {
        let etcd = arguments.etcd.connect(&arguments.cluster).await?;
        if let Ok(view) = observe_elected(&etcd).await {
            let count = view.voter_count();
            let reason = format!(
                "quorum is not lost ({count}): nothing is to be restored. `atoll node replace` replaces a failed node"
            );
            return Err(Error::new(DOING, reason));
        }
        let survivors = etcd.survivors().await;
        let survivors = survivors.doing(DOING)?;
        terminal::print(&screen(&survivors));
        let Some(decision) = decision(arguments, &survivors)? else {
            terminal::print(&advice(&survivors));
            return Ok(());
        };
        terminal::print(&instructions(&decision));
        let view = quorum(&etcd).await;
        terminal::clear_progress();
        terminal::print(&format!(
            "Quorum is back ({}). Replace the lost nodes one after the other: atoll node replace NAME",
            view.voter_count()
        ));
        Ok(())
    })?
}

/// A decision that was checked.
#[derive(Debug)]
enum RestoreDecision<'a> {
    Survivor(&'a EtcdSurvivor),
    Snapshot(SnapshotFile),
}

/// The decision of the arguments; none without one.
///
/// Errors: it may lose writes, or two clusters may form.
fn decision<'a>(
    arguments: &NodeRestoreArgs,
    survivors: &'a EtcdSurvivors,
) -> Result<Option<RestoreDecision<'a>>, Error> {
    let refused = |reason: String| Err(Error::new(DOING, reason));
    let chosen = arguments.survivor.as_ref();
    if chosen.is_none() && arguments.snapshot.is_none() {
        return Ok(None);
    }
    let mut others = survivors.alive.iter();
    let other = others.find(|it| Some(&it.endpoint) != chosen);
    let (Some(newest), Some(chosen)) = (survivors.alive.first(), chosen) else {
        if let Some(alive) = other {
            return refused(format!(
                "{} answers: keep its data with --survivor instead of a snapshot",
                alive.endpoint
            ));
        }
        let Some(path) = &arguments.snapshot else {
            return refused("no member answers: name a snapshot with --snapshot".to_owned());
        };
        if !arguments.others_are_off {
            return refused(OFF.to_owned());
        }
        let checked = check_snapshot(path);
        let snapshot = checked.doing(|| format!("checking {}", path.display()))?;
        return Ok(Some(RestoreDecision::Snapshot(snapshot)));
    };
    let Some(survivor) = survivors.alive.iter().find(|it| it.endpoint == *chosen) else {
        return refused(format!("{chosen} does not answer: it is no survivor"));
    };
    if survivor.log() < newest.log() && !arguments.accept_loss {
        return refused(format!(
            "{} has a newer log than {chosen}: choose it, or lose its last writes with --accept-loss",
            newest.endpoint
        ));
    }
    if let Some(other) = other {
        return refused(format!(
            "{} answers: turn its machine off first, so that two clusters cannot form",
            other.endpoint
        ));
    }
    if !arguments.others_are_off {
        return refused(OFF.to_owned());
    }
    Ok(Some(RestoreDecision::Survivor(survivor)))
}

/// The refusal without a person's word.
const OFF: &str = "the machines of all other members must be off before: turn them off, and say so with --others-are-off";

/// The endpoints for people.
fn screen(survivors: &EtcdSurvivors) -> String {
    let newest = survivors.alive.first().map_or(0, |it| it.status.raft_index);
    let alive = survivors.alive.iter().map(|it| {
        let status = &it.status;
        [
            it.endpoint.to_string(),
            status.member_id.to_string(),
            status.term.to_string(),
            newest.saturating_sub(status.raft_index).to_string(),
            mib(status.db_size_bytes),
        ]
    });
    let alive: Vec<_> = alive.collect();
    let heads = ["SURVIVOR", "MEMBER", "TERM", "ENTRIES BEHIND", "SIZE"];
    let mut text = table(heads, &alive);
    for (endpoint, error) in &survivors.dead {
        write!(text, "\n{endpoint} does not answer: {error}").ok();
    }
    text
}

/// The next command, without a decision.
fn advice(survivors: &EtcdSurvivors) -> String {
    match survivors.alive.first() {
        Some(newest) => format!(
            "Quorum is lost. {0} has the newest log: its member can continue alone. Writes that it lacks are lost.\n\
             Turn off the machines of all other members, then run this command with --survivor {0} --others-are-off.",
            newest.endpoint
        ),
        None => "No member answers. If a control node can be started, start it: its data are newer than any snapshot.\n\
                 Otherwise run this command with --snapshot FILE --others-are-off."
            .to_owned(),
    }
}

/// The steps on the node.
fn instructions(decision: &RestoreDecision<'_>) -> String {
    match decision {
        RestoreDecision::Survivor(survivor) => format!(
            "On the node of {}, run:\n\n  sudo -E /usr/local/bin/quorum-restore.sh\n\n\
             This command ends when its member has quorum.",
            survivor.endpoint
        ),
        RestoreDecision::Snapshot(snapshot) => format!(
            "The snapshot is whole: sha256 {}. Copy it to the node that shall continue, with the folder of static pods that \
             the platform's backup has beside it, and run there:\n\n  \
             sudo -E /usr/local/bin/cluster-restore.sh FOLDER\n\n\
             This command ends when its member has quorum.",
            snapshot.sha256
        ),
    }
}

/// Waits for a member that has quorum.
async fn quorum(etcd: &EtcdCluster) -> EtcdView {
    loop {
        match etcd.observe().await {
            Ok(view) if view.voter_count().has_quorum() => return view,
            Ok(view) => terminal::progress(&format!("waiting: {}", view.voter_count())),
            Err(error) => terminal::progress(&format!("waiting: {error}")),
        }
        tokio::time::sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use etcd::EndpointStatus;
    use etcd::quorum::{MemberId, MemberRole};

    use super::*;

    fn address(number: u8) -> EtcdAddress {
        format!("https://192.0.2.{number}:2379").parse().unwrap()
    }

    fn survivor(number: u8, term: u64, raft_index: u64) -> EtcdSurvivor {
        EtcdSurvivor {
            endpoint: address(number),
            status: EndpointStatus {
                cluster_id: 1,
                member_id: MemberId(number.into()),
                version: "3.5.0".to_owned(),
                leader: None,
                term,
                raft_index,
                applied_index: raft_index,
                db_size_bytes: 1 << 20,
                role: MemberRole::Voter,
            },
        }
    }

    fn survivors(alive: Vec<EtcdSurvivor>) -> EtcdSurvivors {
        EtcdSurvivors {
            alive,
            dead: Vec::new(),
        }
    }

    fn arguments(survivor: Option<u8>) -> NodeRestoreArgs {
        NodeRestoreArgs {
            cluster: ClusterArgs {
                kubeconfig: None,
                context: None,
            },
            etcd: EtcdArgs::default(),
            survivor: survivor.map(address),
            snapshot: None,
            others_are_off: true,
            accept_loss: false,
        }
    }

    fn refusal(arguments: &NodeRestoreArgs, survivors: &EtcdSurvivors) -> String {
        decision(arguments, survivors).unwrap_err().to_string()
    }

    #[test]
    fn a_decision_is_needed() {
        let alone = survivors(vec![survivor(11, 3, 100)]);
        assert!(decision(&arguments(None), &alone).unwrap().is_none());
        assert!(advice(&alone).contains("--survivor https://192.0.2.11:2379"));
        assert!(advice(&survivors(Vec::new())).contains("--snapshot"));
        let made = decision(&arguments(Some(11)), &alone).unwrap().unwrap();
        assert!(instructions(&made).contains("quorum-restore.sh"));
    }

    #[test]
    fn two_clusters_and_lost_writes_are_refused() {
        let both = survivors(vec![survivor(11, 3, 100), survivor(12, 3, 90)]);
        assert!(refusal(&arguments(Some(12)), &both).contains("newer log"));
        let text = refusal(&arguments(Some(11)), &both);
        assert!(text.contains("192.0.2.12:2379 answers"), "{text}");
        let accepting = NodeRestoreArgs {
            accept_loss: true,
            ..arguments(Some(12))
        };
        assert!(refusal(&accepting, &both).contains("192.0.2.11:2379 answers"));
        assert!(refusal(&arguments(Some(13)), &both).contains("no survivor"));
        let alone = survivors(vec![survivor(11, 3, 100)]);
        let unsaid = NodeRestoreArgs {
            others_are_off: false,
            ..arguments(Some(11))
        };
        assert!(refusal(&unsaid, &alone).contains("--others-are-off"));
    }

    #[test]
    fn a_snapshot_is_for_the_case_without_survivors() {
        let with = |others_are_off| NodeRestoreArgs {
            snapshot: Some(PathBuf::from("/nonexistent/etcd.db")),
            others_are_off,
            ..arguments(None)
        };
        let alone = survivors(vec![survivor(11, 3, 100)]);
        assert!(refusal(&with(true), &alone).contains("instead of a snapshot"));
        let none = survivors(Vec::new());
        assert!(refusal(&with(false), &none).contains("--others-are-off"));
        assert!(refusal(&with(true), &none).contains("/nonexistent/etcd.db"));
        assert!(refusal(&arguments(Some(11)), &none).contains("--snapshot"));
    }
}
