//! Completion of the installer's outputs, without an installer.

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ignition::IgnitionConfig;
use model::cluster::Cluster;
use model::host::{Host, HostRole};
use model::ids::{ClusterId, HostId};
use model::network::MachineNetwork;
use rules::HostState;
use rules::Snapshot;
use serde_json::{Value, json};
use uuid::Uuid;

use super::failure::PreparationFailure;
use super::{dummy, outputs};

const CLUSTER_VERSION: &str =
    "kind: ClusterVersion\nspec:\n  clusterID: 6f1f9c2e-3a51-4b8e-9d62-0d3c0a1b2c3d\n";

fn host(index: u32, role: HostRole) -> HostState {
    let inventory = json!({
        "hostname": format!("{role}-{index}"),
        "cpu": { "count": 8, "architecture": "x86_64", "model_name": "test", "frequency": 2400.0 },
        "memory": { "physical_bytes": 17_179_869_184_i64 },
        "disks": [{ "path": "/dev/sda", "by_path": "/dev/disk/by-path/1", "drive_type": "HDD", "size_bytes": 1 }],
        "interfaces": [{
            "name": "eth0",
            "mac_address": format!("52:54:00:00:00:0{index}"),
            "ipv4_addresses": [format!("10.0.0.{index}/8"), format!("192.168.10.{index}/24")],
        }],
    });
    HostState::new(Host {
        id: HostId(Uuid::from_u128(index.into())),
        role: Some(role),
        requested_hostname: format!("{role}-{index}"),
        inventory: inventory.to_string().into(),
        ..Host::default()
    })
}

fn snapshot(control_plane: i64) -> Snapshot {
    let cluster = Cluster {
        id: ClusterId(Uuid::from_u128(9)),
        name: "demo".to_owned(),
        base_dns_domain: "lab.test".to_owned(),
        control_plane_count: control_plane,
        machine_networks: vec![MachineNetwork {
            cidr: "192.168.10.0/24".to_owned(),
            ..MachineNetwork::default()
        }],
        ..Cluster::default()
    };
    Snapshot {
        cluster,
        hosts: vec![host(1, HostRole::Master), host(2, HostRole::Worker)].into(),
        ..Snapshot::default()
    }
}

fn source(text: &str) -> Value {
    json!({ "source": format!("data:text/plain;charset=utf-8;base64,{}", STANDARD.encode(text)) })
}

/// A folder with the installer's outputs.
fn installed(bootstrap_name: &str, bare_metal_host: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let manifest = format!(
        "kind: BareMetalHost\nmetadata:\n  name: {bare_metal_host}\nspec: {{}}\nstatus: {{}}\n"
    );
    let bootstrap = json!({
        "ignition": { "version": "3.2.0" },
        "storage": { "files": [
            { "path": "/opt/openshift/manifests/cvo-overrides.yaml", "mode": 420, "contents": source(CLUSTER_VERSION) },
            { "path": "/opt/openshift/openshift/99_openshift-cluster-api_hosts-0.yaml", "mode": 420, "contents": source(&manifest) },
            { "path": "/etc/motd", "append": [source("bootstrap\n")] },
            { "path": "/etc/NetworkManager/system-connections/nmconnection", "contents": source("x") },
        ] },
    });
    let pointer = |role: &str| {
        let url = format!("https://api-int.demo.lab.test:22623/config/{role}");
        json!({ "ignition": { "version": "3.2.0", "config": { "merge": [{ "source": url }] } } })
    };
    fs::create_dir(folder.path().join("auth")).unwrap();
    for (name, content) in [
        (bootstrap_name, bootstrap.to_string()),
        ("master.ign", pointer("master").to_string()),
        ("worker.ign", pointer("worker").to_string()),
        ("auth/kubeconfig", "kind: Config".to_owned()),
        ("auth/kubeadmin-password", "a-b-c-d".to_owned()),
        ("metadata.json", "{}".to_owned()),
    ] {
        fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

fn complete(folder: &Path, snapshot: &Snapshot) -> Result<outputs::Outputs, PreparationFailure> {
    outputs::complete(folder, snapshot, "{}", Some("CA"))
}

fn config(outputs: &outputs::Outputs, name: &str) -> IgnitionConfig {
    IgnitionConfig::parse(outputs.files.get(name).expect(name)).unwrap()
}

fn text(config: &IgnitionConfig, path: &str) -> String {
    let file = config.find_file(path).expect(path);
    String::from_utf8(file.contents.inline_bytes().unwrap().unwrap()).unwrap()
}

#[test]
fn bootstrap_ignition_has_the_hosts() {
    let folder = installed("bootstrap.ign", "worker-2");
    let outputs = complete(folder.path(), &snapshot(3)).unwrap();
    assert_eq!(
        outputs.cluster_id.to_string(),
        "6f1f9c2e-3a51-4b8e-9d62-0d3c0a1b2c3d"
    );
    let bootstrap = config(&outputs, "bootstrap.ign");
    let path = "/opt/openshift/openshift/99_openshift-cluster-api_hosts-0.yaml";
    let manifest: Value = serde_yaml::from_str(&text(&bootstrap, path)).unwrap();
    assert_eq!(manifest["spec"]["externallyProvisioned"], true);
    assert!(manifest.get("status").is_none());
    let status = manifest["metadata"]["annotations"]["baremetalhost.metal3.io/status"]
        .as_str()
        .unwrap();
    let status: Value = serde_json::from_str(status).unwrap();
    assert_eq!(status["hardware"]["nics"][0]["ip"], "192.168.10.2");
    assert_eq!(status["hardware"]["ramMebibytes"], 16384);
    assert_eq!(status["hardware"]["storage"][0]["rotational"], true);
    assert_eq!(text(&bootstrap, "/etc/motd"), "bootstrap\n");
    assert!(
        bootstrap
            .find_file("/etc/NetworkManager/system-connections/nmconnection")
            .is_none()
    );
    assert!(
        bootstrap
            .find_file("/opt/openshift/assisted-install-bootstrap")
            .is_some()
    );
    assert!(text(&bootstrap, "/etc/NetworkManager/conf.d/99-kni.conf").contains("unmanaged"));
}

#[test]
fn unknown_hosts_in_the_bootstrap_are_refused() {
    let folder = installed("bootstrap.ign", "stranger");
    let failure = complete(folder.path(), &snapshot(3))
        .map(|_| ())
        .unwrap_err();
    assert!(failure.reason.contains("stranger"), "{failure}");
}

#[test]
fn each_host_has_its_own_ignition() {
    let folder = installed("bootstrap.ign", "master-1");
    let mut snapshot = snapshot(3);
    snapshot.hosts[0].record.ignition_config_overrides =
        r#"{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/etc/mine","contents":{"source":"data:,x"}}]}}"#.to_owned();
    snapshot.hosts[1].record.machine_config_pool_name = "infra".to_owned();
    let outputs = complete(folder.path(), &snapshot).unwrap();
    let master = config(&outputs, "master-00000000-0000-0000-0000-000000000001.ign");
    assert_eq!(text(&master, "/etc/hostname"), "master-1");
    assert_eq!(text(&master, "/etc/mine"), "x");
    assert_eq!(
        text(&master, "/etc/assisted-service/service-ca-cert.crt"),
        "CA"
    );
    let worker = config(&outputs, "worker-00000000-0000-0000-0000-000000000002.ign");
    assert_eq!(
        worker.ignition.config.merge[0].source.as_deref(),
        Some("https://api-int.demo.lab.test:22623/config/infra")
    );
    let names: Vec<&str> = outputs.files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "bootstrap.ign",
            "install-config.yaml",
            "kubeadmin-password",
            "kubeconfig-noingress",
            "master-00000000-0000-0000-0000-000000000001.ign",
            "master.ign",
            "metadata.json",
            "worker-00000000-0000-0000-0000-000000000002.ign",
            "worker.ign",
        ]
    );
}

#[test]
fn the_control_plane_renews_leases_of_virtual_addresses() {
    let folder = installed("bootstrap.ign", "master-1");
    let mut snapshot = snapshot(3);
    let path = "/etc/keepalived/unsupported-monitor.conf";
    snapshot.cluster.api_vips = serde_json::from_value(json!([{ "ip": "192.168.10.5" }])).unwrap();
    snapshot.cluster.ingress_vips =
        serde_json::from_value(json!([{ "ip": "192.168.10.6" }])).unwrap();
    let outputs = complete(folder.path(), &snapshot).unwrap();
    assert!(config(&outputs, "master.ign").find_file(path).is_none());
    snapshot.cluster.vip_dhcp_allocation = Some(true);
    snapshot.vip_leases.api = "lease {\n  expire never;\n}".to_owned();
    let outputs = complete(folder.path(), &snapshot).unwrap();
    let master = config(&outputs, "master-00000000-0000-0000-0000-000000000001.ign");
    let stored: Value = serde_yaml::from_str(&text(&master, path)).unwrap();
    let expected = json!({
        "api-vip": { "name": "api", "mac-address": "00:1a:4a:15:4f:ee", "ip-address": "192.168.10.5" },
        "ingress-vip": { "name": "ingress", "mac-address": "00:1a:4a:a3:14:a2", "ip-address": "192.168.10.6" },
    });
    assert_eq!(stored, expected);
    assert_eq!(
        text(&master, "/etc/keepalived/lease-api"),
        "lease {\n  expire never;\n}"
    );
    assert!(master.find_file("/etc/keepalived/lease-ingress").is_none());
    assert!(config(&outputs, "worker.ign").find_file(path).is_none());
}

#[test]
fn malformed_overrides_name_the_host() {
    let folder = installed("bootstrap.ign", "master-1");
    let mut snapshot = snapshot(3);
    snapshot.hosts[1].record.ignition_config_overrides = "{".to_owned();
    let failure = complete(folder.path(), &snapshot).map(|_| ()).unwrap_err();
    assert!(failure.reason.contains("worker-2"), "{failure}");
}

#[test]
fn single_nodes_install_in_place() {
    let folder = installed("bootstrap-in-place-for-live-iso.ign", "master-1");
    let mut snapshot = snapshot(1);
    snapshot.hosts.truncate(1);
    let outputs = complete(folder.path(), &snapshot).unwrap();
    let bootstrap = config(&outputs, "bootstrap.ign");
    assert!(
        bootstrap
            .find_file("/opt/openshift/assisted-install-bootstrap")
            .is_none()
    );
    let own = config(&outputs, "master-00000000-0000-0000-0000-000000000001.ign");
    assert!(own.ignition.config.merge.is_empty());
    assert_eq!(
        text(&own, "/etc/default/nodeip-configuration"),
        "KUBELET_NODEIP_HINT=192.168.10.0"
    );
}

#[test]
fn missing_outputs_are_named() {
    let folder = installed("bootstrap.ign", "master-1");
    fs::remove_file(folder.path().join("auth/kubeconfig")).unwrap();
    let failure = complete(folder.path(), &snapshot(3))
        .map(|_| ())
        .unwrap_err();
    assert!(failure.reason.contains("auth/kubeconfig"), "{failure}");
}

#[test]
fn dummy_outputs_have_the_same_files() {
    let folder = installed("bootstrap.ign", "master-1");
    let snapshot = snapshot(3);
    let real = complete(folder.path(), &snapshot).unwrap();
    let dummy = dummy::outputs(&snapshot, "{}").unwrap();
    assert!(real.files.keys().eq(dummy.files.keys()));
    let kubeconfig = String::from_utf8(dummy.files["kubeconfig-noingress"].clone()).unwrap();
    assert!(
        kubeconfig.contains("https://api.demo.lab.test:6443"),
        "{kubeconfig}"
    );
}
