//! Encrypted root disks.

use model::Error;
use model::cluster::{Cluster, DiskEncryptionMode, DiskEncryptionTarget};
use model::host::HostRole;
use serde_json::{Value, json};

use super::machine_config::{IGNITION_VERSION, SystemManifest, machine_config, yaml};
use crate::input;

pub(super) fn manifests(cluster: &Cluster) -> Result<Vec<SystemManifest>, Error> {
    let Some(encryption) = &cluster.disk_encryption else {
        return Ok(Vec::new());
    };
    let target = encryption.enable_on.unwrap_or_default();
    if target == DiskEncryptionTarget::None {
        return Ok(Vec::new());
    }
    let is_tang = encryption.mode == Some(DiskEncryptionMode::Tang);
    let (clevis, kind, arguments): (Value, &str, &[&str]) = if is_tang {
        let servers = input::tang_servers(&encryption.tang_servers)?;
        (json!({ "tang": servers }), "tang", &["rd.neednet=1"])
    } else {
        (json!({ "tpm2": true }), "tpm", &[])
    };
    let config = json!({
        "ignition": { "version": IGNITION_VERSION },
        "storage": {
            "luks": [{
                "name": "root",
                "label": "luks-root",
                "device": "/dev/disk/by-partlabel/root",
                "clevis": clevis,
                "options": ["--cipher", "aes-cbc-essiv:sha256"],
                "wipeVolume": true,
            }],
            "filesystems": [{
                "device": "/dev/mapper/root",
                "format": "xfs",
                "label": "root",
                "wipeFilesystem": true,
            }],
        },
    });
    [
        (HostRole::Master, "masters"),
        (HostRole::Worker, "workers"),
        (HostRole::Arbiter, "arbiters"),
    ]
    .into_iter()
    .filter(|(_, group)| covers(target, group))
    .map(|(role, _)| {
        let file_name = format!("99-openshift-{role}-{kind}-encryption.yaml");
        let name = format!("{role}-{kind}");
        yaml(file_name, &machine_config(&name, role, &config, arguments))
    })
    .collect()
}

fn covers(target: DiskEncryptionTarget, group: &str) -> bool {
    match target {
        DiskEncryptionTarget::None => false,
        // An arbiter is encrypted only by name: most clusters have none, and its pool does not exist then.
        DiskEncryptionTarget::All => group != "arbiters",
        named => named.as_str().split(',').any(|name| name == group),
    }
}
