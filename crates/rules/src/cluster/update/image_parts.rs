//! The parts of a discovery image that requests choose.

use model::Error;
use model::infra_env::{HostStaticNetworkConfig, ImageType, InfraEnv, KernelArgument};
use model::versions::CpuArchitecture;

use crate::input;

/// Members that creation and update share.
#[derive(Debug, Default)]
pub(crate) struct ImageParts {
    pub(crate) static_network_config: Option<Vec<HostStaticNetworkConfig>>,
    pub(crate) rendezvous_ip: Option<String>,
    pub(crate) kernel_arguments: Option<Vec<KernelArgument>>,
    pub(crate) network_discovery_delay_seconds: Option<i64>,
    pub(crate) embedded_agent: Option<bool>,
}

/// Checks and stores the inputs of the discovery image.
pub(crate) fn set_image_parts(infra_env: &mut InfraEnv, parts: ImageParts) -> Result<(), Error> {
    if let Some(hosts) = &parts.static_network_config {
        crate::network::static_networks::static_network_config(hosts)?;
        infra_env.static_network_config = if hosts.is_empty() {
            String::new()
        } else {
            as_json("static_network_config", hosts)?
        };
    }
    if let Some(list) = &parts.kernel_arguments {
        input::kernel_arguments(list)?;
        infra_env.kernel_arguments = if list.is_empty() {
            None
        } else {
            Some(as_json("kernel_arguments", list)?)
        };
    }
    if let Some(address) = parts.rendezvous_ip {
        if !address.is_empty() {
            input::ip("rendezvous_ip", &address)?;
        }
        infra_env.rendezvous_ip = Some(address).filter(|address| !address.is_empty());
    }
    if let Some(delay) = parts.network_discovery_delay_seconds {
        if delay < 0 {
            return Err(input::refuse(
                "network_discovery_delay_seconds",
                &delay.to_string(),
                "is negative: give 0 or more seconds",
            ));
        }
        infra_env.network_discovery_delay_seconds = Some(delay);
    }
    if let Some(is_embedded) = parts.embedded_agent {
        infra_env.embedded_agent = is_embedded;
    }
    check_image_type(infra_env)
}

fn check_image_type(infra_env: &InfraEnv) -> Result<(), Error> {
    let kind = infra_env.r#type;
    if infra_env.rendezvous_ip.is_some() && kind != ImageType::DisconnectedIso {
        return Err(Error::invalid(
            "rendezvous_ip",
            format!("belongs to image type disconnected-iso, not {kind}: leave it out"),
        ));
    }
    if kind == ImageType::MinimalIso && infra_env.cpu_architecture == Some(CpuArchitecture::S390x) {
        return Err(input::refuse(
            "image_type",
            kind.as_str(),
            "is not possible on s390x: use full-iso",
        ));
    }
    Ok(())
}

fn as_json<T: serde::Serialize>(field: &str, value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::internal(format!("writing {field}"), error))
}
