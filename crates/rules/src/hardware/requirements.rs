//! Hardware requirements of a role: `HW_VALIDATOR_REQUIREMENTS` over the built-in defaults.
//!
//! An entry is chosen by version: the exact one, else the highest `min_version` not above it, else `default`.
//! Missing fields of an entry come from the configured default, then from the specification's table.
//! Source: assisted-service, internal/hardware/validator.go, versioned-requirements.go.

use model::hardware::{
    ClusterHostRequirementsDetails, MatchType, VersionedClusterHostRequirementsDetails,
    VersionedHostRequirements,
};
use model::host::HostRole;
use model::inventory::{Inventory, MemoryMethod};

use crate::policy::InstallationPolicy;
use crate::snapshot::reach::NetworkLimits;

/// Products whose workers need less.
const EDGE_WORKER_PRODUCTS: &[&str] = &["BlueField SoC"];

/// Roles with requirements of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequirementKind {
    Master,
    Arbiter,
    Worker,
    SingleNode,
    EdgeWorker,
}

/// The requirements of one version, for every role.
#[derive(Debug, Clone, PartialEq)]
pub struct Requirements {
    /// Of a control plane host.
    pub master: ClusterHostRequirementsDetails,
    /// Of an arbiter.
    pub arbiter: ClusterHostRequirementsDetails,
    /// Of a worker.
    pub worker: ClusterHostRequirementsDetails,
    /// Of a single-node cluster's host.
    pub single_node: ClusterHostRequirementsDetails,
    /// Of a worker on a small accelerator card.
    pub edge_worker: ClusterHostRequirementsDetails,
}

impl Requirements {
    /// Requirements of a platform version; an empty version selects the default entry.
    pub fn of(policy: &InstallationPolicy, version: &str) -> Self {
        let layers = layers(&policy.hardware, version);
        Self {
            master: merged(&layers, RequirementKind::Master),
            arbiter: merged(&layers, RequirementKind::Arbiter),
            worker: merged(&layers, RequirementKind::Worker),
            single_node: merged(&layers, RequirementKind::SingleNode),
            edge_worker: merged(&layers, RequirementKind::EdgeWorker),
        }
    }

    /// Requirements of a role; a host without one needs the minimum of all roles.
    pub fn role(&self, role: HostRole, single_node: bool) -> ClusterHostRequirementsDetails {
        match role {
            HostRole::Master | HostRole::Bootstrap if single_node => self.single_node.clone(),
            HostRole::Master | HostRole::Bootstrap => self.master.clone(),
            HostRole::Arbiter => self.arbiter.clone(),
            HostRole::Worker => self.worker.clone(),
            HostRole::AutoAssign => self.least(),
        }
    }

    /// Requirements of a role on that machine.
    pub fn host(
        &self,
        role: HostRole,
        single_node: bool,
        inventory: &Inventory,
    ) -> ClusterHostRequirementsDetails {
        if role == HostRole::Worker && is_edge_worker(inventory) {
            return self.edge_worker.clone();
        }
        self.role(role, single_node)
    }

    /// Minimum of master and worker.
    pub fn least(&self) -> ClusterHostRequirementsDetails {
        let (master, worker) = (&self.master, &self.worker);
        ClusterHostRequirementsDetails {
            cpu_cores: master.cpu_cores.min(worker.cpu_cores),
            ram_mib: master.ram_mib.min(worker.ram_mib),
            disk_size_gb: master.disk_size_gb.min(worker.disk_size_gb),
            ..worker.clone()
        }
    }

    /// The lowest limits of any role: measurements within them violate none.
    pub(crate) fn strictest_network(&self) -> NetworkLimits {
        let roles = [
            &self.master,
            &self.arbiter,
            &self.worker,
            &self.single_node,
            &self.edge_worker,
        ];
        let lowest = |get: fn(&ClusterHostRequirementsDetails) -> Option<f64>| {
            let limits = roles.iter().filter_map(|role| get(role));
            limits.fold(f64::INFINITY, f64::min)
        };
        NetworkLimits {
            latency_ms: lowest(|role| role.network_latency_threshold_ms),
            packet_loss_percent: lowest(|role| role.packet_loss_percentage),
        }
    }
}

/// The requirements of a role in a platform version.
pub fn requirements(
    policy: &InstallationPolicy,
    version: &str,
    role: HostRole,
    single_node: bool,
) -> ClusterHostRequirementsDetails {
    Requirements::of(policy, version).role(role, single_node)
}

fn is_edge_worker(inventory: &Inventory) -> bool {
    let arm = inventory
        .cpu
        .as_ref()
        .is_some_and(|cpu| matches!(cpu.architecture.as_str(), "arm64" | "aarch64"));
    let product = inventory
        .system_vendor
        .as_ref()
        .map_or("", |vendor| vendor.product_name.as_str());
    arm && EDGE_WORKER_PRODUCTS
        .iter()
        .any(|known| plain(known) == plain(product))
}

/// Vendors spell the name of a product with capitals and spaces of their own.
/// Source: assisted-service, internal/hardware/validator.go, isEdgeWorker.
fn plain(product: &str) -> String {
    product.replace(' ', "").to_lowercase()
}

/// The configured entries that apply, the most specific first.
fn layers<'a>(
    configured: &'a [VersionedHostRequirements],
    version: &str,
) -> Vec<&'a VersionedHostRequirements> {
    let default = configured.iter().find(|entry| entry.version == "default");
    let exact = |text: &str| {
        configured
            .iter()
            .find(|entry| entry.version == text && entry.match_type != Some(MatchType::MinVersion))
    };
    let wanted = number(version);
    let minimum = configured
        .iter()
        .filter(|entry| entry.match_type == Some(MatchType::MinVersion))
        .filter_map(|entry| Some((number(&entry.version)?, entry)))
        .filter(|(from, _)| wanted.as_ref().is_some_and(|wanted| from <= wanted))
        .max_by(|left, right| left.0.cmp(&right.0))
        .map(|(_, entry)| entry);
    let minor = wanted
        .as_ref()
        .map(|wanted| format!("{}.{}", wanted.0, wanted.1))
        .unwrap_or_default();
    let picked = exact(version).or_else(|| exact(&minor)).or(minimum);
    picked.into_iter().chain(default).collect()
}

/// Major, minor and patch; suffixes such as `-rc.1` and `-multi` do not count.
fn number(version: &str) -> Option<(u64, u64, u64)> {
    let numbers = version.split('-').next().unwrap_or_default();
    let mut parts = numbers.split('.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?.parse().ok()?;
    let patch = parts.next().map_or(Some(0), |text| text.parse().ok())?;
    Some((major, minor, patch))
}

fn merged(
    layers: &[&VersionedHostRequirements],
    kind: RequirementKind,
) -> ClusterHostRequirementsDetails {
    let mut details: Vec<&VersionedClusterHostRequirementsDetails> = layers
        .iter()
        .filter_map(|layer| part(layer, kind))
        .collect();
    if details.is_empty() && matches!(kind, RequirementKind::Arbiter | RequirementKind::EdgeWorker)
    {
        details = layers
            .iter()
            .filter_map(|layer| part(layer, RequirementKind::Worker))
            .collect();
    }
    let base = built_in(kind);
    let integer = |get: fn(&VersionedClusterHostRequirementsDetails) -> Option<i64>, base| {
        details.iter().find_map(|one| get(one)).unwrap_or(base)
    };
    let float = |get: fn(&VersionedClusterHostRequirementsDetails) -> Option<f64>, base| {
        details.iter().find_map(|one| get(one)).or(base)
    };
    ClusterHostRequirementsDetails {
        cpu_cores: integer(|one| one.cpu_cores, base.cpu_cores),
        ram_mib: integer(|one| one.ram_mib, base.ram_mib),
        disk_size_gb: integer(|one| one.disk_size_gb, base.disk_size_gb),
        installation_disk_speed_threshold_ms: integer(
            |one| one.installation_disk_speed_threshold_ms,
            base.installation_disk_speed_threshold_ms,
        ),
        network_latency_threshold_ms: float(
            |one| one.network_latency_threshold_ms,
            base.network_latency_threshold_ms,
        ),
        packet_loss_percentage: float(
            |one| one.packet_loss_percentage,
            base.packet_loss_percentage,
        ),
        tpm_enabled_in_bios: false,
    }
}

fn part(
    entry: &VersionedHostRequirements,
    kind: RequirementKind,
) -> Option<&VersionedClusterHostRequirementsDetails> {
    match kind {
        RequirementKind::Master => entry.master.as_ref(),
        RequirementKind::Arbiter => entry.arbiter.as_ref(),
        RequirementKind::Worker => entry.worker.as_ref(),
        RequirementKind::SingleNode => entry.sno.as_ref(),
        RequirementKind::EdgeWorker => entry.edge_worker.as_ref(),
    }
}

/// The specification's table; arbiter and edge worker, which it does not name, are the peer's.
fn built_in(kind: RequirementKind) -> ClusterHostRequirementsDetails {
    let (cpu_cores, ram_mib, disk_size_gb, network) = match kind {
        RequirementKind::Master => (4, 16384, 120, Some((100.0, 0.0))),
        RequirementKind::Arbiter => (2, 8192, 50, Some((1000.0, 0.0))),
        RequirementKind::Worker => (2, 8192, 120, Some((1000.0, 10.0))),
        RequirementKind::SingleNode => (8, 32768, 120, None),
        RequirementKind::EdgeWorker => (2, 8192, 15, Some((1000.0, 10.0))),
    };
    ClusterHostRequirementsDetails {
        cpu_cores,
        ram_mib,
        disk_size_gb,
        installation_disk_speed_threshold_ms: 10,
        network_latency_threshold_ms: network.map(|(latency, _)| latency),
        packet_loss_percentage: network.map(|(_, loss)| loss),
        tpm_enabled_in_bios: false,
    }
}

/// Whole MiB of a size in bytes.
pub(crate) fn mebibytes(bytes: i64) -> i64 {
    bytes / (1 << 20)
}

/// Usable memory of the machine. Firmware and kernel keep some for themselves: 100 MiB are tolerated, and 2 %
/// more where only the kernel's own count is known.
/// Source: assisted-service, internal/host/validator.go, hasMinMemory.
pub(crate) fn usable_mib(inventory: &Inventory) -> i64 {
    const TOLERANCE_MIB: i64 = 100;
    let Some(memory) = &inventory.memory else {
        return 0;
    };
    let usable = mebibytes(memory.usable_bytes);
    if usable <= 0 {
        return 0;
    }
    let is_usable_only = memory.physical_bytes_method == Some(MemoryMethod::Meminfo.into());
    let more = if is_usable_only { usable / 50 } else { 0 };
    usable.saturating_add(TOLERANCE_MIB).saturating_add(more)
}

pub(crate) const VMWARE: &str = "VMware, Inc.";

pub(crate) fn maker(inventory: &Inventory) -> &str {
    inventory
        .system_vendor
        .as_ref()
        .map_or("", |vendor| vendor.manufacturer.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(json: &str) -> InstallationPolicy {
        InstallationPolicy {
            hardware: serde_json::from_str(json).unwrap(),
            ..InstallationPolicy::default()
        }
    }

    #[test]
    fn defaults_are_the_specifications() {
        let all = Requirements::of(&InstallationPolicy::default(), "4.16.3");
        let triple =
            |one: &ClusterHostRequirementsDetails| (one.cpu_cores, one.ram_mib, one.disk_size_gb);
        assert_eq!(triple(&all.master), (4, 16384, 120));
        assert_eq!(triple(&all.worker), (2, 8192, 120));
        assert_eq!(triple(&all.single_node), (8, 32768, 120));
        assert_eq!(all.single_node.network_latency_threshold_ms, None);
        assert_eq!(all.worker.packet_loss_percentage, Some(10.0));
    }

    #[test]
    fn missing_fields_come_from_default_then_built_in() {
        let policy = policy(
            r#"[{"version":"default","master":{"ram_mib":20000},"worker":{"cpu_cores":3}},
                {"version":"4.16","master":{"cpu_cores":6}}]"#,
        );
        let master = requirements(&policy, "4.16.8", HostRole::Master, false);
        assert_eq!(
            (master.cpu_cores, master.ram_mib, master.disk_size_gb),
            (6, 20000, 120)
        );
        assert_eq!(
            requirements(&policy, "4.17.0", HostRole::Master, false).cpu_cores,
            4
        );
        let arbiter = requirements(&policy, "4.20.0", HostRole::Arbiter, false);
        assert_eq!(
            arbiter.cpu_cores, 3,
            "an arbiter not configured follows the worker"
        );
    }

    #[test]
    fn highest_minimum_version_wins() {
        let policy = policy(
            r#"[{"version":"4.12","match_type":"min_version","sno":{"cpu_cores":7}},
                {"version":"4.22","match_type":"min_version","sno":{"cpu_cores":4}},
                {"version":"4.9","match_type":"min_version","sno":{"cpu_cores":9}}]"#,
        );
        let cpu = |version| requirements(&policy, version, HostRole::Master, true).cpu_cores;
        assert_eq!(cpu("4.8.2"), 8);
        assert_eq!(cpu("4.21.1"), 7);
        assert_eq!(cpu("4.22.0-rc.1"), 4);
        assert_eq!(cpu("4.10.0"), 9);
    }

    #[test]
    fn edge_workers_are_known_by_any_spelling_of_their_product() {
        let worker = |product: &str, architecture: &str| -> i64 {
            let inventory: Inventory = serde_json::from_value(serde_json::json!({
                "cpu": { "architecture": architecture },
                "system_vendor": { "product_name": product },
            }))
            .unwrap();
            let all = Requirements::of(&InstallationPolicy::default(), "4.16.3");
            all.host(HostRole::Worker, false, &inventory).disk_size_gb
        };
        assert_eq!(worker("BlueField SoC", "arm64"), 15);
        assert_eq!(worker("Bluefield soc", "aarch64"), 15);
        assert_eq!(worker("Bluefield soc", "x86_64"), 120);
        assert_eq!(worker("BlueField", "arm64"), 120);
    }
}
