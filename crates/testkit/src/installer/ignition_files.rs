//! The ignition files, spelled out member by member.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::files::InstallerFailure;
use super::manifests::InstallManifest;
use super::state::InstallerState;

const VERSION: &str = "3.2.0";
/// Decimal 420.
const READABLE: u32 = 0o644;
/// Decimal 384.
const PRIVATE: u32 = 0o600;
/// Decimal 365.
const EXECUTABLE: u32 = 0o555;

/// The bootstrap's ignition.
pub(super) fn bootstrap(
    state: &InstallerState,
    manifests: &[InstallManifest],
    release_image: &str,
) -> Result<Value, InstallerFailure> {
    let config = &state.install_config;
    let identity = &state.identity;
    let mut files = vec![
        file(
            "/root/.docker/config.json",
            PRIVATE,
            config.pull_secret.as_bytes(),
        ),
        file(
            "/opt/openshift/auth/kubeconfig",
            PRIVATE,
            identity.kubeconfig(config)?.as_bytes(),
        ),
        file(
            "/opt/openshift/tls/root-ca.crt",
            READABLE,
            identity.root_ca.as_bytes(),
        ),
        file(
            "/opt/openshift/release-image",
            READABLE,
            format!("{release_image}\n").as_bytes(),
        ),
        file(
            "/usr/local/bin/bootkube.sh",
            EXECUTABLE,
            b"#!/usr/bin/env bash\nset -euo pipefail\necho bootkube: simulated control plane\n",
        ),
        file(
            "/usr/local/bin/approve-csr.sh",
            EXECUTABLE,
            b"#!/usr/bin/env bash\nset -euo pipefail\necho approve-csr: nothing to approve\n",
        ),
        // The real file appends to that of the operating system.
        json!({
            "path": "/etc/motd",
            "mode": READABLE,
            "user": { "name": "root" },
            "append": [{ "source": data_url(b"This is the bootstrap node.\n") }],
        }),
    ];
    for manifest in manifests {
        files.push(file(
            &format!("/opt/openshift/{}", manifest.path),
            READABLE,
            &manifest.content,
        ));
    }
    Ok(json!({
        "ignition": { "version": VERSION },
        "passwd": { "users": [{ "name": "core", "sshAuthorizedKeys": keys(state) }] },
        "storage": { "files": files },
        "systemd": { "units": [
            unit("bootkube.service", "Bootstrap a Kubernetes cluster", "/usr/local/bin/bootkube.sh"),
            unit("approve-csr.service", "Approve certificate requests of nodes", "/usr/local/bin/approve-csr.sh"),
            { "name": "release-image.service", "contents": format!(
                "[Unit]\nDescription=Download the release image\nWants=network-online.target\n\
                 After=network-online.target\n[Service]\nType=oneshot\nExecStart=/usr/bin/podman pull {release_image}\n\
                 RemainAfterExit=true\n") },
        ] },
    }))
}

/// The ignition of a node: a pointer to the machine config server.
pub(super) fn pointer(state: &InstallerState, role: &str) -> Value {
    let config = &state.install_config;
    let host = format!("api-int.{}.{}", config.metadata.name, config.base_domain);
    json!({
        "ignition": {
            "version": VERSION,
            "config": { "merge": [{ "source": format!("https://{host}:22623/config/{role}") }] },
            "security": { "tls": { "certificateAuthorities": [
                { "source": data_url(state.identity.root_ca.as_bytes()) },
            ] } },
        },
    })
}

/// Describes the cluster for tools that destroy or inspect it.
pub(super) fn metadata(state: &InstallerState) -> Value {
    let config = &state.install_config;
    let mut metadata = json!({
        "clusterName": config.metadata.name,
        "clusterID": state.identity.cluster_id,
        "infraID": state.identity.infra_id,
        "featureSet": config.feature_set.map_or(json!(""), |set| json!(set)),
        "customFeatureSet": null,
    });
    if config.platform.baremetal.is_some() {
        metadata["baremetal"] = json!({
            "libvirtURI": "",
            "bootstrapProvisioningIP": "",
            "provisioningHostIP": "",
        });
    }
    metadata
}

fn keys(state: &InstallerState) -> Vec<&str> {
    state
        .install_config
        .ssh_key
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect()
}

fn file(path: &str, mode: u32, content: &[u8]) -> Value {
    json!({
        "path": path,
        "mode": mode,
        "overwrite": true,
        "user": { "name": "root" },
        "contents": { "source": data_url(content) },
    })
}

fn unit(name: &str, description: &str, program: &str) -> Value {
    json!({
        "name": name,
        "enabled": name != "bootkube.service",
        "contents": format!(
            "[Unit]\nDescription={description}\nWants=kubelet.service\nAfter=kubelet.service\n[Service]\n\
             ExecStart={program}\nRestart=on-failure\nRestartSec=5s\n[Install]\nWantedBy=multi-user.target\n"
        ),
    })
}

fn data_url(content: &[u8]) -> String {
    format!(
        "data:text/plain;charset=utf-8;base64,{}",
        STANDARD.encode(content)
    )
}
