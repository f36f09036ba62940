//! Static networks: files per host, selected on the host by MAC addresses.

use ignition::{IgnitionConfig, IgnitionFile, Unit};
use model::Error;
use model::infra_env::{HostStaticNetworkConfig, ImageType, InfraEnv};
use rules::network::static_networks;
use static_network::NetworkForm;

/// Folder of the network files on a host.
pub(super) const FOLDER: &str = "/etc/assisted/network";
/// Program that applies the files of the host, live and in the initrd.
pub(super) const SCRIPT: &str = include_str!("host_files/pre-network-manager-config.sh");
/// Path of [`SCRIPT`] on a host.
pub(super) const SCRIPT_PATH: &str = "/usr/local/bin/pre-network-manager-config.sh";

/// The network files of all hosts.
pub(super) struct HostNetworks {
    pub(super) form: NetworkForm,
    /// Path below [`FOLDER`], content.
    pub(super) files: Vec<(String, String)>,
}

impl HostNetworks {
    /// The files of `infra_env`, in the form that its images apply; `service_from` is the first version with nmstate's
    /// service.
    ///
    /// Errors: `Invalid` – the stored text does not parse, or keyfiles cannot express it.
    pub(super) fn of(infra_env: &InfraEnv, service_from: &str) -> Result<Self, Error> {
        let form = static_networks::form_of(&infra_env.openshift_version, service_from);
        let text = infra_env.static_network_config.trim();
        let hosts: Vec<HostStaticNetworkConfig> = if text.is_empty() {
            Vec::new()
        } else {
            serde_json::from_str(text)
                .map_err(|error| Error::invalid("static_network_config", error.to_string()))?
        };
        let mut files = Vec::new();
        for (index, host) in hosts.iter().enumerate() {
            for file in static_network::files(index, host, form)? {
                files.push((format!("host{index}/{}", file.name), file.content));
            }
        }
        Ok(Self { form, files })
    }

    /// The unit of the live system. Keyfiles have to be there before NetworkManager starts; nmstate talks to it.
    fn live_unit(&self) -> &'static str {
        match self.form {
            NetworkForm::Keyfiles => include_str!("host_files/network-keyfiles.service"),
            NetworkForm::Policy => include_str!("host_files/network-policy.service"),
        }
    }
}

/// Adds the static networks of `infra_env` to the ignition of an image. Minimal images have them in their initrd.
///
/// Errors: as [`HostNetworks::of`].
pub(super) fn add(
    config: IgnitionConfig,
    infra_env: &InfraEnv,
    image_type: ImageType,
    service_from: &str,
) -> Result<IgnitionConfig, Error> {
    if image_type == ImageType::MinimalIso {
        return Ok(config);
    }
    let networks = HostNetworks::of(infra_env, service_from)?;
    if networks.files.is_empty() {
        return Ok(config);
    }
    let delay_s = infra_env.network_discovery_delay_seconds.unwrap_or(0);
    let config = config
        .file(IgnitionFile::text(SCRIPT_PATH, 0o755, SCRIPT))
        .unit(Unit::enabled(
            "pre-network-manager-config.service",
            unit(networks.live_unit(), delay_s),
        ));
    Ok(networks
        .files
        .iter()
        .fold(config, |config, (path, content)| {
            config.file(IgnitionFile::text(
                format!("{FOLDER}/{path}"),
                0o600,
                content,
            ))
        }))
}

/// Time for applying the network. Units: seconds.
const TIMEOUT_S: i64 = 60;

/// A unit that applies the network after a delay, in which slow NICs appear.
pub(super) fn unit(text: &str, delay_s: i64) -> String {
    let timeout_s = TIMEOUT_S.saturating_add(delay_s);
    text.replace("@timeout@", &timeout_s.to_string())
        .replace("@delay@", &delay_s.to_string())
}

/// The same files as a tar archive; empty without static networks.
///
/// Errors: as [`HostNetworks::of`].
pub(crate) fn archive(infra_env: &InfraEnv, service_from: &str) -> Result<Vec<u8>, Error> {
    let networks = HostNetworks::of(infra_env, service_from)?;
    if networks.files.is_empty() {
        return Ok(Vec::new());
    }
    let failed = |error| Error::internal("writing the archive of networks", error);
    let mut builder = tar::Builder::new(Vec::new());
    for (path, content) in &networks.files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        let path = format!("{FOLDER}/{path}");
        // The leading slash is the peer's; the library's own setter refuses it.
        // Source: assisted-service, pkg/staticnetworkconfig/generator.go, GenerateStaticNetworkConfigArchive.
        let name = &mut header.as_old_mut().name;
        if let Some(field) = name.get_mut(..path.len()) {
            field.copy_from_slice(path.as_bytes());
        } else {
            let long = [("path", path.as_bytes())];
            builder.append_pax_extensions(long).map_err(failed)?;
        }
        header.set_cksum();
        builder
            .append(&header, content.as_bytes())
            .map_err(failed)?;
    }
    builder.into_inner().map_err(failed)
}
