//! Platforms as queries for support levels name them.

use model::cluster::{Cluster, PlatformType};
use model::support::FeatureId;

use crate::hardware::requirements::VMWARE;

/// Name of the external platform with support levels of its own.
pub(super) const OCI: &str = "oci";

/// A platform, with the external one by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestedPlatform {
    /// `baremetal`
    Baremetal,
    /// `none`
    NoPlatform,
    /// `nutanix`
    Nutanix,
    /// `vsphere`
    Vsphere,
    /// `external`, by any other name than `oci`
    External,
    /// `external` by the name `oci`
    Oci,
}

impl RequestedPlatform {
    /// The platform of a cluster; bare metal by default.
    pub fn of(cluster: &Cluster) -> Self {
        let Some(platform) = &cluster.platform else {
            return Self::Baremetal;
        };
        let external = platform.external.as_ref();
        Self::new(
            platform.r#type,
            external.and_then(|one| one.platform_name.as_deref()),
        )
    }

    /// The platform of a type and, for the external one, of a name.
    pub fn new(kind: PlatformType, external_name: Option<&str>) -> Self {
        match kind {
            PlatformType::Baremetal => Self::Baremetal,
            PlatformType::None => Self::NoPlatform,
            PlatformType::Nutanix => Self::Nutanix,
            PlatformType::Vsphere => Self::Vsphere,
            PlatformType::External if external_name == Some(OCI) => Self::Oci,
            PlatformType::External => Self::External,
        }
    }

    /// The platform's own feature.
    pub const fn feature(self) -> FeatureId {
        match self {
            Self::Baremetal => FeatureId::BaremetalPlatform,
            Self::NoPlatform => FeatureId::NonePlatform,
            Self::Nutanix => FeatureId::NutanixIntegration,
            Self::Vsphere => FeatureId::VsphereIntegration,
            Self::External => FeatureId::ExternalPlatform,
            Self::Oci => FeatureId::ExternalPlatformOci,
        }
    }

    /// Maker of the machines that it needs; none for platforms on any machine.
    /// Source: assisted-service, internal/provider/<name>/base.go, IsHostSupported.
    pub const fn maker(self) -> Option<&'static str> {
        match self {
            Self::Vsphere => Some(VMWARE),
            Self::Nutanix => Some("Nutanix"),
            Self::Oci => Some("OracleCloud.com"),
            Self::Baremetal | Self::NoPlatform | Self::External => None,
        }
    }

    /// Whether that feature is the one of a platform.
    pub fn is_platform_feature(id: FeatureId) -> bool {
        const ALL: [RequestedPlatform; 6] = [
            RequestedPlatform::Baremetal,
            RequestedPlatform::NoPlatform,
            RequestedPlatform::Nutanix,
            RequestedPlatform::Vsphere,
            RequestedPlatform::External,
            RequestedPlatform::Oci,
        ];
        ALL.iter().any(|platform| platform.feature() == id)
    }
}
