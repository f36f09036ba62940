use serde_json::{Value, json};

use super::*;
use crate::Snapshot;
use crate::samples;

fn config(
    snapshot: &Snapshot,
    mirrors: &[ImageMirror],
    bundles: &[String],
) -> Result<Value, model::Error> {
    let ctx = InstallConfigContext {
        pull_secret: samples::PULL_SECRET,
        mirrors,
        trust_bundles: bundles,
    };
    build(snapshot, &ctx)
}

fn mirror() -> ImageMirror {
    ImageMirror {
        source: "quay.example.org/openshift/release".to_owned(),
        mirrors: vec!["registry.example.com:5000/openshift/release".to_owned()],
    }
}

#[test]
fn three_masters_and_two_workers() {
    let mut snapshot = samples::snapshot();
    snapshot.cluster.http_proxy = "http://proxy:3128".to_owned();
    snapshot.cluster.no_proxy = "a.example.com".to_owned();
    let config = config(&snapshot, &[mirror()], &["CA 1\n".to_owned()]).unwrap();
    insta::assert_json_snapshot!("baremetal", config);
}

#[test]
fn a_single_node() {
    let config = config(&samples::single_node(), &[], &[]).unwrap();
    insta::assert_json_snapshot!("single_node", config);
}

#[test]
fn a_single_node_has_no_disk_before_its_host_is_known() {
    let mut snapshot = samples::single_node();
    snapshot.hosts = Vec::new().into();
    let config = config(&snapshot, &[], &[]).unwrap();
    assert!(config.get("bootstrapInPlace").is_none());
    assert_eq!(config["controlPlane"]["replicas"], 1);
}

#[test]
fn another_stream_is_a_preview_before_5() {
    let mut snapshot = samples::snapshot();
    for (version, stream, expected) in [
        ("4.22.1", "", [Value::Null, Value::Null]),
        (
            "4.22.1",
            "rhel-10",
            [json!("rhel-10"), json!("TechPreviewNoUpgrade")],
        ),
        ("5.0.0", "rhel-9", [json!("rhel-9"), Value::Null]),
    ] {
        snapshot.cluster.openshift_version = version.to_owned();
        snapshot.cluster.os_stream = stream.to_owned();
        let config = config(&snapshot, &[], &[]).unwrap();
        let found = ["osImageStream", "featureSet"].map(|name| config[name].clone());
        assert_eq!(found, expected, "{version} {stream}");
    }
}

#[test]
fn older_versions_use_older_names() {
    let mut snapshot = samples::snapshot();
    snapshot.cluster.openshift_version = "4.11.9".to_owned();
    let config = config(&snapshot, &[mirror()], &[]).unwrap();
    assert!(config.get("imageContentSources").is_some());
    assert_eq!(config["platform"]["baremetal"]["apiVIP"], "192.168.10.100");
}

#[test]
fn no_proxy_wildcard_stands_alone() {
    let mut snapshot = samples::snapshot();
    snapshot.cluster.https_proxy = "http://proxy:3128".to_owned();
    snapshot.cluster.no_proxy = "a.example.com,*".to_owned();
    let config = config(&snapshot, &[], &[]).unwrap();
    assert_eq!(
        config["proxy"],
        json!({ "httpsProxy": "http://proxy:3128", "noProxy": "*" })
    );
}

#[test]
fn overrides_are_merged() {
    let mut snapshot = samples::snapshot();
    let bundle = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----";
    snapshot.cluster.install_config_overrides = json!({
        "Networking": { "NetworkType": "Calico" },
        "fips": true,
        "additionalTrustBundle": bundle,
        "imageDigestSources": [],
    })
    .to_string();
    let config = config(&snapshot, &[mirror()], &["CA 1".to_owned()]).unwrap();
    assert_eq!(config["networking"]["networkType"], "Calico");
    assert_eq!(
        config["networking"]["serviceNetwork"],
        json!(["172.30.0.0/16"])
    );
    assert_eq!(config["fips"], true);
    assert_eq!(config["imageDigestSources"], json!([]));
    assert_eq!(config["additionalTrustBundle"], format!("CA 1\n{bundle}"));
    snapshot.cluster.install_config_overrides = "{\"x\":1}".to_owned();
    assert!(
        build(
            &snapshot,
            &InstallConfigContext {
                pull_secret: "",
                mirrors: &[],
                trust_bundles: &[]
            }
        )
        .is_err()
    );
}

#[test]
fn missing_members_of_the_installer_are_refused() {
    let mut snapshot = samples::snapshot();
    snapshot.cluster.base_dns_domain.clear();
    let error = config(&snapshot, &[], &[]).unwrap_err().to_string();
    assert!(error.starts_with("base_dns_domain:"), "{error}");
    let mut node = samples::single_node();
    node.hosts[0].record.installation_disk_id.clear();
    node.hosts[0].record.installation_disk_path.clear();
    let error = config(&node, &[], &[]).unwrap_err().to_string();
    assert!(error.starts_with("installation_disk_id:"), "{error}");
}

#[test]
fn hyperthreading_is_by_role() {
    let mut snapshot = samples::snapshot();
    snapshot.cluster.hyperthreading = Some(model::cluster::Hyperthreading::Workers);
    let config = config(&snapshot, &[], &[]).unwrap();
    assert_eq!(config["controlPlane"]["hyperthreading"], "Disabled");
    assert_eq!(config["compute"][0]["hyperthreading"], "Enabled");
}

#[test]
fn other_platforms_have_their_member() {
    use model::cluster::PlatformType;
    for (kind, member) in [
        (PlatformType::Vsphere, "vsphere"),
        (PlatformType::Nutanix, "nutanix"),
        (PlatformType::None, "none"),
        (PlatformType::External, "external"),
    ] {
        let mut snapshot = samples::snapshot();
        snapshot.cluster.platform.as_mut().unwrap().r#type = kind;
        let config = config(&snapshot, &[], &[]).unwrap();
        assert!(config["platform"].get(member).is_some(), "{member}");
    }
}

#[test]
fn overrides_are_stored_only_while_changes_are_accepted() {
    let mut snapshot = samples::snapshot();
    update(&mut snapshot, r#"{"fips":true}"#).unwrap();
    assert_eq!(
        snapshot.cluster.install_config_overrides,
        r#"{"fips":true}"#
    );
    assert!(update(&mut snapshot, r#"{"nope":true}"#).is_err());
    snapshot.cluster.status = model::cluster::ClusterStatus::Installing;
    assert!(matches!(
        update(&mut snapshot, "{}"),
        Err(model::Error::Conflict { .. })
    ));
}
