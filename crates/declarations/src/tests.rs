//! Files are read, printed and planned; the central law is that the exported files of any state change nothing.

use model::cluster::{LoadBalancerType, PlatformExternal, PlatformType};
use model::expected_hosts::{DiskHints, ExpectedHost};
use model::host::HostRole;
use model::infra_env::{HostStaticNetworkConfig, InfraEnv, MacInterfaceMapItem};
use model::network::MachineNetwork;
use model::versions::CpuArchitecture;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::*;
use crate::test_cluster::cluster;

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBAZmVgWVKcTnLZ4Wm4cdJxTfCzMSDPd6y9bUlkM7yvA demo";
const PULL_SECRET: &str = r#"{ "auths": {"r.example.com": {"auth": "dTpw"}} }"#;

const FILES: &str = r#"
apiVersion: v1
metadata:
  name: demo
  creationTimestamp: null
baseDomain: example.com
compute:
- name: worker
  replicas: 1
  architecture: amd64
  hyperthreading: Enabled
  platform: {}
controlPlane:
  name: master
  replicas: 3
  hyperthreading: Disabled
networking:
  networkType: OVNKubernetes
  machineNetwork:
  - cidr: 10.0.0.0/16
  clusterNetwork:
  - cidr: 172.20.0.0/14
    hostPrefix: 23
  serviceNetwork:
  - 172.30.0.0/16
platform:
  baremetal:
    apiVIPs: [10.0.255.1]
    ingressVIP: 10.0.255.2
fips: true
pullSecret: '{"auths":{"r.example.com":{"auth":"dTpw"}}}'
sshKey: |
  ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBAZmVgWVKcTnLZ4Wm4cdJxTfCzMSDPd6y9bUlkM7yvA demo
---
apiVersion: v1beta1
kind: AgentConfig
metadata:
  name: rack-1
additionalNTPSources: [10.0.0.1, ntp.example.com]
hosts:
- hostname: alpha
  role: master
  rootDeviceHints:
    deviceName: /dev/sda
  interfaces:
  - name: eth0
    macAddress: 52-54-00-AA-00-01
  networkConfig:
    interfaces:
    - name: eth0
      type: ethernet
- hostname: beta
  role: worker
  interfaces:
  - macAddress: 52:54:00:aa:00:02
"#;

/// The note about the missing masters of these files.
const FEWER: &str = "install-config.yaml: controlPlane.replicas 3 is more than the 1 hosts that may be masters: others join as they boot";

fn read(text: &str) -> Result<Declaration, model::Error> {
    let (name, text) = ("body".to_owned(), text.to_owned());
    parse(&[FileText { name, text }])
}

#[test]
fn both_files_are_read() {
    let found = read(FILES).unwrap();
    assert_eq!(
        (found.name.as_str(), found.control_plane),
        ("demo", Some(3))
    );
    assert_eq!(found.infra_env_name.as_deref(), Some("rack-1"));
    assert_eq!(found.hyperthreading, Some((false, true)));
    let platform = found.platform.as_ref().unwrap();
    assert_eq!(platform.r#type, PlatformType::Baremetal);
    assert_eq!(found.ingress_vips, Some(vec!["10.0.255.2".to_owned()]));
    assert_eq!(found.overrides["fips"], json!(true));
    let other = FILES.replace("- 172.30.0.0/16", "- 172.30.5.0/16");
    assert_eq!(
        read(&other).unwrap().service_networks,
        found.service_networks
    );
    assert_eq!(found.ssh_key.as_deref(), Some(KEY));
    let hosts = found.hosts.as_ref().unwrap();
    assert_eq!(hosts[0].interfaces[0].mac_address, "52:54:00:aa:00:01");
    assert_eq!(
        hosts[0]
            .static_network()
            .unwrap()
            .unwrap()
            .mac_interface_map
            .len(),
        1
    );
    assert!(hosts[1].static_network().is_none());
    let expected = hosts[0].expected(&[]);
    assert_eq!(expected.installation_disk.unwrap().device_name, "/dev/sda");
    // Documents are in any order.
    let (install, agent) = FILES.split_once("---").unwrap();
    assert_eq!(read(&format!("{agent}\n---\n{install}")).unwrap(), found);
}

/// The refusal of the files with one text replaced.
fn refusal(from: &str, to: &str) -> String {
    assert!(FILES.contains(from), "{from}");
    let found = read(&FILES.replacen(from, to, 1));
    found
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

/// A text of the files, another one in its place, and a part of the refusal.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "fips: true",
        "fibs: true",
        "install-config.yaml:30:1: fibs: is unknown: its name is fips",
    ),
    (
        "fips: true",
        "fips: 'maybe'",
        "install-config.yaml:30:7: fips: is text: write true or false",
    ),
    ("apiVersion: v1\n", "apiVersion: v1\nx: [\n", "body:"),
    (
        "additionalNTPSources: [10.0.0.1, ntp.example.com]",
        "minimalISOs: true",
        "agent-config.yaml:39:1: minimalISOs: is unknown: its name is minimalISO",
    ),
    (
        "52-54-00-AA-00-01",
        "52-54",
        "agent-config.yaml:47:17: hosts[0].interfaces[0].macAddress: \"52-54\" is not a MAC address",
    ),
    (
        "kind: AgentConfig",
        "kind: SiteConfig",
        "a document of kind SiteConfig belongs to zero-touch provisioning",
    ),
    (
        "apiVersion: v1\n",
        "apiVersion: v2\n",
        "install-config.yaml:2:13: apiVersion: \"v2\" is unknown: write v1",
    ),
    (
        "deviceName: /dev/sda",
        "wwnWithExtension: x",
        "rootDeviceHints.wwnWithExtension: is not read",
    ),
    (
        "deviceName: /dev/sda",
        "deviceName: sda",
        "rootDeviceHints.deviceName: \"sda\" is no device",
    ),
    (
        "hyperthreading: Disabled",
        "hyperthreading: Partial",
        "Enabled or Disabled",
    ),
    ("name: worker", "name: edge", "write worker"),
    (
        "  baremetal:\n",
        "  none: {}\n  baremetal:\n",
        "platform: should have one member",
    ),
    (
        "  baremetal:\n",
        "  aws:\n",
        "platform.aws: belongs to clouds",
    ),
    (
        "role: master",
        "role: main",
        "write master, arbiter or worker",
    ),
    (
        "networkType: OVNKubernetes",
        "machineNetworks: []",
        "its name is machineNetwork",
    ),
    (
        "cidr: 10.0.0.0/16",
        "cidr: 10.0.0.0/33",
        "networking.machineNetwork[0].cidr: \"10.0.0.0/33\" is not a CIDR",
    ),
    (
        "apiVIPs: [10.0.255.1]",
        "apiVIPs: 10.0.255.1",
        "platform.baremetal.apiVIPs: is text: write a list",
    ),
    (
        "replicas: 3",
        "replicas: '3'",
        "controlPlane.replicas: is text: write a whole number without quotes",
    ),
    (
        "ingressVIP: 10.0.255.2",
        "ingressVIP: 10.0.255",
        "platform.baremetal.ingressVIP: \"10.0.255\" is not an address",
    ),
    ("name: demo", "name: Demo", "metadata.name"),
    ("baseDomain: example.com", "baseDomain: -x", "baseDomain"),
    ("r.example.com\":{\"auth\":\"dTpw\"}", "", "pullSecret"),
    ("sshKey: |", "sshKey: |\n  no key", "sshKey"),
    (
        "hostname: beta",
        "hostname: alpha",
        "hosts[1].hostname: \"alpha\" is that of hosts[0].hostname, too",
    ),
    (
        "52:54:00:aa:00:02",
        "52:54:00:AA:00:01",
        "hosts[1].interfaces[0].macAddress: \"52:54:00:aa:00:01\" is that of hosts[0]",
    ),
    (
        "replicas: 1",
        "replicas: 0",
        "compute[0].replicas: is 0, and agent-config.yaml has 1 hosts of role worker",
    ),
    (
        "    - name: eth0\n      type: ethernet",
        "    - name: eno7\n      type: ethernet",
        "hosts[0].interfaces: names eth0, and networkConfig has other names",
    ),
    (
        "type: ethernet",
        "type: ethernet\n      mtu: much",
        "hosts[0].networkConfig.interfaces[0].mtu: is \"much\": write a number",
    ),
    (
        "apiVIPs: [10.0.255.1]",
        "apiVIPs: [10.0.255.1]\n    APIVIPS: []",
        "is present twice: the installer matches",
    ),
];

#[test]
fn refusals_name_path_line_and_column() {
    let mut wrong = Vec::new();
    for (from, to, expected) in REFUSED {
        let error = refusal(from, to);
        if !error.contains(expected) {
            wrong.push(format!("{to}: {error:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let (_, agent) = FILES.split_once("---").unwrap();
    assert!(read(agent).unwrap_err().to_string().contains("is missing"));
    assert!(read("").is_err());
}

#[test]
fn one_answer_has_all_refusals_in_order() {
    let files = FILES
        .replace("fips: true", "fibs: true")
        .replace("replicas: 3", "replicas: three")
        .replace("role: worker", "role: main");
    let error = read(&files).unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 3, "{error}");
    let files = [
        "agent-config.yaml:",
        "install-config.yaml:15:",
        "install-config.yaml:30:",
    ];
    assert!(
        lines
            .iter()
            .zip(files)
            .all(|(line, start)| line.starts_with(start)),
        "{error}"
    );
    let many = "- {x: 1}\n".repeat(200);
    let error = refusal("hosts:\n", &format!("hosts:\n{many}"));
    assert!(error.ends_with("more"), "{error}");
    assert_eq!(error.lines().count(), 101);
}

#[test]
fn files_of_sites_are_read() {
    // Each text, and a part of the notes.
    for (from, to, note) in [
        (
            "kind: AgentConfig",
            "rendezvousIP: 10.0.0.5",
            "agent-config.yaml: rendezvousIP: has no effect",
        ),
        (
            "kind: AgentConfig\nmetadata:\n  name: rack-1",
            "bootArtifactsBaseURL: http://x/",
            "bootArtifactsBaseURL: has no effect",
        ),
        (
            "metadata:\n  name: demo",
            "kind: InstallConfig\nmetadata:\n  name: demo\n  namespace: x",
            "",
        ),
        (
            "    apiVIPs: [10.0.255.1]\n    ingressVIP: 10.0.255.2",
            "    apiVips: [10.0.255.1]\n    ingressVips: [10.0.255.2]\n    provisioningNetwork: Disabled\n    hosts: null",
            "",
        ),
        (
            "  baremetal:\n",
            "  BareMetal:\n    provisioningNetworkCIDR: 172.22.0.0/24\n",
            "provisioningNetworkCIDR: has no effect without hosts",
        ),
        ("platform: {}", "platform: {baremetal: {}}", ""),
        (
            "fips: true",
            "fips: yes\ncredentialsMode: Manual\npublish: Internal",
            "credentialsMode: has no effect: openshift-install 4.6 and later refuse it",
        ),
        (
            "networkType: OVNKubernetes",
            "networkType: ovnkubernetes\n  clusterNetworkMTU: 8900",
            "a manifest of kind Network",
        ),
        (
            "fips: true",
            "fips: true\nproxy: null\narbiter:\n  name: arbiter\n  replicas: 1",
            "arbiter.replicas 1 is not enforced",
        ),
        (
            "  machineNetwork:\n  - cidr: 10.0.0.0/16\n",
            "  machineCIDR: 10.0.0.0/16\n",
            "",
        ),
        ("name: demo", "name: 12", ""),
        ("baseDomain: example.com", "baseDomain: example.com.", ""),
        ("apiVersion: v1\n", "apiVersion: v1beta4\n", ""),
    ] {
        assert!(FILES.contains(from), "{from}");
        let found = read(&FILES.replacen(from, to, 1));
        let found = found.unwrap_or_else(|error| panic!("{to}: {error}"));
        let cluster = cluster(3);
        let state = CurrentState {
            cluster: &cluster,
            infra_env: None,
            expected: None,
        };
        let mut notes = plan(&found, state, "{}").unwrap().notes;
        notes.retain(|one| one != FEWER);
        let notes = notes.join("\n");
        assert!(notes.contains(note), "{to}: {notes}");
        assert_eq!(notes.is_empty(), note.is_empty(), "{to}: {notes}");
    }
}

#[test]
fn members_become_records_and_overrides() {
    let with = |from: &str, to: &str| {
        assert!(FILES.contains(from), "{from}");
        read(&FILES.replacen(from, to, 1)).unwrap_or_else(|error| panic!("{to}: {error}"))
    };
    let found = with(
        "networkType: OVNKubernetes",
        "ovnKubernetesConfig: {ipv4: {internalJoinSubnet: 100.99.0.0/16}}",
    );
    assert_eq!(
        found.overrides["networking"],
        json!({"ovnKubernetesConfig": {"ipv4": {"internalJoinSubnet": "100.99.0.0/16"}}})
    );
    let found = with("networkType: OVNKubernetes", "networkType: Nuage");
    assert_eq!(
        found.overrides["networking"],
        json!({"networkType": "Nuage"})
    );
    let found = with(
        "  baremetal:\n",
        "  baremetal:\n    loadBalancer: {type: UserManaged}\n",
    );
    assert_eq!(found.load_balancer, Some(LoadBalancerType::UserManaged));
    let platform = &FILES[FILES.find("  baremetal:").unwrap()..FILES.find("fips").unwrap()];
    let found = with(
        platform,
        "  external: {platformName: oci, cloudControllerManager: External}\n",
    );
    let declared = serde_json::to_value(&found.platform).unwrap();
    assert_eq!(
        declared,
        json!({"type": "external", "external": {"platform_name": "oci", "cloud_controller_manager": "External"}})
    );
    let found = with(
        platform,
        "  vsphere:\n    apiVIP: 10.0.255.1\n    ingressVIP: 10.0.255.2\n    vcenters: [{server: v, password: hidden}]\n",
    );
    assert_eq!(found.api_vips, Some(vec!["10.0.255.1".to_owned()]));
    assert_eq!(
        found.overrides["platform"]["vsphere"]["vcenters"][0]["server"],
        "v"
    );
    assert!(!print(&found).unwrap().contains("hidden"));
    // Hosts of the platform count without those of an agent-config; BMCs count beside them, too.
    let hosts = "  baremetal:\n    provisioningNetwork: Managed\n    hosts:\n    - name: m0\n      role: master\n      bootMACAddress: 52:54:00:00:00:09\n      bmc: {address: 'redfish://x', username: u, password: hidden}\n";
    let (install, _) = FILES.split_once("---").unwrap();
    let found = read(&install.replace("  baremetal:\n", hosts)).unwrap();
    assert_eq!(
        found.hosts.as_ref().unwrap()[0].interfaces[0].mac_address,
        "52:54:00:00:00:09"
    );
    let baremetal = &found.overrides["platform"]["baremetal"];
    assert_eq!(baremetal["hosts"][0]["bmc"]["address"], "redfish://x");
    assert_eq!(baremetal["provisioningNetwork"], "Managed");
    let found = with("  baremetal:\n", hosts);
    assert_eq!(found.hosts.as_ref().unwrap().len(), 2);
    assert_eq!(
        found.overrides["platform"]["baremetal"]["hosts"][0]["name"],
        "m0"
    );
    let cluster = cluster(3);
    let infra_env = InfraEnv {
        name: "rack-1".to_owned(),
        ..InfraEnv::default()
    };
    let shown = plan(&found, state(&cluster, &infra_env, None), "{}").unwrap();
    assert!(
        !format!("{:?}", shown.changes).contains("hidden"),
        "{shown:?}"
    );
    // The disk of a single node is that of its host.
    let single =
        "controlPlane: {replicas: 1}\nbootstrapInPlace: {installationDisk: /dev/disk/by-id/x}\n";
    let text = format!(
        "apiVersion: v1\nmetadata: {{name: sno}}\n{single}---\napiVersion: v1beta1\nhosts: [{{hostname: a}}]\n"
    );
    let host = &read(&text).unwrap().hosts.unwrap()[0];
    assert_eq!(
        serde_json::to_value(host).unwrap()["rootDeviceHints"]["deviceName"],
        "/dev/disk/by-id/x"
    );
}

/// BMCs of another platform, and settings of single items of a list.
#[test]
fn members_that_cannot_override_do_not() {
    let start = FILES.find("  baremetal:").unwrap();
    let platform = &FILES[start..FILES.find("fips").unwrap()];
    let agent = "- hostname: alpha\n  bmc: {address: 'redfish://x'}";
    let none = FILES.replace(platform, "  none: {}\n");
    let found = read(&none.replace("- hostname: alpha", agent)).unwrap();
    assert_eq!(found.overrides.get("platform"), None);
    assert!(found.notes.iter().any(|note| note.contains("bmc")));
    let error = refusal(
        "- name: worker\n",
        "- name: worker\n  diskSetup: [{type: swap}]\n",
    );
    assert!(error.contains("compute[0].diskSetup"), "{error}");
}

fn state<'a>(
    cluster: &'a model::cluster::Cluster,
    infra_env: &'a InfraEnv,
    expected: Option<&'a [ExpectedHost]>,
) -> CurrentState<'a> {
    CurrentState {
        cluster,
        infra_env: Some(infra_env),
        expected,
    }
}

#[test]
fn plans_have_the_members_that_differ() {
    let cluster = cluster(3);
    let infra_env = InfraEnv {
        name: "rack-1".to_owned(),
        ..InfraEnv::default()
    };
    let known = [ExpectedHost {
        serial_number: "S1".to_owned(),
        name: "alpha".to_owned(),
        ..ExpectedHost::default()
    }];
    let wanted = read(FILES).unwrap();
    let found = plan(
        &wanted,
        state(&cluster, &infra_env, Some(&known)),
        PULL_SECRET,
    )
    .unwrap();
    let fields: Vec<&str> = found.changes.iter().map(|one| one.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "install-config.yaml: controlPlane.hyperthreading, compute[0].hyperthreading",
            "install-config.yaml: networking.machineNetwork",
            "install-config.yaml: sshKey",
            "install-config.yaml: fips",
            "agent-config.yaml: additionalNTPSources",
            "agent-config.yaml: hosts",
        ]
    );
    let update = found.cluster.unwrap();
    assert_eq!(
        update.additional_ntp_source.as_deref(),
        Some("10.0.0.1,ntp.example.com")
    );
    assert_eq!(
        (update.api_vips, update.pull_secret),
        (None, None),
        "they agree"
    );
    assert_eq!(found.overrides.as_deref(), Some(r#"{"fips":true}"#));
    let expected = found.expected.unwrap();
    assert_eq!(expected[0].serial_number, "S1", "kept for the same machine");
    assert_eq!(expected[1].name, "beta");
    let networks = found.infra_env.unwrap().static_network_config.unwrap();
    assert_eq!(networks.len(), 1);
    assert_eq!(found.notes, [FEWER]);
}

#[test]
fn the_embedded_agent_changes_only_when_declared_otherwise() {
    let cluster = cluster(3);
    let wanted = |member: Option<bool>| Declaration {
        embedded_agent: member,
        ..declare(state(&cluster, &InfraEnv::default(), None))
    };
    for (stored, declared, expected) in [
        (false, Some(true), Some(true)),
        (true, Some(false), Some(false)),
        (false, Some(false), None),
        (true, Some(true), None),
        (false, None, None),
        (true, None, None),
    ] {
        let infra_env = InfraEnv {
            embedded_agent: stored,
            ..InfraEnv::default()
        };
        let found = plan(&wanted(declared), state(&cluster, &infra_env, None), "{}").unwrap();
        let shown: Vec<_> = found
            .changes
            .iter()
            .map(|one| (one.field.as_str(), one.before.clone(), one.after.clone()))
            .collect();
        let change = expected.map(|after| {
            let field = "agent-config.yaml: embeddedAgent";
            (field, stored.to_string(), after.to_string())
        });
        assert_eq!(shown, Vec::from_iter(change));
        let update = found.infra_env.and_then(|update| update.embedded_agent);
        assert_eq!(update, expected, "{stored} {declared:?}");
    }
}

#[test]
fn only_an_embedded_agent_is_exported() {
    let cluster = cluster(3);
    for embedded_agent in [false, true] {
        let infra_env = InfraEnv {
            embedded_agent,
            ..InfraEnv::default()
        };
        let text = print(&declare(state(&cluster, &infra_env, None))).unwrap();
        assert_eq!(text.contains("embeddedAgent: true\n"), embedded_agent);
        assert_eq!(text.contains("embeddedAgent"), embedded_agent, "{text}");
    }
    let member = "kind: AgentConfig\nembeddedAgent: true";
    let found = read(&FILES.replace("kind: AgentConfig", member)).unwrap();
    assert_eq!(found.embedded_agent, Some(true));
    let new = infra_env_params(&found, None, "4.18.7").unwrap();
    assert_eq!(new.embedded_agent, Some(true));
}

#[test]
fn unenforced_replicas_are_noted_and_fixed_members_refused() {
    let cluster = cluster(3);
    let infra_env = InfraEnv {
        name: "rack-2".to_owned(),
        ..InfraEnv::default()
    };
    let mut wanted = read(FILES).unwrap();
    let error = plan(&wanted, state(&cluster, &infra_env, None), "").unwrap_err();
    assert!(error.to_string().contains("metadata.name"), "{error}");
    wanted.infra_env_name = None;
    wanted.workers = Some(7);
    let found = plan(&wanted, state(&cluster, &infra_env, None), "").unwrap();
    assert!(found.notes[1].contains("replicas 7"), "{:?}", found.notes);
}

#[test]
fn secrets_are_neither_exported_nor_shown() {
    let cluster = cluster(3);
    let infra_env = InfraEnv::default();
    let mut wanted = declare(state(&cluster, &infra_env, None));
    assert_eq!(wanted.pull_secret, None);
    wanted.pull_secret = Some(r#"{"auths":{"x":{"auth":"hidden"}}}"#.to_owned());
    let found = plan(&wanted, state(&cluster, &infra_env, None), "{}").unwrap();
    assert_eq!(found.changes.len(), 1);
    assert!(!format!("{:?}", found.changes).contains("hidden"));
}

fn mac(number: u8) -> String {
    format!("52:54:00:00:00:{number:02x}")
}

prop_compose! {
    fn expected()(
        macs in prop::collection::btree_set(any::<u8>(), 0..8),
        names in prop::collection::vec(any::<bool>(), 8),
        roles in prop::collection::vec(proptest::option::of(select(vec![HostRole::Arbiter, HostRole::Worker])), 8),
        size in 0_i64..3,
    ) -> Vec<ExpectedHost> {
        macs.into_iter().zip(names).zip(roles).map(|((number, name), role)| ExpectedHost {
            mac_addresses: vec![mac(number)],
            name: if name { format!("host-{number}") } else { String::new() },
            role,
            serial_number: if number % 2 == 0 { format!("S{number}") } else { String::new() },
            installation_disk: (size > 0).then(|| DiskHints {
                min_size_gigabytes: size,
                ..DiskHints::default()
            }),
        }).collect()
    }
}

prop_compose! {
    fn records()(
        expected in proptest::option::of(expected()),
        networks in prop::collection::btree_set(any::<u8>(), 0..4),
        texts in prop::array::uniform4(prop_oneof![Just(String::new()), "[a-z]{1,20}"]),
        masters in select(vec![3_i64, 4, 5]),
        hyperthreading in proptest::option::of(select(model::cluster::Hyperthreading::ALL)),
        embedded_agent in any::<bool>(),
        machine in prop::collection::vec(any::<[u8; 2]>(), 0..2),
        overrides in select(vec!["", r#"{"fips":true}"#, r#"{"fips":false,"networking":{"networkType":"Calico"},"platform":{"none":{}}}"#,
            r#"{"networking":{"networkType":"Nuage","clusterNetworkMTU":1},"platform":{"baremetal":{"bmcVerifyCA":"x"}}}"#,
            r#"{"capabilities":{"baselineCapabilitySet":"v4.18"},"publish":"External"}"#]),
    ) -> (model::cluster::Cluster, InfraEnv, Option<Vec<ExpectedHost>>) {
        let mut cluster = cluster(masters);
        let [proxy, no_proxy, ntp, name] = texts;
        if !proxy.is_empty() {
            cluster.http_proxy = format!("http://{proxy}:3128");
        }
        cluster.no_proxy = no_proxy;
        if !ntp.is_empty() {
            cluster.additional_ntp_source = format!("{ntp}.example.com,10.0.0.1");
        }
        cluster.hyperthreading = hyperthreading;
        cluster.platform.as_mut().unwrap().external = Some(PlatformExternal::default());
        cluster.cpu_architecture = Some(CpuArchitecture::X86_64);
        cluster.install_config_overrides = overrides.to_owned();
        if !machine.is_empty() {
            // Virtual addresses are inside of them.
            cluster.api_vips.clear();
            cluster.ingress_vips.clear();
        }
        cluster.machine_networks = machine.iter().map(|[a, b]| MachineNetwork {
            cidr: format!("10.{a}.{b}.0/24"),
            ..MachineNetwork::default()
        }).collect();
        let networks: Vec<_> = networks.into_iter().map(|number| HostStaticNetworkConfig {
            network_yaml: format!("interfaces:\n- name: eth0\n  mtu: {number}\n"),
            mac_interface_map: vec![MacInterfaceMapItem {
                mac_address: mac(number).to_ascii_uppercase(),
                logical_nic_name: "eth0".to_owned(),
            }],
        }).collect();
        let infra_env = InfraEnv {
            name: format!("rack{name}"),
            static_network_config: if networks.is_empty() {
                String::new()
            } else {
                serde_json::to_string(&networks).unwrap()
            },
            embedded_agent,
            ..InfraEnv::default()
        };
        (cluster, infra_env, expected)
    }
}

proptest! {
    #[test]
    fn exported_files_change_nothing((cluster, infra_env, expected) in records()) {
        let state = state(&cluster, &infra_env, expected.as_deref());
        let known = declare(state);
        let text = print(&known).unwrap();
        let again = read(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        let again = Declaration { notes: Vec::new(), ..again };
        prop_assert_eq!(&again, &known, "{}", text);
        let found = plan(&again, state, "{}").unwrap();
        prop_assert_eq!(found.changes, []);
        prop_assert_eq!(found.cluster, None);
        prop_assert_eq!(found.infra_env, None);
        prop_assert_eq!(found.expected, None);
        prop_assert_eq!(found.overrides, None);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = read(&text);
    }
}
