//! Files are read, printed and planned; the central law is that the exported files of any state change nothing.

use model::expected_hosts::{DiskHints, ExpectedHost};
use model::host::HostRole;
use model::infra_env::{HostStaticNetworkConfig, InfraEnv, MacInterfaceMapItem};
use model::network::MachineNetwork;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::*;
use crate::fixtures;

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
pullSecret: '{"auths":{}}'
sshKey: |
  ssh-ed25519 AAAA
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

#[test]
fn both_files_are_read() {
    let read = parse(FILES).unwrap();
    assert_eq!((read.name.as_str(), read.control_plane), ("demo", Some(3)));
    assert_eq!(read.infra_env_name.as_deref(), Some("rack-1"));
    assert_eq!(read.hyperthreading, Some((false, true)));
    assert_eq!(read.user_managed, Some(false));
    assert_eq!(read.ingress_vips, Some(vec!["10.0.255.2".to_owned()]));
    assert_eq!(read.overrides["fips"], json!(true));
    let other = FILES.replace("- 172.30.0.0/16", "- 172.30.5.0/16");
    assert_eq!(
        parse(&other).unwrap().service_networks,
        read.service_networks
    );
    assert_eq!(read.ssh_key.as_deref(), Some("ssh-ed25519 AAAA"));
    let hosts = read.hosts.as_ref().unwrap();
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
    assert_eq!(parse(&format!("{agent}\n---\n{install}")).unwrap(), read);
}

#[test]
fn members_are_honoured_or_refused() {
    let with = |file: &str, member: &str| match file {
        "install" => FILES.replace("fips: true", member),
        _ => FILES.replace("additionalNTPSources: [10.0.0.1, ntp.example.com]", member),
    };
    for (file, member, part) in [
        (
            "install",
            "credentialsMode: Manual",
            "credentialsMode: belongs to clouds",
        ),
        (
            "install",
            "bootstrapInPlace: {installationDisk: /dev/sda}",
            "controlPlane.replicas 1",
        ),
        ("install", "fibs: true", "unknown field `fibs`"),
        ("install", "apiVersion: v1\nx: 1", "is not YAML"),
        ("agent", "rendezvousIP: 10.0.0.1", "here this service does"),
        ("agent", "ipxeBaseURL: http://x", "image service"),
        ("agent", "minimalISOs: true", "unknown field `minimalISOs`"),
    ] {
        let error = parse(&with(file, member)).unwrap_err().to_string();
        assert!(error.contains(part), "{member}: {error}");
    }
    for (from, to, part) in [
        ("52-54-00-AA-00-01", "52-54", "hosts[0].interfaces"),
        ("kind: AgentConfig", "kind: Other", "is present twice"),
        ("apiVersion: v1\n", "apiVersion: v2\n", "write v1"),
        (
            "deviceName: /dev/sda",
            "wwnWithExtension: x",
            "wwnWithExtension",
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
            "either none or baremetal",
        ),
        ("role: master", "role: main", "should be one of"),
    ] {
        assert!(FILES.contains(from), "{from}");
        let error = parse(&FILES.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(part), "{to}: {error}");
    }
    let (_, agent) = FILES.split_once("---").unwrap();
    assert!(parse(agent).unwrap_err().to_string().contains("is missing"));
    assert!(parse("").is_err());
}

/// Every refused member is refused by its path in its file.
#[test]
fn refused_members_name_themselves() {
    let tables = [
        ("apiVersion: v1\n", refused::INSTALL_CONFIG),
        ("kind: AgentConfig\n", refused::AGENT_CONFIG),
    ];
    for (head, table) in tables {
        for (path, reason) in table {
            let mut yaml = head.to_owned();
            for (depth, member) in path.split('.').enumerate() {
                let indent = " ".repeat(depth);
                yaml.extend([indent.as_str(), member, ":\n"]);
            }
            let yaml = format!("{} x\n", yaml.trim_end());
            let mut text = format!("apiVersion: v1\nmetadata: {{name: demo}}\n---\n{yaml}");
            if head.starts_with("api") {
                text = yaml;
            }
            let error = parse(&text).unwrap_err().to_string();
            assert!(
                error.contains(path) && error.contains(reason),
                "{path}: {error}"
            );
        }
    }
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
    let cluster = fixtures::cluster(3);
    let infra_env = InfraEnv {
        name: "rack-1".to_owned(),
        ..InfraEnv::default()
    };
    let known = [ExpectedHost {
        serial_number: "S1".to_owned(),
        name: "alpha".to_owned(),
        ..ExpectedHost::default()
    }];
    let wanted = parse(FILES).unwrap();
    let found = plan(
        &wanted,
        state(&cluster, &infra_env, Some(&known)),
        r#"{ "auths": {} }"#,
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
    assert_eq!(found.notes, [] as [String; 0]);
}

#[test]
fn the_embedded_agent_changes_only_when_declared_otherwise() {
    let cluster = fixtures::cluster(3);
    let wanted = |member: Option<bool>| Declaration {
        embedded_agent: member,
        ..declare(state(&cluster, &InfraEnv::default(), None)).unwrap()
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
    let cluster = fixtures::cluster(3);
    for embedded_agent in [false, true] {
        let infra_env = InfraEnv {
            embedded_agent,
            ..InfraEnv::default()
        };
        let text = print(&declare(state(&cluster, &infra_env, None)).unwrap()).unwrap();
        assert_eq!(text.contains("embeddedAgent: true\n"), embedded_agent);
        assert_eq!(text.contains("embeddedAgent"), embedded_agent, "{text}");
    }
    let member = "kind: AgentConfig\nembeddedAgent: true";
    let read = parse(&FILES.replace("kind: AgentConfig", member)).unwrap();
    assert_eq!(read.embedded_agent, Some(true));
    let new = infra_env_params(&read, None, "4.18.7").unwrap();
    assert_eq!(new.embedded_agent, Some(true));
}

#[test]
fn unenforced_replicas_are_noted_and_fixed_members_refused() {
    let cluster = fixtures::cluster(3);
    let infra_env = InfraEnv {
        name: "rack-2".to_owned(),
        ..InfraEnv::default()
    };
    let mut wanted = parse(FILES).unwrap();
    let error = plan(&wanted, state(&cluster, &infra_env, None), "").unwrap_err();
    assert!(error.to_string().contains("metadata.name"), "{error}");
    wanted.infra_env_name = None;
    wanted.workers = Some(7);
    let found = plan(&wanted, state(&cluster, &infra_env, None), "").unwrap();
    assert!(found.notes[0].contains("replicas 7"), "{:?}", found.notes);
}

#[test]
fn secrets_are_neither_exported_nor_shown() {
    let cluster = fixtures::cluster(3);
    let infra_env = InfraEnv::default();
    let mut wanted = declare(state(&cluster, &infra_env, None)).unwrap();
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
        names in prop::collection::vec(prop_oneof![Just(String::new()), "[a-z]{1,8}"], 8),
        roles in prop::collection::vec(proptest::option::of(select(vec![HostRole::Master, HostRole::Worker])), 8),
        size in 0_i64..3,
    ) -> Vec<ExpectedHost> {
        macs.into_iter().zip(names).zip(roles).map(|((number, name), role)| ExpectedHost {
            mac_addresses: vec![mac(number)],
            name,
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
        texts in prop::array::uniform4(prop_oneof![Just(String::new()), "[a-z0-9.:/ #'\"-]{1,20}"]),
        masters in select(vec![1_i64, 3, 5]),
        hyperthreading in proptest::option::of(select(model::cluster::Hyperthreading::ALL)),
        embedded_agent in any::<bool>(),
        machine in prop::collection::vec(any::<[u8; 2]>(), 0..3),
        overrides in select(vec!["", r#"{"fips":true}"#, r#"{"fips":false,"networking":{"x":1}}"#,
            r#"{"capabilities":{"baselineCapabilitySet":"None"},"publish":"External"}"#]),
    ) -> (model::cluster::Cluster, InfraEnv, Option<Vec<ExpectedHost>>) {
        let mut cluster = fixtures::cluster(masters);
        let [proxy, no_proxy, ntp, name] = texts;
        cluster.http_proxy = proxy;
        cluster.no_proxy = no_proxy;
        cluster.additional_ntp_source = ntp.replace(' ', ",");
        cluster.hyperthreading = hyperthreading;
        cluster.cpu_architecture = Some(CpuArchitecture::X86_64);
        cluster.install_config_overrides = overrides.to_owned();
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
        let known = declare(state).unwrap();
        let text = print(&known).unwrap();
        let read = parse(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(&read, &known, "{}", text);
        let found = plan(&read, state, "{}").unwrap();
        prop_assert_eq!(found.changes, []);
        prop_assert_eq!(found.cluster, None);
        prop_assert_eq!(found.infra_env, None);
        prop_assert_eq!(found.expected, None);
        prop_assert_eq!(found.overrides, None);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = parse(&text);
    }
}
