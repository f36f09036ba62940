//! Changes of a host.

use std::collections::BTreeSet;

use model::Error;
use model::cluster::Cluster;
use model::events::EventSeverity;
use model::host::{
    DiskConfigParams, DiskRole, DiskSkipFormattingParams, HostRole, HostStatus, HostUpdateParams,
};
use model::inventory::Disk;

use crate::HostState;
use crate::NewEvent;
use crate::hardware::disks::device_path;
use crate::host::retry;
use crate::host::role_support::{check_arbiter, check_fencing};
use crate::input;

/// Applies the changes, all or none; the caller stores token and header values of the ignition endpoint.
///
/// Errors: `Invalid` naming the field; `Conflict` – the host's status or its disks forbid it.
pub fn host(
    host: &mut HostState,
    cluster: Option<&Cluster>,
    params: HostUpdateParams,
) -> Result<Vec<NewEvent>, Error> {
    let mut changed = host.clone();
    if let Some(role) = params.host_role {
        set_role(&mut changed, cluster, role)?;
    }
    if let Some(name) = params.host_name {
        check_before_installation(&changed, "host_name")?;
        input::hostname(&name)?;
        if name != changed.name() {
            check_not_retried(&changed, cluster, "host_name")?;
        }
        changed.record.requested_hostname = name;
    }
    if let Some(disks) = &params.disks_selected_config {
        check_before_installation(&changed, "disks_selected_config")?;
        select_disk(&mut changed, disks)?;
    }
    if let Some(disks) = &params.disks_skip_formatting {
        check_before_installation(&changed, "disks_skip_formatting")?;
        skip_formatting(&mut changed, disks)?;
    }
    if let Some(pool) = params.machine_config_pool_name {
        changed.record.machine_config_pool_name = pool;
    }
    if let Some(token) = &params.ignition_endpoint_token {
        input::endpoint_token(token)?;
        changed.record.ignition_endpoint_token_set = !token.is_empty();
    }
    if let Some(headers) = &params.ignition_endpoint_http_headers {
        input::endpoint_headers(headers)?;
    }
    if let Some(labels) = &params.node_labels {
        let labels = input::node_labels(labels)?;
        changed.record.node_labels = serde_json::to_string(&labels)
            .map_err(|error| Error::internal("writing node_labels", error))?;
    }
    if let Some(credentials) = &params.fencing_credentials {
        check_fencing(cluster)?;
        changed.record.fencing_credentials = serde_json::to_string(credentials)
            .map_err(|error| Error::internal("writing fencing_credentials", error))?;
    }
    let events = role_event(host, &changed);
    *host = changed;
    Ok(events)
}

fn role_event(before: &HostState, after: &HostState) -> Vec<NewEvent> {
    if before.record.role == after.record.role {
        return Vec::new();
    }
    let role = after.record.role.unwrap_or_default();
    let name = after.name();
    vec![
        NewEvent::new(
            "host_role_updated",
            EventSeverity::Info,
            format!("Host {name}: the role was set to {role}"),
        )
        .host(&after.record)
        .prop("host_name", name)
        .prop("suggested_role", role),
    ]
}

/// Source: assisted-service, internal/host/host.go, UpdateHostname, UpdateRole.
fn check_before_installation(host: &HostState, field: &str) -> Result<(), Error> {
    match host.record.status {
        HostStatus::Discovering
        | HostStatus::Known
        | HostStatus::Disconnected
        | HostStatus::Insufficient
        | HostStatus::PendingForInput
        | HostStatus::Binding
        | HostStatus::DiscoveringUnbound
        | HostStatus::KnownUnbound
        | HostStatus::DisconnectedUnbound
        | HostStatus::InsufficientUnbound => Ok(()),
        status => Err(Error::conflict(format!(
            "{field} of host {} cannot change while it is {status}: only before the installation",
            host.name()
        ))),
    }
}

/// A retried host is installed with the ignition config that its first installation was prepared with, in which these
/// values are. Its disk may be another one.
fn check_not_retried(
    host: &HostState,
    cluster: Option<&Cluster>,
    field: &str,
) -> Result<(), Error> {
    match cluster {
        Some(cluster) if retry::CLUSTER.contains(&cluster.status) => Err(Error::conflict(format!(
            "{field} of host {} cannot change while its cluster is {}: the host is retried as it was prepared",
            host.name(),
            cluster.status
        ))),
        _ => Ok(()),
    }
}

/// Source: assisted-service, internal/bminventory/inventory.go, updateHostRole.
fn set_role(host: &mut HostState, cluster: Option<&Cluster>, role: HostRole) -> Result<(), Error> {
    const FIELD: &str = "host_role";
    check_before_installation(host, FIELD)?;
    if host.record.role != Some(role) {
        check_not_retried(host, cluster, FIELD)?;
    }
    match role {
        HostRole::Bootstrap => {
            return Err(input::refuse(
                FIELD,
                role.as_str(),
                "is chosen by the installation: use auto-assign, master, arbiter or worker",
            ));
        }
        HostRole::Arbiter => check_arbiter(cluster)?,
        HostRole::AutoAssign | HostRole::Master | HostRole::Worker => {}
    }
    host.record.role = Some(role);
    Ok(())
}

/// Source: assisted-service, internal/host/host.go, UpdateInstallationDisk.
fn select_disk(host: &mut HostState, choices: &[DiskConfigParams]) -> Result<(), Error> {
    let name = host.name();
    let conflict = |reason: String| Err(Error::conflict(format!("host {name}: {reason}")));
    let mut wanted = choices
        .iter()
        .filter(|choice| choice.role == Some(DiskRole::Install));
    let install = wanted.next();
    if wanted.next().is_some() {
        return conflict(
            "disks_selected_config has more than one disk with role install: choose one".to_owned(),
        );
    }
    for choice in choices {
        if selected_disk(host, &choice.id).is_none() {
            return conflict(format!(
                "disks_selected_config names disk {:?}, which it does not have: choose one of [{}]",
                choice.id,
                disk_ids(host)
            ));
        }
    }
    if let Some(choice) = install {
        let Some(disk) = selected_disk(host, &choice.id) else {
            return Ok(());
        };
        if !disk.installation_eligibility.eligible {
            return conflict(format!(
                "disk {:?} cannot be installed to ({}): choose another one",
                choice.id,
                disk.installation_eligibility
                    .not_eligible_reasons
                    .join("; ")
            ));
        }
        let (id, path) = (disk.id.clone(), device_path(disk));
        host.record.installation_disk_id = id;
        host.record.installation_disk_path = path;
    } else if choices
        .iter()
        .filter_map(|choice| selected_disk(host, &choice.id))
        .any(|disk| disk.id == host.record.installation_disk_id)
    {
        host.record.installation_disk_id = String::new();
        host.record.installation_disk_path = String::new();
    }
    Ok(())
}

/// The disk of an id, a path by its connection, or a device path: clients that read device names send the latter.
/// Source: assisted-service, internal/host/hostutil/host_utils.go, GetDiskByInstallationPath.
fn selected_disk<'a>(host: &'a HostState, name: &str) -> Option<&'a Disk> {
    let mut disks = host.inventory.as_ref()?.disks.iter();
    disks.find(|disk| {
        !name.is_empty() && (disk.id == name || disk.by_path == name || device_path(disk) == name)
    })
}

fn find_disk<'a>(host: &'a HostState, id: &str) -> Option<&'a Disk> {
    host.inventory
        .as_ref()?
        .disks
        .iter()
        .find(|disk| !id.is_empty() && disk.id == id)
}

fn disk_ids(host: &HostState) -> String {
    let ids: Vec<&str> = host
        .inventory
        .iter()
        .flat_map(|inventory| &inventory.disks)
        .map(|disk| disk.id.as_str())
        .collect();
    ids.join(", ")
}

/// Source: assisted-service, internal/bminventory/inventory.go, updateHostSkipFormattingDisks.
fn skip_formatting(
    host: &mut HostState,
    choices: &[DiskSkipFormattingParams],
) -> Result<(), Error> {
    let mut skipped: BTreeSet<String> = host
        .record
        .skip_formatting_disks
        .split(',')
        .filter(|id| !id.is_empty())
        .map(str::to_owned)
        .collect();
    for choice in choices {
        if find_disk(host, &choice.disk_id).is_none() {
            return Err(input::refuse(
                "disks_skip_formatting",
                &choice.disk_id,
                &format!(
                    "is not a disk of this host: choose from [{}]",
                    disk_ids(host)
                ),
            ));
        }
        if choice.skip_formatting {
            skipped.insert(choice.disk_id.clone());
        } else {
            skipped.remove(&choice.disk_id);
        }
    }
    host.record.skip_formatting_disks = skipped.into_iter().collect::<Vec<_>>().join(",");
    Ok(())
}

/// Stores the arguments that a user adds to the installer of a host.
///
/// Errors: `Invalid` on `args`.
/// Source: assisted-service, internal/bminventory/inventory.go, V2UpdateHostInstallerArgsInternal.
pub fn installer_args(host: &mut HostState, args: &[String]) -> Result<Vec<NewEvent>, Error> {
    input::installer_args(args)?;
    host.record.installer_args = serde_json::to_string(args)
        .map_err(|error| Error::internal("writing installer_args", error))?;
    let name = host.name();
    Ok(vec![
        NewEvent::new(
            "host_installer_args_applied",
            EventSeverity::Info,
            format!("Host {name}: custom installer arguments were applied"),
        )
        .host(&host.record)
        .prop("host_name", name),
    ])
}

/// Stores the user's ignition overrides of a host.
///
/// Errors: `Invalid` on `config`.
/// Source: assisted-service, internal/bminventory/inventory.go, V2UpdateHostIgnitionInternal.
pub fn host_ignition(host: &mut HostState, config: &str) -> Result<Vec<NewEvent>, Error> {
    input::ignition_config_override("config", config)?;
    config.clone_into(&mut host.record.ignition_config_overrides);
    let name = host.name();
    Ok(vec![
        NewEvent::new(
            "host_discovery_ignition_config_applied",
            EventSeverity::Info,
            format!("Host {name}: a custom ignition configuration was applied"),
        )
        .host(&host.record)
        .prop("host_name", name),
    ])
}
