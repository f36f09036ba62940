//! URLs in the records.

use model::ids::{ClusterId, HostId, InfraEnvId};
use model::infra_env::{ImageType, InfraEnv};
use model::versions::CpuArchitecture;

/// Path under which every operation of the API lives.
pub const API_BASE: &str = "/api/assisted-install";

/// The host of an image reference; `docker.io` when it names none.
pub fn registry_of(reference: &str) -> &str {
    match reference.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => host,
        _ => "docker.io",
    }
}

/// Identification of an infra-env in the URL of its discovery image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageAddress<'a> {
    /// Its id.
    ById(InfraEnvId),
    /// A token without expiry.
    ByApiKey(&'a str),
    /// A token with an expiry.
    ByToken(&'a str),
}

/// An OS image in URLs of image services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OsImageName<'a> {
    /// Version of the platform, or of the operating system.
    pub version: &'a str,
    /// Its architecture.
    pub architecture: CpuArchitecture,
}

/// Download URL of an infra-env's discovery image.
/// Source: assisted-service, internal/bminventory/inventory_v2_handlers.go, generateShortImageDownloadURL.
pub fn download_url(
    image_service: &str,
    address: ImageAddress<'_>,
    os_image: OsImageName<'_>,
    kind: ImageType,
) -> String {
    let base = image_service.trim_end_matches('/');
    let file = match kind {
        ImageType::FullIso => "full.iso",
        ImageType::MinimalIso => "minimal.iso",
        ImageType::DisconnectedIso => "disconnected.iso",
    };
    let infra_env = match address {
        ImageAddress::ById(id) => format!("byid/{id}"),
        ImageAddress::ByApiKey(token) => format!("byapikey/{token}"),
        ImageAddress::ByToken(token) => format!("bytoken/{token}"),
    };
    format!(
        "{base}/{infra_env}/{}/{}/{file}",
        os_image.version, os_image.architecture
    )
}

/// URLs of a network boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootArtifacts {
    /// Kernel.
    pub kernel: String,
    /// Root file system.
    pub rootfs: String,
    /// Initial ramdisk with the ignition of the infra-env inside.
    pub initrd: String,
}

/// URLs of an infra-env's boot artifacts.
pub fn boot_artifacts(
    image_service: &str,
    infra_env: &InfraEnv,
    os_image: OsImageName<'_>,
) -> BootArtifacts {
    let base = image_service.trim_end_matches('/');
    let OsImageName {
        version,
        architecture,
    } = os_image;
    let query = format!("version={version}&arch={architecture}");
    BootArtifacts {
        kernel: format!("{base}/boot-artifacts/kernel?{query}"),
        rootfs: format!("{base}/boot-artifacts/rootfs?{query}"),
        initrd: format!("{base}/images/{}/pxe-initrd?{query}", infra_env.id),
    }
}

/// The `href` of a cluster.
pub fn cluster(id: ClusterId) -> String {
    format!("{API_BASE}/v2/clusters/{id}")
}

/// The `href` of an infra-env.
pub fn infra_env(id: InfraEnvId) -> String {
    format!("{API_BASE}/v2/infra-envs/{id}")
}

/// The `href` of a host.
pub fn host(infra_env: InfraEnvId, id: HostId) -> String {
    format!("{API_BASE}/v2/infra-envs/{infra_env}/hosts/{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_url_names_version_and_architecture() {
        let os_image = OsImageName {
            version: "4.16",
            architecture: CpuArchitecture::Arm64,
        };
        let url = |address| {
            download_url(
                "http://images:8888/",
                address,
                os_image,
                ImageType::MinimalIso,
            )
        };
        assert_eq!(
            url(ImageAddress::ById(InfraEnvId::default())),
            "http://images:8888/byid/00000000-0000-0000-0000-000000000000/4.16/arm64/minimal.iso"
        );
        assert_eq!(
            url(ImageAddress::ByApiKey("a.b.c")),
            "http://images:8888/byapikey/a.b.c/4.16/arm64/minimal.iso"
        );
        let artifacts = boot_artifacts("http://images:8888", &InfraEnv::default(), os_image);
        assert_eq!(
            artifacts.initrd,
            "http://images:8888/images/00000000-0000-0000-0000-000000000000/pxe-initrd?version=4.16&arch=arm64"
        );
    }
}
