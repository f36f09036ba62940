//! Support levels of features and architectures.
//!
//! Source: the installer API description (wire names, presence rules).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::wire::{null_as_default, wire_enum};

/// Response of `GetSupportedFeatures`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SupportedFeatures {
    pub features: BTreeMap<FeatureId, SupportLevel>,
}

/// Response of `GetSupportedArchitectures`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SupportedArchitectures {
    pub architectures: BTreeMap<ArchitectureId, SupportLevel>,
}

/// Response of `GetDetailedSupportedFeatures`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DetailedSupportedFeatures {
    pub features: Vec<Feature>,
    pub operators: Vec<OperatorFeature>,
}

/// `feature` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Feature {
    #[serde(rename = "feature-support-level-id")]
    pub id: FeatureId,
    pub support_level: SupportLevel,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<IncompatibilityReason>,
    #[serde(deserialize_with = "null_as_default")]
    pub incompatibilities: Vec<FeatureId>,
}

/// `operator` of the installer API: the feature of an operator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperatorFeature {
    #[serde(flatten)]
    pub feature: Feature,
    pub name: String,
    #[serde(deserialize_with = "null_as_default")]
    pub dependencies: Vec<FeatureId>,
}

wire_enum! {
    /// Values of `support-level`.
    pub enum SupportLevel {
        Supported = "supported",
        Unsupported = "unsupported",
        TechPreview = "tech-preview",
        DevPreview = "dev-preview",
        Unavailable = "unavailable",
    }
}

impl SupportLevel {
    /// Neither unsupported nor unavailable.
    pub const fn is_usable(self) -> bool {
        !matches!(self, Self::Unsupported | Self::Unavailable)
    }
}

wire_enum! {
    /// Values of `incompatibility-reason`.
    pub enum IncompatibilityReason {
        CpuArchitecture = "cpuArchitecture",
        Platform = "platform",
        OpenshiftVersion = "openshiftVersion",
        OciExternalIntegrationDisabled = "ociExternalIntegrationDisabled",
    }
}

wire_enum! {
    /// Values of `architecture-support-level-id`.
    pub enum ArchitectureId {
        X86_64Architecture = "X86_64_ARCHITECTURE",
        Arm64Architecture = "ARM64_ARCHITECTURE",
        Ppc64leArchitecture = "PPC64LE_ARCHITECTURE",
        S390xArchitecture = "S390X_ARCHITECTURE",
        MultiarchReleaseImage = "MULTIARCH_RELEASE_IMAGE",
    }
}

wire_enum! {
    /// Values of `feature-support-level-id`.
    pub enum FeatureId {
        Sno = "SNO",
        Tna = "TNA",
        Tnf = "TNF",
        VipAutoAlloc = "VIP_AUTO_ALLOC",
        CustomManifest = "CUSTOM_MANIFEST",
        SingleNodeExpansion = "SINGLE_NODE_EXPANSION",
        Lvm = "LVM",
        Odf = "ODF",
        Lso = "LSO",
        Cnv = "CNV",
        Mce = "MCE",
        Mtv = "MTV",
        Osc = "OSC",
        NutanixIntegration = "NUTANIX_INTEGRATION",
        BaremetalPlatform = "BAREMETAL_PLATFORM",
        NonePlatform = "NONE_PLATFORM",
        VsphereIntegration = "VSPHERE_INTEGRATION",
        DualStackVips = "DUAL_STACK_VIPS",
        ClusterManagedNetworking = "CLUSTER_MANAGED_NETWORKING",
        UserManagedNetworking = "USER_MANAGED_NETWORKING",
        MinimalIso = "MINIMAL_ISO",
        FullIso = "FULL_ISO",
        ExternalPlatformOci = "EXTERNAL_PLATFORM_OCI",
        DualStack = "DUAL_STACK",
        PlatformManagedNetworking = "PLATFORM_MANAGED_NETWORKING",
        ExternalPlatform = "EXTERNAL_PLATFORM",
        OvnNetworkType = "OVN_NETWORK_TYPE",
        SdnNetworkType = "SDN_NETWORK_TYPE",
        CiliumNetworkType = "CILIUM_NETWORK_TYPE",
        CalicoNetworkType = "CALICO_NETWORK_TYPE",
        CiscoAciNetworkType = "CISCO_ACI_NETWORK_TYPE",
        NoneNetworkType = "NONE_NETWORK_TYPE",
        NodeFeatureDiscovery = "NODE_FEATURE_DISCOVERY",
        NvidiaGpu = "NVIDIA_GPU",
        Pipelines = "PIPELINES",
        Servicemesh = "SERVICEMESH",
        Serverless = "SERVERLESS",
        OpenshiftAi = "OPENSHIFT_AI",
        NonStandardHaControlPlane = "NON_STANDARD_HA_CONTROL_PLANE",
        Authorino = "AUTHORINO",
        UserManagedLoadBalancer = "USER_MANAGED_LOAD_BALANCER",
        Nmstate = "NMSTATE",
        AmdGpu = "AMD_GPU",
        Kmm = "KMM",
        NodeHealthcheck = "NODE_HEALTHCHECK",
        SelfNodeRemediation = "SELF_NODE_REMEDIATION",
        FenceAgentsRemediation = "FENCE_AGENTS_REMEDIATION",
        NodeMaintenance = "NODE_MAINTENANCE",
        KubeDescheduler = "KUBE_DESCHEDULER",
        ClusterObservability = "CLUSTER_OBSERVABILITY",
        NumaResources = "NUMA_RESOURCES",
        Oadp = "OADP",
        Metallb = "METALLB",
        DualStackPrimaryIpv6 = "DUAL_STACK_PRIMARY_IPV6",
        Loki = "LOKI",
        OpenshiftLogging = "OPENSHIFT_LOGGING",
    }
}
