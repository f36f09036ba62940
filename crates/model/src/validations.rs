//! Identifiers of validations and how they are switched off.
//!
//! Source: the installer API description (wire names, presence rules).

use crate::wire::wire_enum;
use serde::{Deserialize, Serialize};

/// `ignored-validations` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IgnoredValidations {
    #[serde(
        rename = "cluster-validation-ids",
        skip_serializing_if = "String::is_empty"
    )]
    pub cluster_validation_ids: String,
    #[serde(
        rename = "host-validation-ids",
        skip_serializing_if = "String::is_empty"
    )]
    pub host_validation_ids: String,
}

wire_enum! {
    /// Values of `HostValidationId`.
    pub enum HostValidationId {
        Connected = "connected",
        MediaConnected = "media-connected",
        HasInventory = "has-inventory",
        InventoryNotPartiallyTruncated = "inventory-not-partially-truncated",
        InventoryNotFullyTruncated = "inventory-not-fully-truncated",
        HasMinCpuCores = "has-min-cpu-cores",
        HasMinValidDisks = "has-min-valid-disks",
        HasMinMemory = "has-min-memory",
        MachineCidrDefined = "machine-cidr-defined",
        HasCpuCoresForRole = "has-cpu-cores-for-role",
        HasMemoryForRole = "has-memory-for-role",
        HostnameUnique = "hostname-unique",
        HostnameValid = "hostname-valid",
        BelongsToMachineCidr = "belongs-to-machine-cidr",
        IgnitionDownloadable = "ignition-downloadable",
        BelongsToMajorityGroup = "belongs-to-majority-group",
        ValidPlatformNetworkSettings = "valid-platform-network-settings",
        NtpSynced = "ntp-synced",
        TimeSyncedBetweenHostAndService = "time-synced-between-host-and-service",
        ContainerImagesAvailable = "container-images-available",
        LsoRequirementsSatisfied = "lso-requirements-satisfied",
        OcsRequirementsSatisfied = "ocs-requirements-satisfied",
        OdfRequirementsSatisfied = "odf-requirements-satisfied",
        LvmRequirementsSatisfied = "lvm-requirements-satisfied",
        MceRequirementsSatisfied = "mce-requirements-satisfied",
        MtvRequirementsSatisfied = "mtv-requirements-satisfied",
        OscRequirementsSatisfied = "osc-requirements-satisfied",
        SufficientInstallationDiskSpeed = "sufficient-installation-disk-speed",
        CnvRequirementsSatisfied = "cnv-requirements-satisfied",
        SufficientNetworkLatencyRequirementForRole = "sufficient-network-latency-requirement-for-role",
        SufficientPacketLossRequirementForRole = "sufficient-packet-loss-requirement-for-role",
        HasDefaultRoute = "has-default-route",
        ApiDomainNameResolvedCorrectly = "api-domain-name-resolved-correctly",
        ApiIntDomainNameResolvedCorrectly = "api-int-domain-name-resolved-correctly",
        AppsDomainNameResolvedCorrectly = "apps-domain-name-resolved-correctly",
        ReleaseDomainNameResolvedCorrectly = "release-domain-name-resolved-correctly",
        CompatibleWithClusterPlatform = "compatible-with-cluster-platform",
        DnsWildcardNotConfigured = "dns-wildcard-not-configured",
        DiskEncryptionRequirementsSatisfied = "disk-encryption-requirements-satisfied",
        NonOverlappingSubnets = "non-overlapping-subnets",
        VsphereDiskUuidEnabled = "vsphere-disk-uuid-enabled",
        CompatibleAgent = "compatible-agent",
        NoSkipInstallationDisk = "no-skip-installation-disk",
        NoSkipMissingDisk = "no-skip-missing-disk",
        NoIpCollisionsInNetwork = "no-ip-collisions-in-network",
        NoIscsiNicBelongsToMachineCidr = "no-iscsi-nic-belongs-to-machine-cidr",
        NodeFeatureDiscoveryRequirementsSatisfied = "node-feature-discovery-requirements-satisfied",
        NvidiaGpuRequirementsSatisfied = "nvidia-gpu-requirements-satisfied",
        PipelinesRequirementsSatisfied = "pipelines-requirements-satisfied",
        ServicemeshRequirementsSatisfied = "servicemesh-requirements-satisfied",
        ServerlessRequirementsSatisfied = "serverless-requirements-satisfied",
        OpenshiftAiRequirementsSatisfied = "openshift-ai-requirements-satisfied",
        AuthorinoRequirementsSatisfied = "authorino-requirements-satisfied",
        MtuValid = "mtu-valid",
        NmstateRequirementsSatisfied = "nmstate-requirements-satisfied",
        AmdGpuRequirementsSatisfied = "amd-gpu-requirements-satisfied",
        KmmRequirementsSatisfied = "kmm-requirements-satisfied",
        NodeHealthcheckRequirementsSatisfied = "node-healthcheck-requirements-satisfied",
        SelfNodeRemediationRequirementsSatisfied = "self-node-remediation-requirements-satisfied",
        FenceAgentsRemediationRequirementsSatisfied = "fence-agents-remediation-requirements-satisfied",
        NodeMaintenanceRequirementsSatisfied = "node-maintenance-requirements-satisfied",
        KubeDeschedulerRequirementsSatisfied = "kube-descheduler-requirements-satisfied",
        ClusterObservabilityRequirementsSatisfied = "cluster-observability-requirements-satisfied",
        NumaResourcesRequirementsSatisfied = "numa-resources-requirements-satisfied",
        OadpRequirementsSatisfied = "oadp-requirements-satisfied",
        MetallbRequirementsSatisfied = "metallb-requirements-satisfied",
        LokiRequirementsSatisfied = "loki-requirements-satisfied",
        OpenshiftLoggingRequirementsSatisfied = "openshift-logging-requirements-satisfied",
    }
}

wire_enum! {
    /// Values of `ClusterValidationId`.
    pub enum ClusterValidationId {
        MachineCidrDefined = "machine-cidr-defined",
        ClusterCidrDefined = "cluster-cidr-defined",
        ServiceCidrDefined = "service-cidr-defined",
        NoCidrsOverlapping = "no-cidrs-overlapping",
        NetworksSameAddressFamilies = "networks-same-address-families",
        NetworkPrefixValid = "network-prefix-valid",
        MachineCidrEqualsToCalculatedCidr = "machine-cidr-equals-to-calculated-cidr",
        ApiVipsDefined = "api-vips-defined",
        ApiVipsValid = "api-vips-valid",
        IngressVipsDefined = "ingress-vips-defined",
        IngressVipsValid = "ingress-vips-valid",
        AllHostsAreReadyToInstall = "all-hosts-are-ready-to-install",
        SufficientMastersCount = "sufficient-masters-count",
        DnsDomainDefined = "dns-domain-defined",
        PullSecretSet = "pull-secret-set",
        NtpServerConfigured = "ntp-server-configured",
        LsoRequirementsSatisfied = "lso-requirements-satisfied",
        OcsRequirementsSatisfied = "ocs-requirements-satisfied",
        OdfRequirementsSatisfied = "odf-requirements-satisfied",
        CnvRequirementsSatisfied = "cnv-requirements-satisfied",
        LvmRequirementsSatisfied = "lvm-requirements-satisfied",
        MceRequirementsSatisfied = "mce-requirements-satisfied",
        MtvRequirementsSatisfied = "mtv-requirements-satisfied",
        OscRequirementsSatisfied = "osc-requirements-satisfied",
        NetworkTypeValid = "network-type-valid",
        CustomManifestsRequirementsSatisfied = "custom-manifests-requirements-satisfied",
        PlatformRequirementsSatisfied = "platform-requirements-satisfied",
        NodeFeatureDiscoveryRequirementsSatisfied = "node-feature-discovery-requirements-satisfied",
        NvidiaGpuRequirementsSatisfied = "nvidia-gpu-requirements-satisfied",
        PipelinesRequirementsSatisfied = "pipelines-requirements-satisfied",
        ServicemeshRequirementsSatisfied = "servicemesh-requirements-satisfied",
        ServerlessRequirementsSatisfied = "serverless-requirements-satisfied",
        OpenshiftAiRequirementsSatisfied = "openshift-ai-requirements-satisfied",
        OpenshiftAiGpuRequirementsSatisfied = "openshift-ai-gpu-requirements-satisfied",
        AuthorinoRequirementsSatisfied = "authorino-requirements-satisfied",
        NmstateRequirementsSatisfied = "nmstate-requirements-satisfied",
        AmdGpuRequirementsSatisfied = "amd-gpu-requirements-satisfied",
        KmmRequirementsSatisfied = "kmm-requirements-satisfied",
        NodeHealthcheckRequirementsSatisfied = "node-healthcheck-requirements-satisfied",
        SelfNodeRemediationRequirementsSatisfied = "self-node-remediation-requirements-satisfied",
        FenceAgentsRemediationRequirementsSatisfied = "fence-agents-remediation-requirements-satisfied",
        NodeMaintenanceRequirementsSatisfied = "node-maintenance-requirements-satisfied",
        KubeDeschedulerRequirementsSatisfied = "kube-descheduler-requirements-satisfied",
        ClusterObservabilityRequirementsSatisfied = "cluster-observability-requirements-satisfied",
        NumaResourcesRequirementsSatisfied = "numa-resources-requirements-satisfied",
        OadpRequirementsSatisfied = "oadp-requirements-satisfied",
        MetallbRequirementsSatisfied = "metallb-requirements-satisfied",
        LokiRequirementsSatisfied = "loki-requirements-satisfied",
        OpenshiftLoggingRequirementsSatisfied = "openshift-logging-requirements-satisfied",
    }
}
