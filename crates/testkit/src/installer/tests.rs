use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::state::parse;
use super::{CreateTarget, create};

const RELEASE: &str = "registry.lab:5000/ocp/release@sha256:0";

fn valid() -> Value {
    let host = |index: u8, role: &str| {
        json!({
            "name": format!("{role}-{index}"),
            "role": role,
            "bootMACAddress": format!("52:54:00:00:00:0{index}"),
            "bootMode": "UEFI",
            "hardwareProfile": "unknown",
            "bmc": { "address": "", "username": "", "password": "" },
        })
    };
    json!({
        "apiVersion": "v1",
        "baseDomain": "lab.test",
        "metadata": { "name": "demo" },
        "controlPlane": { "name": "master", "hyperthreading": "Enabled", "replicas": 3 },
        "compute": [{ "name": "worker", "hyperthreading": "Enabled", "replicas": 2 }],
        "networking": {
            "networkType": "OVNKubernetes",
            "clusterNetwork": [{ "cidr": "10.128.0.0/14", "hostPrefix": 23 }],
            "machineNetwork": [{ "cidr": "192.168.10.0/24" }],
            "serviceNetwork": ["172.30.0.0/16"],
        },
        "platform": { "baremetal": {
            "apiVIPs": ["192.168.10.2"],
            "ingressVIPs": ["192.168.10.3"],
            "provisioningNetwork": "Disabled",
            "hosts": [host(1, "master"), host(2, "master"), host(3, "master"), host(4, "worker"), host(5, "worker")],
        }},
        "pullSecret": json!({ "auths": { "registry.lab:5000": { "auth": "dXNlcjpwYXNz" } } }).to_string(),
        "sshKey": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl",
        "fips": false,
    })
}

fn single_node() -> Value {
    let mut config = valid();
    config["controlPlane"]["replicas"] = json!(1);
    config["compute"][0]["replicas"] = json!(0);
    config["platform"] = json!({ "none": {} });
    config["bootstrapInPlace"] = json!({ "installationDisk": "/dev/disk/by-id/wwn-1" });
    config
}

fn read(folder: &Path, name: &str) -> Value {
    serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap()
}

fn contents(ignition: &Value, path: &str) -> String {
    let files = ignition["storage"]["files"].as_array().unwrap();
    let file = files.iter().find(|file| file["path"] == path).expect(path);
    let source = file["contents"]["source"].as_str().unwrap();
    let (_, encoded) = source.split_once("base64,").unwrap();
    String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap()
}

#[test]
fn a_valid_config_passes() {
    parse(&valid().to_string()).unwrap();
    parse(&single_node().to_string()).unwrap();
}

/// JSON pointer, its invalid value, expected text of the failure.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("/apiVersion", r#""v2""#, "apiVersion"),
    ("/metadata/name", r#""Demo""#, "metadata.name"),
    ("/baseDomain", r#""lab..test""#, "baseDomain"),
    ("/surprise", "1", "surprise"),
    ("/networking/clusterNetwork/0/hostprefix", "1", "hostprefix"),
    ("/pullSecret", r#""{}""#, "pullSecret"),
    ("/pullSecret", r#""not json""#, "pullSecret"),
    (
        "/pullSecret",
        r#""{\"auths\":{\"r\":{\"auth\":\"!\"}}}""#,
        "pullSecret",
    ),
    ("/sshKey", r#""hello""#, "sshKey"),
    ("/controlPlane/replicas", "2", "controlPlane.replicas"),
    ("/controlPlane/replicas", "6", "controlPlane.replicas"),
    ("/controlPlane/name", r#""control""#, "controlPlane.name"),
    (
        "/controlPlane/hyperthreading",
        r#""enabled""#,
        "hyperthreading",
    ),
    ("/networking/clusterNetwork/0/hostPrefix", "8", "hostPrefix"),
    (
        "/networking/machineNetwork/0/cidr",
        r#""192.168.10.1/24""#,
        "machineNetwork[0]",
    ),
    ("/networking/machineNetwork", "[]", "machineNetwork"),
    (
        "/networking/serviceNetwork/0",
        r#""10.128.0.0/16""#,
        "overlap",
    ),
    ("/networking/networkType", r#""Token""#, "networkType"),
    ("/platform/baremetal/apiVIPs", r#"["10.0.0.1"]"#, "apiVIPs"),
    ("/platform/baremetal/apiVIPs", "[]", "apiVIPs"),
    (
        "/platform/baremetal/apiVIPs",
        r#"["192.168.10.3"]"#,
        "apiVIPs",
    ),
    (
        "/platform/baremetal/hosts/1/bootMACAddress",
        r#""52:54:00:00:00:01""#,
        "hosts[1].bootMACAddress",
    ),
    (
        "/platform/baremetal/hosts/1/name",
        r#""master-1""#,
        "hosts[1].name",
    ),
    ("/platform/baremetal/hosts/0/bootMode", r#""uefi""#, "uefi"),
    (
        "/platform/baremetal/provisioningNetwork",
        r#""Managed""#,
        "bmc.address",
    ),
    ("/compute/0/replicas", "3", "not enough hosts"),
    ("/platform/none", "{}", "platform"),
    ("/platform", "{}", "platform"),
    ("/additionalTrustBundle", r#""x""#, "additionalTrustBundle"),
    (
        "/imageDigestSources",
        r#"[{"source":"https://quay.io"}]"#,
        "imageDigestSources[0]",
    ),
    (
        "/bootstrapInPlace",
        r#"{"installationDisk":"/dev/sda"}"#,
        "bootstrap in place",
    ),
    ("/proxy", r#"{"httpProxy":"ftp://x"}"#, "proxy.httpProxy"),
];

fn put(config: &mut Value, pointer: &str, value: &str) {
    let (parent, member) = pointer.rsplit_once('/').unwrap();
    let value = serde_json::from_str(value).unwrap();
    match config.pointer_mut(parent).unwrap() {
        Value::Array(items) => items[member.parse::<usize>().unwrap()] = value,
        parent => parent[member] = value,
    }
}

#[test]
fn invalid_configs_fail_with_their_member() {
    for (pointer, value, expected) in MISTAKES {
        let mut config = valid();
        put(&mut config, pointer, value);
        let failure = parse(&config.to_string()).map(|_| ()).expect_err(pointer);
        assert!(
            failure.0.contains(expected) && failure.0.contains("install-config.yaml"),
            "{pointer}: {}",
            failure.0
        );
    }
}

#[test]
fn only_one_kind_of_image_sources() {
    let mut config = valid();
    let entry = r#"[{"source":"quay.io/a","mirrors":["lab/a"]}]"#;
    put(&mut config, "/imageDigestSources", entry);
    parse(&config.to_string()).unwrap();
    put(&mut config, "/imageContentSources", entry);
    let failure = parse(&config.to_string()).map(|_| ()).unwrap_err();
    assert!(failure.0.contains("imageContentSources"), "{}", failure.0);
}

#[test]
fn required_members_are_required() {
    for member in [
        "baseDomain",
        "metadata",
        "platform",
        "pullSecret",
        "controlPlane",
        "networking",
    ] {
        let mut config = valid();
        config.as_object_mut().unwrap().remove(member);
        let failure = parse(&config.to_string()).map(|_| ()).expect_err(member);
        assert!(failure.0.contains(member), "{}", failure.0);
    }
}

#[test]
fn the_two_verbs_consume_and_produce() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("install-config.yaml"), valid().to_string()).unwrap();
    let mut log = Vec::new();
    create(CreateTarget::Manifests, path, RELEASE, &mut log).unwrap();
    assert!(!path.join("install-config.yaml").exists());
    let extra = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: mine\n";
    fs::write(path.join("openshift/99-mine.yaml"), extra).unwrap();
    create(CreateTarget::IgnitionConfigs, path, RELEASE, &mut log).unwrap();
    assert!(!path.join("manifests").exists() && !path.join("openshift").exists());

    let bootstrap = read(path, "bootstrap.ign");
    let metadata = read(path, "metadata.json");
    assert_eq!(
        contents(&bootstrap, "/opt/openshift/openshift/99-mine.yaml"),
        extra
    );
    let overrides = contents(&bootstrap, "/opt/openshift/manifests/cvo-overrides.yaml");
    let overrides: Value = serde_yaml::from_str(&overrides).unwrap();
    assert_eq!(overrides["spec"]["clusterID"], metadata["clusterID"]);
    assert!(contents(&bootstrap, "/root/.docker/config.json").contains("registry.lab:5000"));
    let units: Vec<_> = bootstrap["systemd"]["units"]
        .as_array()
        .unwrap()
        .iter()
        .map(|unit| &unit["name"])
        .collect();
    assert!(
        units.contains(&&json!("bootkube.service"))
            && units.contains(&&json!("approve-csr.service"))
    );
    let master = read(path, "master.ign");
    assert_eq!(
        master["ignition"]["config"]["merge"][0]["source"],
        "https://api-int.demo.lab.test:22623/config/master"
    );
    assert_eq!(metadata["clusterName"], "demo");
    let password = fs::read_to_string(path.join("auth/kubeadmin-password")).unwrap();
    assert_eq!(
        password.split('-').map(str::len).collect::<Vec<_>>(),
        [5, 5, 5, 5]
    );
    let kubeconfig: Value =
        serde_yaml::from_str(&fs::read_to_string(path.join("auth/kubeconfig")).unwrap()).unwrap();
    assert_eq!(
        kubeconfig["clusters"][0]["cluster"]["server"],
        "https://api.demo.lab.test:6443"
    );
}

#[test]
fn a_single_node_gets_one_ignition() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("install-config.yaml"), single_node().to_string()).unwrap();
    create(
        CreateTarget::SingleNodeIgnitionConfig,
        path,
        RELEASE,
        &mut Vec::new(),
    )
    .unwrap();
    assert!(path.join("bootstrap-in-place-for-live-iso.ign").exists());
    assert!(!path.join("master.ign").exists());
}

#[test]
fn broken_manifests_fail() {
    for (name, content) in [
        ("openshift/a.yaml", "a: [1"),
        ("openshift/a.yaml", "apiVersion: v1"),
        ("manifests/a.yml.patch_1", "- op: add"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::write(path.join("install-config.yaml"), valid().to_string()).unwrap();
        create(CreateTarget::Manifests, path, RELEASE, &mut Vec::new()).unwrap();
        fs::write(path.join(name), content).unwrap();
        let failure = create(
            CreateTarget::IgnitionConfigs,
            path,
            RELEASE,
            &mut Vec::new(),
        )
        .unwrap_err();
        assert!(failure.0.contains(name), "{}", failure.0);
    }
}

#[test]
fn there_must_be_inputs_and_a_release() {
    let folder = tempfile::tempdir().unwrap();
    let failure = create(
        CreateTarget::Manifests,
        folder.path(),
        RELEASE,
        &mut Vec::new(),
    )
    .unwrap_err();
    assert!(failure.0.contains("install-config.yaml"), "{}", failure.0);
    let failure = create(CreateTarget::Manifests, folder.path(), "", &mut Vec::new()).unwrap_err();
    assert!(failure.0.contains("RELEASE_IMAGE"), "{}", failure.0);
}
