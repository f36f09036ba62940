//! Static networks: one nmstate configuration per host, selected on the host by MAC addresses.

use std::collections::BTreeMap;

use ignition::{IgnitionConfig, IgnitionFile, Unit};
use model::Error;
use model::infra_env::{HostStaticNetworkConfig, ImageType, InfraEnv};
use rules::versions::at_least;

/// Folder of the network files on a host.
pub(super) const FOLDER: &str = "/etc/assisted/network";
/// Program that applies the configuration of the host, live and in the initrd.
pub(super) const SCRIPT: &str = include_str!("host_files/pre-network-manager-config.sh");
/// Path of [`SCRIPT`] on a host.
pub(super) const SCRIPT_PATH: &str = "/usr/local/bin/pre-network-manager-config.sh";
/// The first version whose live image applies nmstate files itself.
const FIRST_VERSION: (u64, u64) = (4, 18);

/// A network file of a host, below [`FOLDER`].
pub(super) struct HostFile {
    pub(super) path: String,
    pub(super) content: String,
}

/// Adds the static networks of `infra_env`. Minimal images have them in their initrd.
///
/// Errors: `Invalid` – the stored text does not parse, or the live image is older than [`FIRST_VERSION`].
pub(super) fn add(config: IgnitionConfig, infra_env: &InfraEnv) -> Result<IgnitionConfig, Error> {
    if infra_env.r#type == ImageType::MinimalIso {
        return Ok(config);
    }
    let files = files(infra_env)?;
    if files.is_empty() {
        return Ok(config);
    }
    let config = config
        .file(IgnitionFile::text(SCRIPT_PATH, 0o755, SCRIPT))
        .unit(Unit::enabled(
            "pre-network-manager-config.service",
            include_str!("host_files/pre-network-manager-config.service"),
        ));
    Ok(files.iter().fold(config, |config, file| {
        let path = format!("{FOLDER}/{}", file.path);
        config.file(IgnitionFile::text(path, 0o600, &file.content))
    }))
}

/// The same files as a tar archive; empty without static networks.
///
/// Errors: as [`add`].
pub(crate) fn archive(infra_env: &InfraEnv) -> Result<Vec<u8>, Error> {
    let files = files(infra_env)?;
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let mut builder = tar::Builder::new(Vec::new());
    for file in &files {
        let mut header = tar::Header::new_gnu();
        header.set_size(file.content.len() as u64);
        header.set_mode(0o600);
        builder
            .append_data(&mut header, &file.path, file.content.as_bytes())
            .map_err(|error| Error::internal("writing the archive of networks", error))?;
    }
    builder
        .into_inner()
        .map_err(|error| Error::internal("writing the archive of networks", error))
}

/// The network files of every host.
///
/// Errors: as [`add`].
pub(super) fn files(infra_env: &InfraEnv) -> Result<Vec<HostFile>, Error> {
    let text = infra_env.static_network_config.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let refuse = |reason: String| Error::invalid("static_network_config", reason);
    let hosts: Vec<HostStaticNetworkConfig> =
        serde_json::from_str(text).map_err(|error| refuse(error.to_string()))?;
    let version = &infra_env.openshift_version;
    let (major, minor) = FIRST_VERSION;
    if !hosts.is_empty() && !at_least(version, major, minor) {
        return Err(refuse(format!(
            "needs a discovery image of version {major}.{minor} or newer, this infra-env has {version:?}; set its \
             openshift_version"
        )));
    }
    let files = hosts.iter().enumerate().flat_map(|(index, host)| {
        let file = |name: String, content| HostFile {
            path: format!("host{index}/{name}"),
            content,
        };
        [
            file(format!("ymlFile{index}.yml"), host.network_yaml.clone()),
            file("mac_interface.ini".to_owned(), names(host)),
        ]
    });
    Ok(files.collect())
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
