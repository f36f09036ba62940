use std::sync::Arc;

use model::Error;
use model::cluster::{ClusterStatus, ClusterUpdateParams, LoadBalancerType};
use model::host::{DiskConfigParams, DiskRole, HostRole, HostStatus, HostUpdateParams};
use model::infra_env::{ImageType, InfraEnv, InfraEnvUpdateParams};
use model::versions::CpuArchitecture;
use serde_json::{Value, json};

use super::*;
use crate::HostState;
use crate::InstallationPolicy;
use crate::NewEvent;
use crate::Snapshot;
use crate::network::networking;
use crate::samples;

fn patch(snapshot: &mut Snapshot, body: Value) -> Result<Vec<NewEvent>, Error> {
    patch_with(&[], snapshot, body)
}

/// The same for a cluster with infra-envs.
fn patch_with(
    infra_envs: &[InfraEnv],
    snapshot: &mut Snapshot,
    body: Value,
) -> Result<Vec<NewEvent>, Error> {
    let (offer, policy) = (samples::offer(), InstallationPolicy::default());
    let ctx = UpdateContext {
        offer: &offer,
        policy: &policy,
        cluster: None,
        infra_envs,
    };
    let params: ClusterUpdateParams = serde_json::from_value(body).unwrap();
    cluster(snapshot, &params, &ctx)
}

fn cidrs(snapshot: &Snapshot) -> Vec<&str> {
    snapshot
        .cluster
        .machine_networks
        .iter()
        .map(|net| net.cidr.as_str())
        .collect()
}

#[test]
fn operators_fit_the_architectures_of_infra_envs_and_hosts() {
    let choice = || json!({ "olm_operators": [{ "name": "lso" }] });
    let arm = InfraEnv {
        cpu_architecture: Some(CpuArchitecture::Arm64),
        ..samples::infra_env()
    };
    let mut snapshot = samples::snapshot();
    let error = patch_with(std::slice::from_ref(&arm), &mut snapshot, choice()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("Local Storage Operator") && text.contains("arm64"),
        "{text}"
    );
    patch_with(&[samples::infra_env()], &mut snapshot, choice()).unwrap();
    // Other changes are not refused because of a machine that came later.
    patch_with(&[arm], &mut snapshot, json!({ "tags": "a" })).unwrap();
    assert_eq!(snapshot.cluster.monitored_operators[1].name, "lso");
}

#[test]
fn only_some_statuses_accept_changes() {
    for status in ClusterStatus::ALL {
        let mut snapshot = samples::snapshot();
        snapshot.cluster.status = *status;
        let result = patch(&mut snapshot, json!({ "tags": "a" }));
        let expected = matches!(
            status,
            ClusterStatus::Insufficient
                | ClusterStatus::Ready
                | ClusterStatus::PendingForInput
                | ClusterStatus::AddingHosts
        );
        assert_eq!(result.is_ok(), expected, "{status}");
        if !expected {
            assert!(matches!(result, Err(Error::Conflict { .. })), "{status}");
        }
    }
}

#[test]
fn vips_determine_the_machine_network() {
    let mut snapshot = samples::snapshot();
    assert_eq!(cidrs(&snapshot), ["192.168.10.0/24"]);
    let body =
        json!({ "api_vips": [{ "ip": "10.20.7.1" }], "ingress_vips": [{ "ip": "10.20.7.2" }] });
    patch(&mut snapshot, body).unwrap();
    assert_eq!(cidrs(&snapshot), ["10.20.0.0/16"]);
    let body = json!({ "api_vips": [], "ingress_vips": [] });
    patch(&mut snapshot, body).unwrap();
    assert!(cidrs(&snapshot).is_empty());
}

#[test]
fn the_machine_network_leaves_with_the_hosts() {
    let mut snapshot = samples::snapshot();
    release_machine_networks(&mut snapshot);
    assert_eq!(cidrs(&snapshot), ["192.168.10.0/24"], "hosts are in it");
    snapshot.hosts.retain(|_| false);
    release_machine_networks(&mut snapshot);
    assert!(cidrs(&snapshot).is_empty());
}

#[test]
fn networking_fits_the_architectures_of_infra_envs() {
    let managed = |is_user_managed: bool| json!({ "user_managed_networking": is_user_managed });
    let of = |architecture| InfraEnv {
        cpu_architecture: Some(architecture),
        ..samples::infra_env()
    };
    let mut snapshot = samples::snapshot();
    patch(&mut snapshot, managed(true)).unwrap();
    let s390x = [of(CpuArchitecture::S390x)];
    let error = patch_with(&s390x, &mut snapshot, managed(false)).unwrap_err();
    assert!(error.to_string().contains("s390x"), "{error}");
    let x86 = [of(CpuArchitecture::X86_64)];
    patch_with(&x86, &mut snapshot, managed(false)).unwrap();
}

#[test]
fn vips_in_use_are_refused() {
    let body =
        json!({ "api_vips": [{ "ip": "10.20.7.1" }], "ingress_vips": [{ "ip": "10.20.7.2" }] });
    let mut snapshot = samples::snapshot();
    let scan = |free: Value| json!([{ "network": "10.20.0.0/16", "free_addresses": free }]);
    let free = scan(json!(["10.20.7.1", "10.20.7.2", "10.20.7.3"]));
    snapshot.hosts[0].record.free_addresses = free.to_string().into();
    patch(&mut snapshot, body.clone()).unwrap();
    // Another host sees it in use.
    snapshot.hosts[1].record.free_addresses = scan(json!(["10.20.7.1"])).to_string().into();
    let error = patch(&mut snapshot, body).unwrap_err().to_string();
    let expected = "api_vips and ingress_vips: \"10.20.7.2\" is in use";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_refused_change_changes_nothing() {
    for (field, body) in [
        ("name", json!({ "tags": "a", "name": "A" })),
        ("base_dns_domain", json!({ "base_dns_domain": "." })),
        (
            "api_vips and ingress_vips",
            json!({ "api_vips": [{ "ip": "172.20.0.1" }], "ingress_vips": [{ "ip": "172.20.0.2" }] }),
        ),
        ("api_vips and ingress_vips", json!({ "api_vips": [] })),
        (
            "api_vips",
            json!({ "api_vips": [{ "ip": "192.168.10.0" }], "ingress_vips": [{ "ip": "192.168.10.9" }] }),
        ),
        (
            "machine_networks",
            json!({ "machine_networks": [{ "cidr": "192.168.0.0/16" }] }),
        ),
        (
            "cluster_networks[0].host_prefix",
            json!({ "cluster_networks": [{ "cidr": "10.128.0.0/14" }] }),
        ),
        (
            "cluster_networks",
            json!({ "cluster_networks": [{ "cidr": "192.168.0.0/16", "host_prefix": 23 }] }),
        ),
        (
            "service_networks[0].cidr",
            json!({ "service_networks": [{ "cidr": "172.30.0.0/27" }] }),
        ),
        (
            "service_networks",
            json!({ "service_networks": [{ "cidr": "fd02::/112" }] }),
        ),
        ("control_plane_count", json!({ "control_plane_count": 1 })),
        ("control_plane_count", json!({ "control_plane_count": 5 })),
        ("network_type", json!({ "network_type": "OpenShiftSDN" })),
        (
            "vip_dhcp_allocation",
            json!({ "vip_dhcp_allocation": true, "user_managed_networking": true }),
        ),
        ("pull_secret", json!({ "pull_secret": "" })),
        (
            "user_managed_networking",
            json!({ "platform": { "type": "none" }, "user_managed_networking": false }),
        ),
        (
            "disk_encryption.tang_servers",
            json!({ "disk_encryption": { "enable_on": "all", "mode": "tang" } }),
        ),
        (
            "ntp_sources",
            json!({ "ntp_sources": "a1", "additional_ntp_source": "b1" }),
        ),
        ("http_proxy", json!({ "http_proxy": "proxy" })),
        (
            "api_vip_dns_name",
            json!({ "api_vip_dns_name": "api.demo.example.com" }),
        ),
    ] {
        let mut snapshot = samples::snapshot();
        let before = snapshot.cluster.clone();
        let error = patch(&mut snapshot, body).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{field}:")), "{field}: {error}");
        assert_eq!(snapshot.cluster, before, "{field}");
    }
}

#[test]
fn repeating_a_value_is_accepted() {
    let mut snapshot = samples::snapshot();
    let before = snapshot.cluster.clone();
    let body = json!({
        "name": before.name,
        "machine_networks": before.machine_networks,
        "cluster_networks": before.cluster_networks,
        "api_vips": before.api_vips,
        "ingress_vips": before.ingress_vips,
        "user_managed_networking": false,
        "platform": { "type": "baremetal" },
        "vip_dhcp_allocation": false,
    });
    assert!(patch(&mut snapshot, body).unwrap().is_empty());
    assert_eq!(snapshot.cluster, before);
}

#[test]
fn empty_fields_of_a_form_are_ignored() {
    let mut snapshot = samples::snapshot();
    let before = snapshot.cluster.clone();
    let body = json!({ "machine_networks": [], "machine_network_cidr": "", "tags": "" });
    patch(&mut snapshot, body).unwrap();
    assert_eq!(snapshot.cluster, before);
    let body = json!({ "api_vips": [{ "ip": "" }], "ingress_vips": [{ "ip": "" }] });
    patch(&mut snapshot, body).unwrap();
    assert!(snapshot.cluster.api_vips.is_empty() && snapshot.cluster.ingress_vips.is_empty());
}

#[test]
fn a_dual_stack_cluster_becomes_single_stack() {
    let policy = InstallationPolicy {
        ipv6_support: true,
        ..InstallationPolicy::default()
    };
    let offer = samples::offer();
    let ctx = UpdateContext {
        offer: &offer,
        policy: &policy,
        cluster: None,
        infra_envs: &[],
    };
    let change = |snapshot: &mut Snapshot, body: Value| {
        let params = serde_json::from_value(body).unwrap();
        cluster(snapshot, &params, &ctx).unwrap();
    };
    let mut snapshot = samples::snapshot();
    let single = json!({
        "machine_networks": [],
        "cluster_networks": snapshot.cluster.cluster_networks,
        "service_networks": snapshot.cluster.service_networks,
        "api_vips": snapshot.cluster.api_vips,
        "ingress_vips": snapshot.cluster.ingress_vips,
    });
    let mut dual = single.clone();
    dual["machine_networks"] = json!([{ "cidr": "192.168.10.0/24" }, { "cidr": "2001:db8::/64" }]);
    for (list, net) in [
        (
            "cluster_networks",
            json!({ "cidr": "fd01::/48", "host_prefix": 64 }),
        ),
        ("service_networks", json!({ "cidr": "fd02::/112" })),
    ] {
        dual[list].as_array_mut().unwrap().push(net);
    }
    change(&mut snapshot, dual);
    assert_eq!(cidrs(&snapshot), ["192.168.10.0/24", "2001:db8::/64"]);
    change(&mut snapshot, single);
    assert_eq!(cidrs(&snapshot), ["192.168.10.0/24"]);
    assert_eq!(snapshot.cluster.cluster_networks.len(), 1);
}

#[test]
fn switching_the_networking_clears_members_of_the_previous_mode() {
    let mut snapshot = samples::snapshot();
    patch(&mut snapshot, json!({ "user_managed_networking": true })).unwrap();
    let cluster = &snapshot.cluster;
    assert!(cluster.api_vips.is_empty() && cluster.machine_networks.is_empty());
    assert_eq!(
        cluster.platform.as_ref().map(|platform| platform.r#type),
        Some(model::cluster::PlatformType::None)
    );
    patch(&mut snapshot, json!({ "user_managed_networking": false })).unwrap();
    assert_eq!(
        snapshot
            .cluster
            .platform
            .as_ref()
            .map(|platform| platform.r#type),
        Some(model::cluster::PlatformType::Baremetal)
    );
}

#[test]
fn vsphere_has_both_ways_of_networking() {
    let mut snapshot = samples::snapshot();
    patch(&mut snapshot, json!({ "platform": { "type": "vsphere" } })).unwrap();
    for (body, user_managed) in [
        (json!({ "user_managed_networking": true }), true),
        (json!({ "platform": { "type": "vsphere" } }), true),
        (json!({ "user_managed_networking": false }), false),
        (json!({ "platform": { "type": "vsphere" } }), false),
    ] {
        patch(&mut snapshot, body.clone()).unwrap();
        let cluster = &snapshot.cluster;
        let platform = cluster.platform.as_ref().unwrap().r#type;
        assert_eq!(platform, model::cluster::PlatformType::Vsphere, "{body}");
        assert_eq!(networking::is_user_managed(cluster), user_managed, "{body}");
    }
    patch(&mut snapshot, json!({ "platform": { "type": "nutanix" } })).unwrap();
    let error = patch(&mut snapshot, json!({ "user_managed_networking": true })).unwrap_err();
    assert!(error.to_string().contains("nutanix"), "{error}");
}

#[test]
fn a_user_managed_load_balancer_lets_the_user_name_the_networks() {
    let mut snapshot = samples::snapshot();
    let body = json!({
        "load_balancer": { "type": "user-managed" },
        "machine_networks": [{ "cidr": "192.168.10.0/24" }, { "cidr": "10.20.0.0/16" }],
        "api_vips": [{ "ip": "10.20.7.1" }],
        "ingress_vips": [{ "ip": "10.20.7.1" }],
    });
    patch(&mut snapshot, body).unwrap();
    assert_eq!(cidrs(&snapshot), ["192.168.10.0/24", "10.20.0.0/16"]);
    assert_eq!(
        snapshot
            .cluster
            .load_balancer
            .and_then(|balancer| balancer.r#type),
        Some(LoadBalancerType::UserManaged)
    );
}

#[test]
fn several_machine_networks_of_one_family_are_refused() {
    let two = json!([{ "cidr": "192.168.10.0/24" }, { "cidr": "10.20.0.0/16" }]);
    let managed = samples::snapshot();
    let single = samples::single_node();
    let mut user_managed = samples::snapshot();
    patch(
        &mut user_managed,
        json!({ "user_managed_networking": true, "api_vips": [], "ingress_vips": [] }),
    )
    .unwrap();
    for mut snapshot in [managed, single, user_managed] {
        let error = patch(&mut snapshot, json!({ "machine_networks": two })).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("several networks of one"), "{error}");
    }
}

#[test]
fn a_changed_proxy_emits_an_event() {
    let mut snapshot = samples::snapshot();
    let events = patch(&mut snapshot, json!({ "http_proxy": "http://proxy:3128" })).unwrap();
    assert_eq!(events[0].name, "proxy_settings_changed");
    assert!(
        patch(&mut snapshot, json!({ "http_proxy": "http://proxy:3128" }))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_day2_cluster_has_fewer_settings() {
    let mut snapshot = samples::snapshot();
    snapshot.cluster.kind = model::cluster::ClusterKind::AddHostsCluster;
    snapshot.cluster.status = ClusterStatus::AddingHosts;
    patch(
        &mut snapshot,
        json!({ "api_vip_dns_name": "api.demo.example.com" }),
    )
    .unwrap();
    patch(&mut snapshot, json!({ "schedulable_masters": false })).unwrap();
    for (field, value) in [
        ("network_type", json!("OVNKubernetes")),
        ("schedulable_masters", json!(true)),
        ("api_vip_dns_name", json!("A b")),
    ] {
        let error = patch(&mut snapshot, json!({ field: value })).unwrap_err();
        assert!(error.to_string().starts_with(field), "{error}");
    }
}

#[test]
fn machine_networks_follow_from_the_hosts() {
    let mut snapshot = samples::single_node();
    assert_eq!(cidrs(&snapshot), ["192.168.10.0/24"]);
    assert!(!derive_machine_networks(&mut snapshot));
    snapshot.cluster.machine_networks.clear();
    let inventory = snapshot.hosts[0].inventory.as_mut().unwrap();
    Arc::make_mut(inventory).routes.clear();
    assert!(!derive_machine_networks(&mut snapshot));
    assert!(cidrs(&snapshot).is_empty());

    let mut snapshot = samples::snapshot();
    snapshot.cluster.machine_networks.clear();
    assert!(
        !derive_machine_networks(&mut snapshot),
        "a ready cluster keeps what it has"
    );
    snapshot.cluster.status = ClusterStatus::PendingForInput;
    assert!(derive_machine_networks(&mut snapshot));
    assert_eq!(cidrs(&snapshot), ["192.168.10.0/24"]);
}

#[test]
fn host_networks_name_their_hosts_in_order() {
    let snapshot = samples::snapshot();
    let networks = host_networks(&snapshot.hosts);
    let cidrs: Vec<&str> = networks.iter().map(|net| net.cidr.as_str()).collect();
    assert_eq!(cidrs, ["10.20.0.0/16", "192.168.10.0/24"]);
    assert_eq!(networks[0].host_ids.len(), 5);
}

fn patch_host(host: &mut HostState, body: Value) -> Result<Vec<NewEvent>, Error> {
    let params: HostUpdateParams = serde_json::from_value(body).unwrap();
    let cluster = samples::snapshot().cluster;
    super::host(host, Some(&cluster), params)
}

#[test]
fn changes_of_a_host_are_stored() {
    let mut host = samples::host(1, HostRole::AutoAssign);
    let events = patch_host(
        &mut host,
        json!({
            "host_role": "master",
            "host_name": "master-0",
            "disks_skip_formatting": [{ "disk_id": "/dev/disk/by-id/wwn-0x01", "skip_formatting": true }],
            "node_labels": [{ "key": "b", "value": "2" }, { "key": "a", "value": "1" }],
            "machine_config_pool_name": "infra",
            "ignition_endpoint_token": "secret",
        }),
    )
    .unwrap();
    assert_eq!(events.len(), 1);
    let record = &host.record;
    assert_eq!(record.role, Some(HostRole::Master));
    assert_eq!(record.requested_hostname, "master-0");
    assert_eq!(record.skip_formatting_disks, "/dev/disk/by-id/wwn-0x01");
    assert_eq!(record.node_labels, r#"{"a":"1","b":"2"}"#);
    assert!(record.ignition_endpoint_token_set);
}

#[test]
fn a_host_refuses_invalid_changes() {
    let conflict = |body: Value| {
        let mut host = samples::host(1, HostRole::Worker);
        let before = host.record.clone();
        let error = patch_host(&mut host, body).unwrap_err();
        assert_eq!(host.record, before);
        matches!(error, Error::Conflict { .. })
    };
    assert!(!conflict(json!({ "host_role": "bootstrap" })));
    assert!(!conflict(json!({ "host_role": "arbiter" })));
    assert!(!conflict(json!({ "host_name": "localhost" })));
    assert!(!conflict(
        json!({ "node_labels": [{ "key": "", "value": "" }] })
    ));
    assert!(!conflict(
        json!({ "fencing_credentials": { "address": "a", "username": "b", "password": "c" } })
    ));
    assert!(!conflict(
        json!({ "disks_skip_formatting": [{ "disk_id": "x", "skip_formatting": true }] })
    ));
    assert!(conflict(
        json!({ "disks_selected_config": [{ "id": "x", "role": "install" }] })
    ));
    assert!(conflict(json!({ "disks_selected_config": [
        { "id": "/dev/disk/by-id/wwn-0x01", "role": "install" },
        { "id": "/dev/disk/by-id/wwn-0x01", "role": "install" },
    ] })));

    let mut host = samples::host(1, HostRole::Worker);
    host.record.status = HostStatus::Installing;
    for body in [
        json!({ "host_role": "master" }),
        json!({ "host_name": "a" }),
    ] {
        let error = patch_host(&mut host, body).unwrap_err();
        assert!(matches!(error, Error::Conflict { .. }), "{error}");
    }
}

#[test]
fn the_chosen_disk_must_be_eligible() {
    let mut host = samples::host(1, HostRole::Worker);
    let id = host.record.installation_disk_id.clone();
    let choose = |role| HostUpdateParams {
        disks_selected_config: Some(vec![DiskConfigParams {
            id: id.clone(),
            role: Some(role),
        }]),
        ..HostUpdateParams::default()
    };
    super::host(&mut host, None, choose(DiskRole::None)).unwrap();
    assert!(host.record.installation_disk_id.is_empty());
    super::host(&mut host, None, choose(DiskRole::Install)).unwrap();
    assert_eq!(host.record.installation_disk_path, "/dev/sda");
    Arc::make_mut(host.inventory.as_mut().unwrap()).disks[0]
        .installation_eligibility
        .eligible = false;
    let error = super::host(&mut host, None, choose(DiskRole::Install)).unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
}

#[test]
fn a_disk_is_chosen_by_its_id_or_paths() {
    let mut host = samples::host(1, HostRole::Worker);
    let id = host.record.installation_disk_id.clone();
    Arc::make_mut(host.inventory.as_mut().unwrap()).disks[0].by_path =
        "/dev/disk/by-path/pci-1".to_owned();
    for name in [id.as_str(), "/dev/disk/by-path/pci-1", "/dev/sda"] {
        host.record.installation_disk_id.clear();
        let choice = json!({ "disks_selected_config": [{ "id": name, "role": "install" }] });
        patch_host(&mut host, choice).unwrap();
        assert_eq!(host.record.installation_disk_id, id, "{name}");
    }
}

#[test]
fn user_arguments_and_ignition_are_checked() {
    let mut host = samples::host(1, HostRole::Worker);
    installer_args(&mut host, &["--append-karg".to_owned(), "quiet".to_owned()]).unwrap();
    assert_eq!(host.record.installer_args, r#"["--append-karg","quiet"]"#);
    assert!(installer_args(&mut host, &["--bad".to_owned()]).is_err());
    assert!(host_ignition(&mut host, "{}").is_err());
    host_ignition(&mut host, r#"{"ignition":{"version":"3.2.0"}}"#).unwrap();
}

#[test]
fn changes_of_an_infra_env_are_stored() {
    let (offer, policy) = (samples::offer(), InstallationPolicy::default());
    let bound = samples::snapshot().cluster;
    let ctx = UpdateContext {
        offer: &offer,
        policy: &policy,
        cluster: Some(&bound),
        infra_envs: &[],
    };
    let mut record = samples::infra_env();
    let params = |body: Value| -> InfraEnvUpdateParams { serde_json::from_value(body).unwrap() };
    let events = infra_env(
        &mut record,
        params(json!({ "image_type": "minimal-iso", "proxy": { "http_proxy": "http://p:1" } })),
        &ctx,
    )
    .unwrap();
    assert_eq!(record.r#type, ImageType::MinimalIso);
    assert!(record.download_url.ends_with("/4.16/x86_64/minimal.iso"));
    assert_eq!(events[0].props["details"], "image_type, proxy");
    assert_eq!(events[0].cluster_id, Some(bound.id));
    // The image is another one when the agent comes into it; the same value again changes nothing.
    for expected in [&["embedded_agent"][..], &[]] {
        let change = params(json!({ "embedded_agent": true }));
        let events = infra_env(&mut record, change, &ctx).unwrap();
        let details: Vec<&Value> = events.iter().map(|event| &event.props["details"]).collect();
        assert!(record.embedded_agent);
        assert_eq!(details, expected);
    }

    for (field, body) in [
        (
            "additional_trust_bundle",
            json!({ "additional_trust_bundle": "x" }),
        ),
        (
            "proxy.http_proxy",
            json!({ "proxy": { "http_proxy": "x" } }),
        ),
        (
            "kernel_arguments",
            json!({ "kernel_arguments": [{ "operation": "delete", "value": "x" }] }),
        ),
        (
            "static_network_config[0].mac_interface_map",
            json!({ "static_network_config": [{ "network_yaml": "" }] }),
        ),
    ] {
        let before = record.clone();
        let error = infra_env(&mut record, params(body), &ctx)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(&format!("{field}:")), "{field}: {error}");
        assert_eq!(record, before);
    }
}

#[test]
fn another_stream_is_another_image() {
    let (offer, policy) = (samples::offer_of_streams(), InstallationPolicy::default());
    let ctx = UpdateContext {
        offer: &offer,
        policy: &policy,
        cluster: None,
        infra_envs: &[],
    };
    let mut record = samples::infra_env();
    let mut patch = |body: Value| {
        let params: InfraEnvUpdateParams = serde_json::from_value(body).unwrap();
        let events = infra_env(&mut record, params, &ctx)?;
        let details = events.first().map(|event| event.props["details"].clone());
        let url = record
            .download_url
            .rsplit_once("/x86_64/")
            .unwrap()
            .0
            .to_owned();
        Ok::<_, Error>((url.rsplit('/').next().unwrap().to_owned(), details))
    };
    let changed = Some(json!("os_stream"));
    for (body, expected) in [
        (json!({ "os_stream": "rhel-10" }), ("10.0", changed.clone())),
        (json!({}), ("10.0", None)),
        (json!({ "os_stream": "rhel-10" }), ("10.0", None)),
        (json!({ "os_stream": "rhel-9" }), ("4.16", changed.clone())),
        (json!({ "os_stream": "" }), ("4.16", None)),
    ] {
        let (url, details) = patch(body.clone()).unwrap();
        assert_eq!((url.as_str(), details), expected, "{body}");
    }
    let refused = patch(json!({ "os_stream": "c9s" }))
        .unwrap_err()
        .to_string();
    assert!(refused.contains("[rhel-9, rhel-10]"), "{refused}");

    let mut snapshot = samples::snapshot();
    let mut patch = |name: &str| {
        let params = ClusterUpdateParams {
            os_stream: Some(name.to_owned()),
            ..ClusterUpdateParams::default()
        };
        cluster(&mut snapshot, &params, &ctx)?;
        Ok::<_, Error>(snapshot.cluster.os_stream.clone())
    };
    assert_eq!(patch("rhel-10").unwrap(), "rhel-10");
    assert!(patch("c9s").is_err());
    assert_eq!(patch("rhel-9").unwrap(), "");
}
