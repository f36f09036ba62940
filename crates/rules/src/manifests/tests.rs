use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::cluster::{DiskEncryption, DiskEncryptionMode, DiskEncryptionTarget};
use serde_json::Value;

use super::*;
use crate::samples;

fn names(manifests: &[SystemManifest]) -> Vec<&str> {
    manifests
        .iter()
        .map(|manifest| manifest.file_name.as_str())
        .collect()
}

#[test]
fn time_servers_of_cluster_infra_env_and_hosts_join() {
    let mut snapshot = samples::snapshot();
    snapshot.cluster.additional_ntp_source = "10.0.0.1".to_owned();
    snapshot.hosts[0].record.ntp_sources =
        r#"[{"source_name":"10.0.0.2","source_state":"synced"},{"source_name":"10.0.0.3","source_state":"unreachable"}]"#
            .to_owned();
    let mut infra_env = samples::infra_env();
    infra_env.additional_ntp_sources = "10.0.0.4,10.0.0.1".to_owned();
    let manifests = system(&snapshot, &[infra_env], &InstallationPolicy::default()).unwrap();
    assert_eq!(
        names(&manifests),
        [
            "50-masters-chrony-configuration.yaml",
            "50-workers-chrony-configuration.yaml",
            "50-masters-iscsi-nic-reapply.yaml",
            "50-workers-iscsi-nic-reapply.yaml",
        ]
    );
    insta::assert_snapshot!("chrony", manifests[0].content);
    assert_eq!(
        chrony_conf(&manifests[0]),
        "server 10.0.0.1 iburst\nserver 10.0.0.4 iburst\nserver 10.0.0.2 iburst\n\
         driftfile /var/lib/chrony/drift\nmakestep 1.0 3\nrtcsync\nlogdir /var/log/chrony\n"
    );
}

fn chrony_conf(manifest: &SystemManifest) -> String {
    let value: Value = serde_yaml::from_str(&manifest.content).unwrap();
    let source = value
        .pointer("/spec/config/storage/files/0/contents/source")
        .and_then(Value::as_str)
        .unwrap();
    let bytes = STANDARD.decode(source.rsplit(',').next().unwrap()).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn texts_survive_the_yaml() {
    let snapshot = samples::single_node();
    for manifest in system(&snapshot, &[], &InstallationPolicy::default()).unwrap() {
        if manifest.file_name.contains("patch") {
            continue;
        }
        let value: Value = serde_yaml::from_str(&manifest.content).unwrap();
        let unit = value
            .pointer("/spec/config/systemd/units/0/contents")
            .and_then(Value::as_str)
            .unwrap();
        assert!(unit.starts_with("[Unit]\n") && unit.ends_with("WantedBy=multi-user.target\n"));
    }
}

#[test]
fn the_replacing_list_excludes_other_time_servers() {
    let mut snapshot = samples::snapshot();
    snapshot.cluster.ntp_sources = "10.0.0.9".to_owned();
    snapshot.hosts[0].record.ntp_sources =
        r#"[{"source_name":"10.0.0.2","source_state":"synced"}]"#.to_owned();
    let manifests = system(&snapshot, &[], &InstallationPolicy::default()).unwrap();
    assert!(!chrony_conf(&manifests[0]).contains("10.0.0.2"));
}

#[test]
fn a_single_node_answers_its_own_names() {
    let snapshot = samples::single_node();
    let manifests = system(&snapshot, &[], &InstallationPolicy::default()).unwrap();
    assert_eq!(
        names(&manifests),
        [
            "50-masters-iscsi-nic-reapply.yaml",
            "50-workers-iscsi-nic-reapply.yaml",
            "dnsmasq-bootstrap-in-place.yaml",
            "cluster-scheduler-02-config.yml.patch_ai_set_masters_schedulable",
        ]
    );
    let policy = InstallationPolicy {
        single_node_dnsmasq: false,
        ..InstallationPolicy::default()
    };
    let manifests = system(&snapshot, &[], &policy).unwrap();
    assert!(!names(&manifests).contains(&"dnsmasq-bootstrap-in-place.yaml"));
}

#[test]
fn encryption_is_by_role_and_mode() {
    let mut snapshot = samples::snapshot();
    let with = |target, mode, servers: &str| DiskEncryption {
        enable_on: Some(target),
        mode: Some(mode),
        tang_servers: servers.to_owned(),
    };
    for (encryption, expected) in [
        (
            with(DiskEncryptionTarget::All, DiskEncryptionMode::Tpmv2, ""),
            vec![
                "99-openshift-master-tpm-encryption.yaml",
                "99-openshift-worker-tpm-encryption.yaml",
            ],
        ),
        (
            with(
                DiskEncryptionTarget::ArbitersWorkers,
                DiskEncryptionMode::Tang,
                r#"[{"URL":"http://t","Thumbprint":"x"}]"#,
            ),
            vec![
                "99-openshift-worker-tang-encryption.yaml",
                "99-openshift-arbiter-tang-encryption.yaml",
            ],
        ),
        (
            with(DiskEncryptionTarget::None, DiskEncryptionMode::Tpmv2, ""),
            vec![],
        ),
        (
            with(DiskEncryptionTarget::None, DiskEncryptionMode::Tang, ""),
            vec![],
        ),
    ] {
        snapshot.cluster.disk_encryption = Some(encryption);
        let manifests = encryption::manifests(&snapshot.cluster).unwrap();
        assert_eq!(names(&manifests), expected);
    }
}

#[test]
fn tang_servers_have_the_names_that_clevis_reads() {
    let mut snapshot = samples::snapshot();
    snapshot.cluster.disk_encryption = Some(DiskEncryption {
        enable_on: Some(DiskEncryptionTarget::Workers),
        mode: Some(DiskEncryptionMode::Tang),
        tang_servers: r#"[{"URL":"http://t","Thumbprint":"x"}]"#.to_owned(),
    });
    let manifests = encryption::manifests(&snapshot.cluster).unwrap();
    let config: serde_json::Value = serde_yaml::from_str(&manifests[0].content).unwrap();
    assert_eq!(
        config["spec"]["config"]["storage"]["luks"][0]["clevis"]["tang"][0],
        serde_json::json!({ "url": "http://t", "thumbprint": "x" })
    );
}

#[test]
fn groups_of_the_cluster_are_those_of_the_setting() {
    let policy = InstallationPolicy {
        api_group_map: r#"{"machineconfiguration.openshift.io": "machines.example.org"}"#
            .parse()
            .unwrap(),
        ..InstallationPolicy::default()
    };
    let manifest = |policy: &InstallationPolicy| {
        let mut manifests = system(&samples::snapshot(), &[], policy).unwrap();
        manifests.swap_remove(0).content
    };
    let expected = manifest(&InstallationPolicy::default()).replace(
        "machineconfiguration.openshift.io/",
        "machines.example.org/",
    );
    assert_eq!(manifest(&policy), expected);
    assert!(expected.contains("apiVersion: machines.example.org/v1"));
    assert!(
        expected.contains("machines.example.org/role: master"),
        "{expected}"
    );
}
