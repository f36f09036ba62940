//! A host that boots over iSCSI loses the firmware's routes when its network is configured: put them back.

use model::Error;
use model::host::HostRole;
use serde_json::json;

use super::machine_config::{IGNITION_VERSION, SystemManifest, file, machine_config, yaml};

const SCRIPT_PATH: &str = "/usr/local/bin/iscsi-nic-reapply.sh";
const SCRIPT_MODE: u32 = 0o755;
const SCRIPT: &str = r#"#!/bin/bash
# Applies the connection of every interface again that the firmware booted from.
for boot_nic in /sys/firmware/ibft/ethernet*; do
    [ -e "$boot_nic/mac" ] || continue
    mac=$(tr 'A-F' 'a-f' < "$boot_nic/mac")
    for nic in /sys/class/net/*; do
        if [ "$(cat "$nic/address")" = "$mac" ]; then
            nmcli device reapply "$(basename "$nic")" || true
        fi
    done
done
"#;
const UNIT: &str = "[Unit]
Description=Apply the network configuration of iSCSI boot interfaces again
ConditionPathExists=/sys/firmware/ibft
Requires=NetworkManager.service
After=NetworkManager.service network-online.target

[Service]
Type=oneshot
ExecStart=/usr/local/bin/iscsi-nic-reapply.sh

[Install]
WantedBy=multi-user.target
";

pub(super) fn manifests() -> Result<Vec<SystemManifest>, Error> {
    let config = json!({
        "ignition": { "version": IGNITION_VERSION },
        "storage": { "files": [file(SCRIPT_PATH, SCRIPT_MODE, SCRIPT)] },
        "systemd": { "units": [{
            "name": "iscsi-nic-reapply.service",
            "enabled": true,
            "contents": UNIT,
        }] },
    });
    [(HostRole::Master, "masters"), (HostRole::Worker, "workers")]
        .into_iter()
        .map(|(role, group)| {
            let name = format!("50-{group}-iscsi-nic-reapply");
            yaml(
                format!("{name}.yaml"),
                &machine_config(&name, role, &config, &[]),
            )
        })
        .collect()
}
