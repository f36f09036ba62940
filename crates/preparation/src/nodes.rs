//! Ignition configs of roles and of hosts.
//!
//! Source: openshift/assisted-service, `internal/ignition/installmanifests.go`.

use ignition::{IgnitionConfig, IgnitionFile};
use ipnet::IpNet;
use model::host::{Host, HostRole};
use model::steps::VipType;
use rules::HostState;
use rules::Snapshot;
use rules::snapshot::roles::is_single_node;

use crate::failure::PreparationFailure;

const READABLE: u32 = 0o644;
const SERVICE_CA: &str = "/etc/assisted-service/service-ca-cert.crt";
/// Settings of NetworkManager in dual-stack clusters, of discovered hosts and of nodes.
pub const IPV6_SETTINGS: &str = include_str!("host_files/01-ipv6.conf");
const IPV6: &str = "/etc/NetworkManager/conf.d/01-ipv6.conf";
/// MAC addresses and addresses of the virtual addresses, for the monitor of keepalived.
const VIPS: &str = "/etc/keepalived/unsupported-monitor.conf";
const API_LEASE: &str = "/etc/keepalived/lease-api";
const INGRESS_LEASE: &str = "/etc/keepalived/lease-ingress";
const NODE_IP_HINT: &str = "/etc/default/nodeip-configuration";

/// Object name of a host's ignition config.
pub fn file_name(host: &Host) -> String {
    format!("{}-{}.ign", role(host), host.id)
}

/// Object name of the ignition config of a host's role.
pub(crate) fn base_name(host: &Host) -> String {
    format!("{}.ign", role(host))
}

/// Role of the host's ignition config: master, arbiter or worker.
pub(crate) fn role(host: &Host) -> HostRole {
    match rules::snapshot::roles::effective_role(host) {
        HostRole::Master | HostRole::Bootstrap => HostRole::Master,
        HostRole::Arbiter => HostRole::Arbiter,
        HostRole::Worker | HostRole::AutoAssign => HostRole::Worker,
    }
}

/// Adds the service's certificate authority and IPv6 settings to a role's ignition config.
pub(crate) fn complete(config: &mut IgnitionConfig, snapshot: &Snapshot, service_ca: Option<&str>) {
    if let Some(pem) = service_ca {
        config.put_file(IgnitionFile::text(SERVICE_CA, READABLE, pem));
    }
    if has_ipv6(snapshot) {
        let text = IPV6_SETTINGS;
        config.put_file(IgnitionFile::text(IPV6, READABLE, text));
    }
}

/// Lets keepalived of the control plane renew the DHCP leases of the virtual addresses.
/// Source: openshift/assisted-service, `internal/network/dhcp_param_file.go`, `updateDhcpFiles`.
pub(crate) fn add_vip_leases(config: &mut IgnitionConfig, snapshot: &Snapshot) {
    let cluster = &snapshot.cluster;
    let (Some(api), Some(ingress)) = (cluster.api_vips.first(), cluster.ingress_vips.first())
    else {
        return;
    };
    if cluster.vip_dhcp_allocation != Some(true) {
        return;
    }
    let vip = |name: VipType, address: &str| {
        let mac = rules::vip_mac(cluster.id, name);
        format!("{name}-vip:\n  name: {name}\n  mac-address: {mac}\n  ip-address: {address}\n")
    };
    let vips = vip(VipType::Api, &api.ip) + &vip(VipType::Ingress, &ingress.ip);
    config.put_file(IgnitionFile::text(VIPS, READABLE, &vips));
    let leases = &snapshot.vip_leases;
    for (path, lease) in [(API_LEASE, &leases.api), (INGRESS_LEASE, &leases.ingress)] {
        if !lease.is_empty() {
            config.put_file(IgnitionFile::text(path, READABLE, lease));
        }
    }
}

/// Derives the ignition config of a host from its role's.
pub(crate) fn of_host(
    base: &IgnitionConfig,
    host: &HostState,
    snapshot: &Snapshot,
) -> Result<IgnitionConfig, PreparationFailure> {
    let mut config = base.clone();
    config.put_file(IgnitionFile::text("/etc/hostname", READABLE, &host.name()));
    if is_single_node(&snapshot.cluster)
        && let Some(hint) = machine_network_address(snapshot)
    {
        let text = format!("KUBELET_NODEIP_HINT={hint}");
        config.put_file(IgnitionFile::text(NODE_IP_HINT, READABLE, &text));
    }
    let pool = &host.record.machine_config_pool_name;
    if !pool.is_empty() && role(&host.record) == HostRole::Worker {
        join_pool(&mut config, pool);
    }
    let overrides = host.record.ignition_config_overrides.trim();
    if overrides.is_empty() {
        return Ok(config);
    }
    let refuse = |error: ignition::Error| {
        PreparationFailure::new(format!(
            "ignition override of host {}: {error}",
            host.name()
        ))
    };
    let user = IgnitionConfig::parse(overrides.as_bytes()).map_err(refuse)?;
    ignition::merge(&config, &user).map_err(refuse)
}

/// Points the node to the configuration of another MachineConfigPool.
fn join_pool(config: &mut IgnitionConfig, pool: &str) {
    for source in &mut config.ignition.config.merge {
        if let Some(url) = &mut source.source
            && let Some(front) = url.strip_suffix("/config/worker")
        {
            *url = format!("{front}/config/{pool}");
        }
    }
}

fn machine_network_address(snapshot: &Snapshot) -> Option<String> {
    let network = snapshot.cluster.machine_networks.first()?;
    let network: IpNet = network.cidr.parse().ok()?;
    Some(network.network().to_string())
}

fn has_ipv6(snapshot: &Snapshot) -> bool {
    snapshot
        .hosts
        .iter()
        .filter_map(|host| host.inventory.as_ref())
        .flat_map(|inventory| &inventory.interfaces)
        .any(|interface| !interface.ipv6_addresses.is_empty())
}
