//! Static networks: one prepared configuration per host, chosen on the host by its hardware addresses.

use std::collections::BTreeMap;

use ignition::{Config, File, Unit};
use model::Error;
use model::infra_env::{HostStaticNetworkConfig, ImageType, InfraEnv};
use rules::versions::at_least;

const FOLDER: &str = "/etc/assisted/network";
/// The first version whose live image applies nmstate files by itself.
const FIRST_VERSION: (u64, u64) = (4, 18);

/// Adds the static networks of `infra_env`. Minimal images get them earlier, by their initrd.
///
/// Errors: `Invalid` – the stored text does not parse, or the live image is too old for it.
pub(super) fn add(config: Config, infra_env: &InfraEnv) -> Result<Config, Error> {
    let text = infra_env.static_network_config.trim();
    if text.is_empty() || infra_env.r#type == ImageType::MinimalIso {
        return Ok(config);
    }
    let refuse = |reason: String| Error::invalid("static_network_config", reason);
    let hosts: Vec<HostStaticNetworkConfig> =
        serde_json::from_str(text).map_err(|error| refuse(error.to_string()))?;
    if hosts.is_empty() {
        return Ok(config);
    }
    let version = &infra_env.openshift_version;
    let (major, minor) = FIRST_VERSION;
    if !at_least(version, major, minor) {
        return Err(refuse(format!(
            "needs a discovery image of version {major}.{minor} or newer, this infra-env has {version:?}; set its \
             openshift_version"
        )));
    }
    let mut config = config
        .file(File::text(
            "/usr/local/bin/pre-network-manager-config.sh",
            0o755,
            include_str!("host_files/pre-network-manager-config.sh"),
        ))
        .unit(Unit::enabled(
            "pre-network-manager-config.service",
            include_str!("host_files/pre-network-manager-config.service"),
        ));
    for (index, host) in hosts.iter().enumerate() {
        let folder = format!("{FOLDER}/host{index}");
        config = config
            .file(File::text(
                format!("{folder}/ymlFile{index}.yml"),
                0o600,
                &host.network_yaml,
            ))
            .file(File::text(
                format!("{folder}/mac_interface.ini"),
                0o600,
                &names(host),
            ));
    }
    Ok(config)
}

/// `MAC=name` lines, sorted.
fn names(host: &HostStaticNetworkConfig) -> String {
    let by_address: BTreeMap<&str, &str> = host
        .mac_interface_map
        .iter()
        .map(|item| (item.mac_address.as_str(), item.logical_nic_name.as_str()))
        .collect();
    let lines: Vec<String> = by_address
        .iter()
        .map(|(address, name)| format!("{address}={name}\n"))
        .collect();
    lines.concat()
}
