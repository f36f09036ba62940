//! DNS of a single node: it resolves the names of its own cluster, and installs without a prepared name server.

use model::Error;
use model::host::HostRole;
use serde_json::json;

use super::machine_config::{IGNITION_VERSION, SystemManifest, file, machine_config, yaml};
use crate::Snapshot;
use crate::steps::main_address;

const NAME: &str = "50-master-dnsmasq-configuration";
const EXECUTABLE: u32 = 0o755;
const READABLE: u32 = 0o644;
const UNIT: &str = "[Unit]
Description=Name server for the names of this single-node cluster
Before=kubelet.service crio.service
After=network.target

[Service]
TimeoutStartSec=30
ExecStart=/usr/sbin/dnsmasq -k
Restart=always

[Install]
WantedBy=multi-user.target
";
/// Puts the local name server in front of those that the network announced, whenever they change.
const DISPATCHER: &str = r#"#!/bin/bash
# NetworkManager calls this with an interface and an action.
case "$2" in
    up | dhcp4-change | dhcp6-change | reapply | connectivity-change | pre-up) ;;
    *) exit 0 ;;
esac
address="@ADDRESS@"
source=/run/NetworkManager/resolv.conf
[ -e "$source" ] || exit 0
target=$(mktemp /etc/resolv.conf.XXXXXX)
{
    sed -n '/^search /p' "$source"
    echo "nameserver $address"
    sed -n '/^nameserver /p' "$source" | grep -v -w -F "$address"
} > "$target"
chmod 0644 "$target"
restorecon "$target" 2>/dev/null || true
mv -f "$target" /etc/resolv.conf
"#;

/// None while the node has no address.
pub(super) fn manifest(snapshot: &Snapshot) -> Result<Option<SystemManifest>, Error> {
    let cluster = &snapshot.cluster;
    let address = snapshot
        .hosts
        .first()
        .and_then(|host| main_address(host, &cluster.machine_networks));
    let Some(address) = address else {
        return Ok(None);
    };
    let domain = format!("{}.{}", cluster.name, cluster.base_dns_domain);
    let names = format!(
        "address=/apps.{domain}/{address}\naddress=/api-int.{domain}/{address}\naddress=/api.{domain}/{address}\nbind-dynamic\n"
    );
    let config = json!({
        "ignition": { "version": IGNITION_VERSION },
        "storage": { "files": [
            file("/etc/dnsmasq.d/single-node.conf", READABLE, &names),
            file(
                "/etc/NetworkManager/dispatcher.d/forcedns",
                EXECUTABLE,
                &DISPATCHER.replace("@ADDRESS@", &address.to_string()),
            ),
            file(
                "/etc/NetworkManager/conf.d/single-node.conf",
                READABLE,
                "[main]\nrc-manager=unmanaged\n",
            ),
        ] },
        "systemd": { "units": [{ "name": "dnsmasq.service", "enabled": true, "contents": UNIT }] },
    });
    let manifest = machine_config(NAME, HostRole::Master, &config, &[]);
    yaml("dnsmasq-bootstrap-in-place.yaml".to_owned(), &manifest).map(Some)
}
