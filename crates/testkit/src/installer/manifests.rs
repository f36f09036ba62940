//! Manifests: written by `create manifests`, consumed by `create ignition-configs`.

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::check::replicas;
use super::config::{BaremetalHost, BootMode, InstallConfig};
use super::files::{InstallerFailure, fail, file_failure, write, yaml};
use super::state::InstallerState;

/// The two folders, which are consumed together.
pub(super) const FOLDERS: [&str; 2] = ["manifests", "openshift"];

/// A manifest as it goes into the bootstrap's ignition.
pub(super) struct InstallManifest {
    /// `manifests/cvo-overrides.yaml`.
    pub(super) path: String,
    pub(super) content: Vec<u8>,
}

/// Writes the manifests of `state` into `folder`.
pub(super) fn write_all(folder: &Path, state: &InstallerState) -> Result<(), InstallerFailure> {
    let config = &state.install_config;
    let mut all = cluster_manifests(state)?;
    if let Some(baremetal) = &config.platform.baremetal {
        for (index, host) in baremetal.hosts.iter().enumerate() {
            all.push((
                format!("openshift/99_openshift-cluster-api_hosts-{index}.yaml"),
                host_manifest(host),
            ));
        }
        all.push((
            "openshift/99_baremetal-provisioning-config.yaml".to_owned(),
            json!({
                "apiVersion": "metal3.io/v1alpha1",
                "kind": "Provisioning",
                "metadata": { "name": "provisioning-configuration" },
                "spec": { "provisioningNetwork": baremetal.provisioning_network },
            }),
        ));
    }
    for (path, value) in all {
        write(folder, &path, yaml(&value)?.as_bytes())?;
    }
    Ok(())
}

fn cluster_manifests(state: &InstallerState) -> Result<Vec<(String, Value)>, InstallerFailure> {
    let config = &state.install_config;
    let identity = &state.identity;
    let mut all = vec![
        ("manifests/cvo-overrides.yaml", cluster_version(state)),
        (
            "manifests/cluster-config.yaml",
            config_map(
                "cluster-config-v1",
                "kube-system",
                ("install-config", &without_secrets(config)?),
            ),
        ),
        (
            "manifests/cluster-infrastructure-02-config.yml",
            infrastructure(state),
        ),
        ("manifests/cluster-network-02-config.yml", network(config)),
        (
            "manifests/cluster-scheduler-02-config.yml",
            scheduler(config),
        ),
        (
            "manifests/kube-system-configmap-root-ca.yaml",
            config_map("root-ca", "kube-system", ("ca.crt", &identity.root_ca)),
        ),
        (
            "manifests/openshift-config-secret-pull-secret.yaml",
            secret(
                "pull-secret",
                "openshift-config",
                (".dockerconfigjson", &config.pull_secret),
            ),
        ),
        (
            "openshift/99_kubeadmin-password-secret.yaml",
            secret(
                "kubeadmin",
                "kube-system",
                ("kubeadmin", &identity.kubeadmin_password),
            ),
        ),
    ];
    let bundle = &config.additional_trust_bundle;
    if !bundle.is_empty() {
        all.push((
            "manifests/user-ca-bundle-config.yaml",
            config_map(
                "user-ca-bundle",
                "openshift-config",
                ("ca-bundle.crt", bundle),
            ),
        ));
    }
    if !config.image_digest_sources.is_empty() {
        all.push((
            "manifests/image-digest-mirror-set.yaml",
            digest_mirrors(config),
        ));
    }
    Ok(all
        .into_iter()
        .map(|(path, value)| (path.to_owned(), value))
        .collect())
}

fn config_map(name: &str, namespace: &str, (key, text): (&str, &str)) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": namespace },
        "data": { key: text },
    })
}

fn secret(name: &str, namespace: &str, (key, text): (&str, &str)) -> Value {
    let kind = match key {
        ".dockerconfigjson" => "kubernetes.io/dockerconfigjson",
        _ => "Opaque",
    };
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": kind,
        "metadata": { "name": name, "namespace": namespace },
        "data": { key: STANDARD.encode(text) },
    })
}

/// The install-config as the cluster keeps it.
fn without_secrets(config: &InstallConfig) -> Result<String, InstallerFailure> {
    let mut value = serde_json::to_value(config).map_err(|error| {
        InstallerFailure(format!("failed to print the install config: {error}"))
    })?;
    value["pullSecret"] = json!("");
    yaml(&value)
}

fn cluster_version(state: &InstallerState) -> Value {
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": { "namespace": "openshift-cluster-version", "name": "version" },
        "spec": { "channel": "stable", "clusterID": state.identity.cluster_id },
    })
}

fn infrastructure(state: &InstallerState) -> Value {
    let config = &state.install_config;
    let masters = replicas(&config.control_plane);
    let workers: u32 = config.compute.iter().map(replicas).sum();
    // Workers decide for the routers; without any, the control plane carries them.
    let topology = |count: u32| {
        if count > 1 {
            "HighlyAvailable"
        } else {
            "SingleReplica"
        }
    };
    let domain = format!("{}.{}", config.metadata.name, config.base_domain);
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "Infrastructure",
        "metadata": { "name": "cluster" },
        "spec": { "platformSpec": { "type": platform_type(config) } },
        "status": {
            "apiServerURL": format!("https://api.{domain}:6443"),
            "apiServerInternalURI": format!("https://api-int.{domain}:6443"),
            "controlPlaneTopology": topology(masters),
            "infrastructureName": state.identity.infra_id,
            "infrastructureTopology": topology(if workers == 0 { masters } else { workers }),
            "platform": platform_type(config),
        },
    })
}

fn platform_type(config: &InstallConfig) -> &'static str {
    let platform = &config.platform;
    match platform {
        _ if platform.baremetal.is_some() => "BareMetal",
        _ if platform.external.is_some() => "External",
        _ if platform.vsphere.is_some() => "VSphere",
        _ if platform.nutanix.is_some() => "Nutanix",
        _ => "None",
    }
}

fn network(config: &InstallConfig) -> Value {
    let networking = &config.networking;
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "Network",
        "metadata": { "name": "cluster" },
        "spec": {
            "clusterNetwork": networking.cluster_network,
            "serviceNetwork": networking.service_network,
            "networkType": networking.network_type,
        },
    })
}

fn scheduler(config: &InstallConfig) -> Value {
    let workers: u32 = config.compute.iter().map(replicas).sum();
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "Scheduler",
        "metadata": { "name": "cluster" },
        "spec": { "mastersSchedulable": workers == 0, "policy": { "name": "" } },
    })
}

fn digest_mirrors(config: &InstallConfig) -> Value {
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ImageDigestMirrorSet",
        "metadata": { "name": "image-digest-mirror" },
        "spec": { "imageDigestMirrors": config.image_digest_sources },
    })
}

fn host_manifest(host: &BaremetalHost) -> Value {
    let is_worker = host.role == "worker";
    let mut metadata = json!({ "name": host.name, "namespace": "openshift-machine-api" });
    if !is_worker {
        metadata["labels"] = json!({ "installer.openshift.io/role": "control-plane" });
    }
    json!({
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": metadata,
        "spec": {
            "automatedCleaningMode": "metadata",
            "bmc": { "address": host.bmc.address, "credentialsName": "" },
            "bootMACAddress": host.boot_mac_address,
            "bootMode": host.boot_mode.unwrap_or(BootMode::Uefi),
            "hardwareProfile": host.hardware_profile,
            "online": true,
        },
        "status": { "hardware": {}, "poweredOn": false },
    })
}

/// Reads and removes the manifests of `folder`, user's ones included; none when there are none.
///
/// Each must be one YAML or JSON object with `apiVersion` and `kind`, in a file of a known kind.
pub(super) fn consume(folder: &Path) -> Result<Vec<InstallManifest>, InstallerFailure> {
    let mut manifests = Vec::new();
    for name in FOLDERS {
        let path = folder.join(name);
        let Ok(entries) = fs::read_dir(&path) else {
            continue;
        };
        for entry in entries {
            let entry = entry.map_err(|error| file_failure("read", &path, &error))?;
            let file = entry.file_name().to_string_lossy().into_owned();
            let content = fs::read(entry.path())
                .map_err(|error| file_failure("read", &entry.path(), &error))?;
            let path = format!("{name}/{file}");
            check(&path, &content)?;
            manifests.push(InstallManifest { path, content });
        }
        fs::remove_dir_all(&path).map_err(|error| file_failure("remove", &path, &error))?;
    }
    manifests.sort_by(|first, second| first.path.cmp(&second.path));
    Ok(manifests)
}

fn check(path: &str, content: &[u8]) -> Result<(), InstallerFailure> {
    let is_known = [".yaml", ".yml", ".json"]
        .iter()
        .any(|extension| path.ends_with(extension));
    if !is_known {
        return fail(format!(
            "failed to load manifest {path}: neither YAML nor JSON"
        ));
    }
    let value: Value = serde_yaml::from_slice(content)
        .map_err(|error| InstallerFailure(format!("failed to parse manifest {path}: {error}")))?;
    for member in ["apiVersion", "kind"] {
        if !value.get(member).is_some_and(Value::is_string) {
            return fail(format!(
                "failed to parse manifest {path}: {member} is required"
            ));
        }
    }
    Ok(())
}
