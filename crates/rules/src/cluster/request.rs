//! Requests of users to a cluster: its rule is applied, and it is refreshed.

use model::Error;
use model::cluster::ClusterStatus;
use model::events::EventSeverity;
use model::host::{HostRole, HostStatus};
use model::time::Timestamp;

use super::facts::{Facts, Judged};
use super::table::TABLE;
use super::transition::apply_rule;
use super::trigger::{On, Trigger};
use crate::cluster::refresh;
use crate::cluster::role_assignment;
use crate::cluster::usage;
use crate::event::{NewEvent, about_host};
use crate::policy::InstallationPolicy;
use crate::snapshot::Snapshot;
use crate::table;

/// Applies a request of the user to a cluster; its hosts follow.
///
/// `Prepare` assigns roles, refreshes the cluster, refuses one that is not ready and chooses the bootstrap host.
/// The caller makes the installation's files and stores the result in `last_installation_preparation`.
///
/// Errors: Conflict – the status, or a validation, forbids it; Invalid – a host is not known, or the cluster is not
/// installed and takes no further hosts.
pub fn apply(
    snapshot: &mut Snapshot,
    trigger: Trigger,
    policy: &InstallationPolicy,
    now: Timestamp,
) -> Result<Vec<NewEvent>, Error> {
    let mut events = Vec::new();
    let on = match trigger {
        Trigger::Prepare => {
            prepare(snapshot, policy, now, &mut events)?;
            On::Prepare
        }
        Trigger::Cancel => On::Cancel,
        Trigger::Reset => On::Reset,
        Trigger::AddHosts => On::AddHosts,
    };
    let facts = Facts::of(snapshot, Judged::default(), policy, now);
    let Some(rule) = table::find(TABLE, &on, &snapshot.cluster.status, &facts) else {
        return Err(refusal(snapshot, on));
    };
    apply_rule(snapshot, rule, &facts, policy, &mut events)?;
    if trigger == Trigger::Prepare {
        choose_bootstrap(snapshot, &mut events);
    }
    events.extend(refresh::cluster(snapshot, policy, now));
    Ok(events)
}

/// Assigns roles, refreshes, and refuses a cluster that is not ready.
fn prepare(
    snapshot: &mut Snapshot,
    policy: &InstallationPolicy,
    now: Timestamp,
    events: &mut Vec<NewEvent>,
) -> Result<(), Error> {
    // Before the assignment: it replaces automatic roles, which are a feature in use.
    let usage = usage::feature_usage(snapshot);
    if snapshot.cluster.status == ClusterStatus::Ready {
        role_assignment::assign(snapshot, policy);
    }
    events.extend(refresh::cluster(snapshot, policy, now));
    snapshot.cluster.feature_usage = usage;
    let cluster = &snapshot.cluster;
    if cluster.status != ClusterStatus::Ready {
        return Err(Error::conflict(format!(
            "cluster {} ({}) is {}, not ready to be installed: {}",
            cluster.name, cluster.id, cluster.status, cluster.status_info
        )));
    }
    let unknown = snapshot
        .hosts
        .iter()
        .find(|host| host.record.status != HostStatus::Known);
    match unknown {
        Some(host) => Err(Error::invalid(
            "hosts",
            format!(
                "host {} is {}, not known, and cannot be installed: {}",
                host.name(),
                host.record.status,
                host.record.status_info
            ),
        )),
        None => Ok(()),
    }
}

/// Chooses the last known master, unless a bootstrap host exists.
/// Source: assisted-service, internal/bminventory/inventory.go, setBootstrapHost.
fn choose_bootstrap(snapshot: &mut Snapshot, events: &mut Vec<NewEvent>) {
    for host in &mut snapshot.hosts {
        host.record.bootstrap &= host.record.role == Some(HostRole::Master);
    }
    if snapshot.hosts.iter().any(|host| host.record.bootstrap) {
        return;
    }
    let chosen = snapshot.hosts.iter_mut().rev().find(|host| {
        host.record.status == HostStatus::Known && host.record.role == Some(HostRole::Master)
    });
    if let Some(host) = chosen {
        host.record.bootstrap = true;
        events.push(about_host(
            host,
            "host_bootstrap_set",
            EventSeverity::Info,
            "was chosen as bootstrap host",
        ));
    }
}

fn refusal(snapshot: &Snapshot, on: On) -> Error {
    let doing = match on {
        On::Refresh => "be refreshed",
        On::Prepare => "be installed",
        On::Cancel => "be cancelled",
        On::Reset => "be reset",
        On::AddHosts => "accept further hosts",
    };
    let allowed = table::sources(TABLE, &on, ClusterStatus::ALL);
    let reason = format!(
        "cluster {} ({}) is {} and cannot {doing} now; it can while {}",
        snapshot.cluster.name, snapshot.cluster.id, snapshot.cluster.status, allowed
    );
    match on {
        // Source: assisted-service, internal/cluster/cluster.go, TransformClusterToDay2.
        On::AddHosts => Error::invalid("cluster_id", reason),
        _ => Error::conflict(reason),
    }
}
