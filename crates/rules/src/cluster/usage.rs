//! Features that a cluster uses, as its member `feature_usage` lists them.
//!
//! They follow from the cluster and its hosts. Features of infra-envs are recorded when an infra-env of the cluster is
//! created or changed, and stay listed until another change of one. Proxies and time sources of infra-envs are none.
//! Source: assisted-service, internal/usage/consts.go, internal/bminventory/inventory.go (setDefaultUsage,
//! handlerClusterInfoOnRegisterInfraEnv, updateInfraEnv, setIgnitionConfigOverrideUsage).

use std::collections::BTreeMap;

use model::cluster::{
    Cluster, ClusterKind, ClusterStatus, DiskEncryptionTarget, Hyperthreading, PlatformType,
};
use model::host::HostRole;
use model::infra_env::InfraEnv;
use model::network::NetworkType;
use model::operators::OperatorType;
use model::versions::CpuArchitecture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::network::networking;
use crate::snapshot::Snapshot;

/// `usage` of the installer API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct FeatureUsage {
    id: String,
    name: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    data: Value,
}

impl FeatureUsage {
    /// The entry of a name, and its data; null without data.
    fn entry(name: &str, data: Value) -> (String, Self) {
        let usage = Self {
            id: name.replace(' ', "_").replace('.', "").to_uppercase(),
            name: name.to_owned(),
            data,
        };
        (name.to_owned(), usage)
    }
}

/// Features by name.
type FeatureUsages = BTreeMap<String, FeatureUsage>;

/// A feature, and its data for clusters that use it; null without data.
struct UsageRow {
    name: &'static str,
    data: fn(&Snapshot) -> Option<Value>,
}

const AUTO_ASSIGNED: &str = "auto assign role";
const STATIC_NETWORK: &str = "Static Network Config";
const KERNEL_ARGUMENTS: &str = "discovery kernel arguments";
const IGNITION_OVERRIDE: &str = "Ignition Config Override";
/// Level of ignition overrides that belong to an infra-env.
const INFRA_ENV_LEVEL: &str = "infra-env";
const HOST_LEVEL: &str = "host";
/// Architectures other than the usual one.
static ARCHITECTURES: &[(&str, CpuArchitecture)] = &[
    ("arm64 architecture", CpuArchitecture::Arm64),
    ("ppc64le architecture", CpuArchitecture::Ppc64le),
    ("s390x architecture", CpuArchitecture::S390x),
];
/// Hosts of the smallest cluster with a choice of roles.
const HOSTS_WITH_CHOICE: usize = 4;

/// Features in the order of the peer's list; operators follow.
#[rustfmt::skip]
static ROWS: &[UsageRow] = &[
    UsageRow { name: "Additional NTP Source", data: |all| ntp_sources(&all.cluster) },
    UsageRow { name: "Requested hostname", data: requested_hostnames },
    UsageRow { name: "Proxy", data: |all| proxy(&all.cluster) },
    UsageRow { name: "SNO", data: |all| flag(networking::is_single_node(&all.cluster)) },
    UsageRow { name: "VIP auto alloc.", data: |all| flag(networking::uses_dhcp(&all.cluster)) },
    UsageRow { name: "OVN network type", data: |all| network(all, NetworkType::OVNKubernetes) },
    UsageRow { name: "SDN network type", data: |all| network(all, NetworkType::OpenShiftSDN) },
    UsageRow { name: "CiscoACI network type", data: |all| network(all, NetworkType::CiscoACI) },
    UsageRow { name: "Cilium network type", data: |all| network(all, NetworkType::Cilium) },
    UsageRow { name: "Calico network type", data: |all| network(all, NetworkType::Calico) },
    UsageRow { name: "None network type", data: |all| network(all, NetworkType::None) },
    UsageRow { name: "Dual-stack", data: |all| flag(is_dual_stack(&all.cluster)) },
    UsageRow { name: "Dual-stack VIPs", data: |all| flag(all.cluster.api_vips.len() > 1) },
    UsageRow { name: "Platform selection", data: |all| platform(&all.cluster) },
    UsageRow { name: "Nutanix integration", data: nutanix },
    UsageRow { name: "Schedulable masters", data: |all| flag(all.cluster.schedulable_masters == Some(true)) },
    UsageRow { name: AUTO_ASSIGNED, data: |all| flag(has_assigned_roles(all)) },
    UsageRow { name: "Custom manifest", data: |all| flag(all.files.user_manifests) },
    UsageRow { name: "Disk encryption", data: |all| disk_encryption(&all.cluster) },
    UsageRow { name: "Cluster managed networking with VMs", data: virtual_hosts },
    UsageRow { name: "Install Config Overrides", data: |all| overrides(&all.cluster) },
    UsageRow { name: "Cluster Tags", data: |all| flag(!all.cluster.tags.is_empty()) },
    UsageRow { name: "Hyperthreading", data: |all| hyperthreading(&all.cluster) },
    UsageRow { name: "User Managed Networking With Multi Node", data: |all| flag(is_user_managed(&all.cluster)) },
    UsageRow { name: "Validations have been ignored for this cluster", data: |all| flag(ignores(&all.cluster)) },
    UsageRow { name: "FIPS", data: |all| flag(overridden(&all.cluster).get("fips") == Some(&Value::Bool(true))) },
];

/// Text of `feature_usage`: a JSON map by name, `{}` without any.
pub(crate) fn feature_usage(snapshot: &Snapshot) -> String {
    let rows = ROWS.iter().filter_map(|row| {
        let data = (row.data)(snapshot)?;
        Some(FeatureUsage::entry(row.name, data))
    });
    let operators = snapshot.cluster.monitored_operators.iter();
    let operators = operators
        .filter(|one| one.operator_type == Some(OperatorType::Olm))
        .map(|one| FeatureUsage::entry(&one.name.to_uppercase(), Value::Null));
    let mut usages = of_infra_envs(snapshot);
    usages.extend(rows.chain(operators));
    text(&usages)
}

fn text(usages: &FeatureUsages) -> String {
    // Maps of texts cannot fail to be printed.
    serde_json::to_string(usages).unwrap_or_default()
}

/// The listed features of a cluster.
fn listed(cluster: &Cluster) -> FeatureUsages {
    serde_json::from_str(&cluster.feature_usage).unwrap_or_default()
}

/// The listed features that infra-envs brought, with the architecture and the ignition overrides of now.
fn of_infra_envs(all: &Snapshot) -> FeatureUsages {
    let mut usages = listed(&all.cluster);
    let architecture = all.cluster.cpu_architecture;
    let is_mixed = architecture == Some(CpuArchitecture::Multi);
    let is_architecture = |name: &str| ARCHITECTURES.iter().any(|(known, _)| *known == name);
    usages.retain(|name, _| {
        let name = name.as_str();
        [STATIC_NETWORK, KERNEL_ARGUMENTS, IGNITION_OVERRIDE].contains(&name)
            || is_mixed && is_architecture(name)
    });
    let own = ARCHITECTURES
        .iter()
        .filter(|(_, known)| architecture == Some(*known));
    usages.extend(own.map(|(name, _)| FeatureUsage::entry(name, Value::Null)));
    let mut hosts = all.hosts.iter();
    let is_overridden = hosts.any(|host| !host.record.ignition_config_overrides.is_empty());
    let is_listed = usages
        .get(IGNITION_OVERRIDE)
        .is_some_and(|usage| usage.data[HOST_LEVEL].is_boolean());
    if is_overridden || is_listed {
        set_override(&mut usages, HOST_LEVEL, is_overridden);
    }
    usages
}

/// Records at which level ignition configs are overridden; without any, the feature is not listed.
fn set_override(usages: &mut FeatureUsages, level: &str, is_overridden: bool) {
    let mut levels = match usages.remove(IGNITION_OVERRIDE).map(|usage| usage.data) {
        Some(Value::Object(levels)) => levels,
        _ => Map::new(),
    };
    levels.insert(level.to_owned(), is_overridden.into());
    if levels.values().any(|is_overridden| *is_overridden == true) {
        usages.extend([FeatureUsage::entry(IGNITION_OVERRIDE, levels.into())]);
    }
}

/// Whether a change of an infra-env changes a feature that [`record_infra_env`] records.
pub fn is_changed(before: &InfraEnv, after: &InfraEnv) -> bool {
    before.static_network_config != after.static_network_config
        || before.kernel_arguments != after.kernel_arguments
        || before.ignition_config_override != after.ignition_config_override
}

/// Records the features of a new or changed infra-env of a cluster: those that differ from `before`.
pub fn record_infra_env(cluster: &mut Cluster, before: Option<&InfraEnv>, infra_env: &InfraEnv) {
    let mut usages = listed(cluster);
    let mut set = |name: &str, in_use: bool| {
        usages.remove(name);
        usages.extend(in_use.then(|| FeatureUsage::entry(name, Value::Null)));
    };
    let networks = &infra_env.static_network_config;
    if before.is_none_or(|before| before.static_network_config != *networks) {
        set(STATIC_NETWORK, !networks.is_empty());
    }
    let arguments = &infra_env.kernel_arguments;
    if before.is_none_or(|before| before.kernel_arguments != *arguments) {
        set(KERNEL_ARGUMENTS, arguments.is_some());
    }
    if before.is_none() {
        for (name, known) in ARCHITECTURES {
            set(name, infra_env.cpu_architecture == Some(*known));
        }
    }
    let ignition = &infra_env.ignition_config_override;
    if before.is_none_or(|before| before.ignition_config_override != *ignition) {
        set_override(&mut usages, INFRA_ENV_LEVEL, !ignition.is_empty());
    }
    cluster.feature_usage = text(&usages);
}

fn flag(in_use: bool) -> Option<Value> {
    in_use.then_some(Value::Null)
}

fn network(all: &Snapshot, kind: NetworkType) -> Option<Value> {
    flag(all.cluster.network_type == Some(kind))
}

fn is_dual_stack(cluster: &Cluster) -> bool {
    networking::read(cluster).is_ok_and(|networks| networks.is_dual_stack())
}

fn is_user_managed(cluster: &Cluster) -> bool {
    networking::is_user_managed(cluster) && cluster.control_plane_count >= 3
}

fn ntp_sources(cluster: &Cluster) -> Option<Value> {
    let list = &cluster.additional_ntp_source;
    (!list.is_empty()).then(|| json!({ "source_count": list.split(',').count() }))
}

/// Hosts whose name a user has chosen.
fn requested_hostnames(all: &Snapshot) -> Option<Value> {
    let hosts = all.hosts.iter();
    let chosen = hosts.filter(|host| {
        let name = &host.record.requested_hostname;
        let inventory = host.inventory.as_ref();
        inventory.is_some_and(|inventory| !name.is_empty() && inventory.hostname != *name)
    });
    let count = chosen.count();
    (count > 0).then(|| json!({ "host_count": count }))
}

fn proxy(cluster: &Cluster) -> Option<Value> {
    let members = [
        ("http_proxy", &cluster.http_proxy),
        ("https_proxy", &cluster.https_proxy),
        ("no_proxy", &cluster.no_proxy),
    ];
    let given = members.iter().filter(|(_, text)| !text.is_empty());
    let data: Map<String, Value> = given
        .map(|(name, _)| ((*name).to_owned(), json!(1)))
        .collect();
    (!data.is_empty()).then_some(Value::Object(data))
}

fn platform(cluster: &Cluster) -> Option<Value> {
    let kind = cluster.platform_type();
    let is_selected = !matches!(kind, PlatformType::Baremetal | PlatformType::None);
    is_selected.then(|| json!({ "platform_type": kind }))
}

fn nutanix(all: &Snapshot) -> Option<Value> {
    let is_nutanix = all.cluster.platform_type() == PlatformType::Nutanix;
    is_nutanix.then(|| platform(&all.cluster)).flatten()
}

/// Whether roles were assigned automatically where there was a choice. The installation replaces automatic roles, so
/// that the entry stays from then on.
fn has_assigned_roles(all: &Snapshot) -> bool {
    let is_open = matches!(
        all.cluster.status,
        ClusterStatus::Insufficient | ClusterStatus::Ready | ClusterStatus::PendingForInput
    );
    if all.cluster.kind != ClusterKind::Cluster || all.hosts.len() < HOSTS_WITH_CHOICE {
        return false;
    }
    let mut hosts = all.hosts.iter();
    let automatic = hosts.any(|host| host.record.role == Some(HostRole::AutoAssign));
    let was_listed = all.cluster.feature_usage.contains(AUTO_ASSIGNED);
    automatic || (was_listed && !is_open)
}

fn disk_encryption(cluster: &Cluster) -> Option<Value> {
    let encryption = cluster.disk_encryption.as_ref()?;
    let target = encryption.enable_on?;
    (target != DiskEncryptionTarget::None).then(|| {
        json!({
            "enable_on": target,
            "mode": encryption.mode.unwrap_or_default(),
            "tang_servers": encryption.tang_servers,
        })
    })
}

/// Virtual machines of a cluster that manages its own network.
fn virtual_hosts(all: &Snapshot) -> Option<Value> {
    let kind = all.cluster.platform_type();
    let is_managed = matches!(kind, PlatformType::Baremetal | PlatformType::None)
        && !networking::is_user_managed(&all.cluster);
    let hosts = all.hosts.iter().filter(|host| {
        let vendor = host
            .inventory
            .as_ref()
            .and_then(|inventory| inventory.system_vendor.as_ref());
        vendor.is_some_and(|vendor| vendor.r#virtual)
    });
    let ids: Vec<_> = hosts.map(|host| host.record.id).collect();
    (is_managed && !ids.is_empty()).then(|| json!({ "VM Hosts": ids }))
}

/// Members of the overrides; empty without any.
fn overridden(cluster: &Cluster) -> Map<String, Value> {
    serde_json::from_str(&cluster.install_config_overrides).unwrap_or_default()
}

/// Overridden members, each with the names of its own members.
fn overrides(cluster: &Cluster) -> Option<Value> {
    let names = overridden(cluster).into_iter().map(|(name, value)| {
        let members = value.as_object().into_iter().flat_map(Map::keys);
        let path = members.fold(name, |path, member| format!("{path} {member}"));
        (path, Value::Bool(true))
    });
    let data: Map<String, Value> = names.collect();
    (!data.is_empty()).then_some(Value::Object(data))
}

fn hyperthreading(cluster: &Cluster) -> Option<Value> {
    let scope = cluster.hyperthreading?;
    (scope != Hyperthreading::None).then(|| json!({ "hyperthreading_enabled": scope }))
}

fn ignores(cluster: &Cluster) -> bool {
    let lists = [
        &cluster.ignored_host_validations,
        &cluster.ignored_cluster_validations,
    ];
    lists
        .iter()
        .any(|text| !matches!(text.as_str(), "" | "[]" | "null"))
}

#[cfg(test)]
mod tests {
    use model::operators::MonitoredOperator;

    use super::*;
    use crate::fixtures;
    use crate::samples;

    fn usages(snapshot: &Snapshot) -> Map<String, Value> {
        serde_json::from_str(&feature_usage(snapshot)).unwrap()
    }

    #[test]
    fn a_plain_cluster_uses_its_network_type_and_hyperthreading() {
        let cluster = samples::create(samples::params()).unwrap();
        assert_eq!(
            Value::Object(usages(&Snapshot::new(cluster, Vec::new()))),
            json!({
                "OVN network type": { "id": "OVN_NETWORK_TYPE", "name": "OVN network type" },
                "Hyperthreading": {
                    "id": "HYPERTHREADING",
                    "name": "Hyperthreading",
                    "data": { "hyperthreading_enabled": "all" },
                },
            })
        );
        assert_eq!(feature_usage(&Snapshot::default()), "{}");
    }

    #[test]
    fn chosen_settings_are_listed_with_their_data() {
        let mut all = samples::single_node();
        let cluster = &mut all.cluster;
        cluster.additional_ntp_source = "a.example.com,b.example.com".to_owned();
        cluster.https_proxy = "http://proxy.example.com".to_owned();
        cluster.tags = "blue".to_owned();
        cluster.hyperthreading = Some(Hyperthreading::None);
        cluster.vip_dhcp_allocation = Some(true);
        cluster.install_config_overrides =
            r#"{"fips":true,"controlPlane":{"hyperthreading":"Disabled"}}"#.to_owned();
        cluster.ignored_host_validations = r#"["ntp-synced"]"#.to_owned();
        cluster.monitored_operators.push(MonitoredOperator {
            name: "lvm".to_owned(),
            operator_type: Some(OperatorType::Olm),
            ..MonitoredOperator::default()
        });
        all.files.user_manifests = true;
        let found = usages(&all);
        assert_eq!(
            found["Additional NTP Source"]["data"],
            json!({ "source_count": 2 })
        );
        assert_eq!(found["Proxy"]["data"], json!({ "https_proxy": 1 }));
        assert_eq!(found["VIP auto alloc."]["id"], "VIP_AUTO_ALLOC");
        assert_eq!(
            found["Install Config Overrides"]["data"],
            json!({ "fips": true, "controlPlane hyperthreading": true })
        );
        assert_eq!(found["LVM"], json!({ "id": "LVM", "name": "LVM" }));
        for name in [
            "SNO",
            "Cluster Tags",
            "FIPS",
            "Custom manifest",
            "Validations have been ignored for this cluster",
        ] {
            assert!(found.contains_key(name), "{name}");
        }
        for name in [
            "Hyperthreading",
            "CONSOLE",
            "Dual-stack",
            "Requested hostname",
        ] {
            assert!(!found.contains_key(name), "{name}");
        }
    }

    #[test]
    fn automatic_roles_stay_listed_during_the_installation() {
        let mut all = fixtures::snapshot(3, 2);
        all.hosts[4].record.role = Some(HostRole::AutoAssign);
        all.cluster.feature_usage = feature_usage(&all);
        assert!(usages(&all).contains_key(AUTO_ASSIGNED));
        all.hosts[4].record.role = Some(HostRole::Worker);
        assert!(
            !usages(&all).contains_key(AUTO_ASSIGNED),
            "the user has chosen it"
        );
        all.cluster.status = ClusterStatus::Installing;
        assert!(usages(&all).contains_key(AUTO_ASSIGNED));
    }

    #[test]
    fn features_of_infra_envs_stay_listed() {
        let mut all = fixtures::snapshot(3, 0);
        let plain = InfraEnv::default();
        let changed = InfraEnv {
            static_network_config: "[]".to_owned(),
            kernel_arguments: Some("[]".to_owned()),
            ignition_config_override: "{}".to_owned(),
            ..InfraEnv::default()
        };
        record_infra_env(&mut all.cluster, None, &changed);
        all.hosts[1].record.ignition_config_overrides = "{}".to_owned();
        for _ in 0..2 {
            all.cluster.feature_usage = feature_usage(&all);
        }
        let found = usages(&all);
        assert_eq!(found[STATIC_NETWORK]["id"], "STATIC_NETWORK_CONFIG");
        assert_eq!(found[KERNEL_ARGUMENTS]["id"], "DISCOVERY_KERNEL_ARGUMENTS");
        let levels = |all: &Snapshot| usages(all)[IGNITION_OVERRIDE]["data"].clone();
        assert_eq!(levels(&all), json!({ "infra-env": true, "host": true }));
        // An unchanged infra-env takes nothing away.
        record_infra_env(&mut all.cluster, Some(&plain), &plain);
        assert_eq!(usages(&all), found);
        record_infra_env(&mut all.cluster, Some(&changed), &plain);
        let found = usages(&all);
        assert!(!found.contains_key(STATIC_NETWORK) && !found.contains_key(KERNEL_ARGUMENTS));
        assert_eq!(levels(&all), json!({ "infra-env": false, "host": true }));
        all.hosts[1].record.ignition_config_overrides.clear();
        assert!(!usages(&all).contains_key(IGNITION_OVERRIDE));
    }

    #[test]
    fn architectures_of_infra_envs_count_in_mixed_clusters() {
        let arm = InfraEnv {
            cpu_architecture: Some(CpuArchitecture::Arm64),
            ..InfraEnv::default()
        };
        let of = |architecture: CpuArchitecture| {
            let mut all = fixtures::snapshot(3, 0);
            all.cluster.cpu_architecture = Some(architecture);
            record_infra_env(&mut all.cluster, None, &arm);
            usages(&all).contains_key("arm64 architecture")
        };
        assert!(of(CpuArchitecture::Multi) && of(CpuArchitecture::Arm64));
        assert!(!of(CpuArchitecture::X86_64));
    }

    #[test]
    fn virtual_hosts_are_named() {
        let mut all = fixtures::snapshot(3, 0);
        let mut inventory = fixtures::inventory(1);
        inventory.system_vendor.get_or_insert_default().r#virtual = true;
        let record = &mut all.hosts[1].record;
        record.inventory = serde_json::to_string(&inventory).unwrap().into();
        let host = crate::HostState::new(record.clone());
        let id = host.record.id;
        all.hosts[1] = host;
        let found = usages(&all);
        assert_eq!(
            found["Cluster managed networking with VMs"]["data"],
            json!({ "VM Hosts": [id] })
        );
        all.cluster.user_managed_networking = Some(true);
        let found = usages(&all);
        assert!(!found.contains_key("Cluster managed networking with VMs"));
        assert!(found.contains_key("User Managed Networking With Multi Node"));
    }
}
