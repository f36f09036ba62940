//! The table of features: levels by version, exceptions by architecture and platform, features that exclude each other.
//!
//! Source: assisted-service, internal/featuresupport, features_misc.go, features_networking.go, features_platforms.go,
//! features_olm_operators.go; levels as its own code gives them for 4.8 to 4.23.

use model::support::FeatureId as Id;
use model::versions::CpuArchitecture;

use super::availability::{
    DEV, NO_ARCHITECTURE, NO_OCI, NO_PLATFORM, NO_VERSION, OK, TECH, UNSUPPORTED_PLATFORM,
};
use super::feature_support::{FeatureSupport, row};
use super::requested_platform::RequestedPlatform::{External, NoPlatform, Nutanix, Oci, Vsphere};

const ARM: &[CpuArchitecture] = &[CpuArchitecture::Arm64, CpuArchitecture::Aarch64];
const MAINFRAME: &[CpuArchitecture] = &[CpuArchitecture::S390x, CpuArchitecture::Ppc64le];
const S390X: &[CpuArchitecture] = &[CpuArchitecture::S390x];
const MULTI: &[CpuArchitecture] = &[CpuArchitecture::Multi];

/// Every feature, in the order of the API description.
#[rustfmt::skip]
pub static FEATURES: &[FeatureSupport] = &[
    row(Id::Sno, "Single Node OpenShift", &[(8, OK)])
        .on(&[(MAINFRAME, &[(12, NO_ARCHITECTURE), (13, DEV), (14, OK)])])
        .with(&[(&[Nutanix, Vsphere], &[(8, NO_PLATFORM)])])
        .excludes(&[
            Id::ClusterManagedNetworking, Id::FenceAgentsRemediation, Id::KubeDescheduler, Id::NodeHealthcheck,
            Id::NodeMaintenance, Id::NutanixIntegration, Id::Odf, Id::SelfNodeRemediation,
            Id::UserManagedLoadBalancer, Id::VipAutoAlloc, Id::VsphereIntegration,
        ])
        .excludes_before(19, &[Id::DualStackPrimaryIpv6]),
    row(Id::Tna, "TNA Clusters", &[(8, NO_VERSION), (19, TECH), (20, OK)])
        .with(&[
            (&[NoPlatform], &[(8, NO_PLATFORM), (22, OK)]),
            (&[Nutanix, Vsphere, External, Oci], &[(8, NO_PLATFORM)]),
        ])
        .excludes(&[Id::ExternalPlatform, Id::ExternalPlatformOci, Id::NutanixIntegration, Id::VsphereIntegration])
        .excludes_before(22, &[Id::NonePlatform]),
    row(Id::Tnf, "TNF Clusters", &[(8, NO_VERSION), (20, TECH), (22, OK)])
        .with(&[(&[Nutanix, Vsphere, External, Oci], &[(8, NO_PLATFORM)])])
        .excludes(&[Id::ExternalPlatform, Id::ExternalPlatformOci, Id::NutanixIntegration, Id::VsphereIntegration]),
    row(Id::VipAutoAlloc, "VIP Automatic Allocation", &[(8, DEV), (15, NO_VERSION)])
        .with(&[(&[External, Oci], &[(8, NO_PLATFORM)])])
        .excludes(&[
            Id::ExternalPlatform, Id::ExternalPlatformOci, Id::NonePlatform, Id::Sno, Id::UserManagedLoadBalancer,
        ]),
    row(Id::CustomManifest, "Custom Manifest", &[(8, OK)]),
    row(Id::SingleNodeExpansion, "Single Node Expansion", &[(8, NO_VERSION), (11, OK)])
        .on(&[(MAINFRAME, &[(12, NO_ARCHITECTURE), (13, DEV), (14, OK)])])
        .with(&[(&[Nutanix, Vsphere], &[(8, NO_VERSION), (11, NO_PLATFORM)])]),
    row(Id::Lvm, "Logical Volume Management", &[(8, NO_VERSION), (11, DEV), (12, OK)])
        .on(&[(MAINFRAME, &[(12, NO_ARCHITECTURE)])])
        .with(&[(&[Nutanix, Vsphere], &[(8, NO_VERSION), (11, NO_PLATFORM)])])
        .excludes(&[Id::NutanixIntegration, Id::Odf, Id::VsphereIntegration])
        .excludes_before(15, &[Id::ClusterManagedNetworking, Id::VipAutoAlloc]),
    row(Id::Odf, "OpenShift Data Foundation", &[(8, OK)])
        .on(&[(ARM, &[(10, NO_ARCHITECTURE)])])
        .with(&[(&[Oci], &[(8, NO_PLATFORM)])])
        .excludes(&[Id::ExternalPlatformOci, Id::Lvm, Id::Sno]),
    row(Id::Lso, "Local Storage Operator", &[(8, OK)])
        .on(&[(ARM, &[(10, NO_ARCHITECTURE)])]),
    row(Id::Cnv, "OpenShift Virtualization", &[(8, OK)])
        .on(&[(ARM, &[(10, NO_ARCHITECTURE), (14, DEV)]), (MAINFRAME, &[(12, NO_ARCHITECTURE)])])
        .with(&[(&[Nutanix, Vsphere], &[(8, NO_PLATFORM)])])
        .excludes(&[Id::NutanixIntegration, Id::VsphereIntegration]),
    row(Id::Mce, "multicluster engine", &[(8, NO_VERSION), (10, OK)])
        .with(&[(&[Nutanix], &[(8, NO_VERSION), (10, NO_PLATFORM)])])
        .excludes(&[Id::NutanixIntegration]),
    row(Id::Mtv, "OpenShift Migration Toolkit for Virtualization", &[(8, NO_VERSION), (14, OK)])
        .on(&[(ARM, &[(10, NO_ARCHITECTURE)]), (MAINFRAME, &[(12, NO_ARCHITECTURE)])])
        .with(&[(&[Nutanix, Vsphere], &[(8, NO_PLATFORM)])])
        .excludes(&[Id::NutanixIntegration, Id::VsphereIntegration]),
    row(Id::Osc, "OpenShift sandboxed containers", &[(8, NO_VERSION), (10, OK)])
        .on(&[(ARM, &[(10, NO_ARCHITECTURE)]), (MAINFRAME, &[(12, NO_ARCHITECTURE)])])
        .with(&[(&[Nutanix, Vsphere], &[(8, NO_PLATFORM)])])
        .excludes(&[Id::NutanixIntegration, Id::VsphereIntegration]),
    row(Id::NutanixIntegration, "Nutanix Platform Integration", &[(8, NO_VERSION), (11, DEV), (12, OK)])
        .on(&[(ARM, &[(10, NO_ARCHITECTURE)]), (MAINFRAME, &[(12, NO_ARCHITECTURE)])])
        .excludes(&[
            Id::Cnv, Id::DualStackPrimaryIpv6, Id::Lvm, Id::Mce, Id::Mtv, Id::Nmstate, Id::NonStandardHaControlPlane,
            Id::Osc, Id::Sno, Id::Tna, Id::Tnf, Id::UserManagedLoadBalancer, Id::UserManagedNetworking,
        ]),
    row(Id::BaremetalPlatform, "Baremetal Platform Integration", &[(8, OK)])
        .excludes(&[Id::UserManagedNetworking]),
    row(Id::NonePlatform, "None Platform Integration", &[(8, OK)])
        .excludes(&[Id::ClusterManagedNetworking, Id::UserManagedLoadBalancer, Id::VipAutoAlloc])
        .excludes_before(22, &[Id::Tna]),
    row(Id::VsphereIntegration, "vSphere Platform Integration", &[(8, OK)])
        .on(&[(MAINFRAME, &[(12, NO_ARCHITECTURE)])])
        .excludes(&[
            Id::Cnv, Id::DualStackPrimaryIpv6, Id::Lvm, Id::Mtv, Id::NonStandardHaControlPlane, Id::Osc, Id::Sno,
            Id::Tna, Id::Tnf,
        ])
        .excludes_before(13, &[Id::DualStack]),
    row(Id::DualStackVips, "Dual-Stack VIPs", &[(8, NO_VERSION), (12, OK)])
        .with(&[(&[Oci], &[(8, NO_VERSION), (12, NO_PLATFORM)])])
        .excludes(&[Id::ExternalPlatformOci, Id::UserManagedLoadBalancer]),
    row(Id::ClusterManagedNetworking, "Cluster Managed Networking", &[(8, OK)])
        .on(&[(ARM, &[(10, NO_ARCHITECTURE), (11, OK)]), (MAINFRAME, &[(12, NO_ARCHITECTURE)])])
        .with(&[(&[External, Oci], &[(8, NO_PLATFORM)])])
        .excludes(&[
            Id::ExternalPlatform, Id::ExternalPlatformOci, Id::NonePlatform, Id::Sno, Id::UserManagedNetworking,
        ]),
    row(Id::UserManagedNetworking, "User Managed Networking", &[(8, OK)])
        .with(&[(&[Nutanix], &[(8, NO_PLATFORM)])])
        .excludes(&[
            Id::BaremetalPlatform, Id::ClusterManagedNetworking, Id::NutanixIntegration, Id::UserManagedLoadBalancer,
        ]),
    row(Id::MinimalIso, "Minimal ISO", &[(8, OK)])
        .on(&[(S390X, &[(12, NO_ARCHITECTURE)])]),
    row(Id::FullIso, "Full ISO", &[(8, OK)])
        .with(&[(&[Oci], &[(8, NO_OCI)])])
        .excludes(&[Id::ExternalPlatformOci]),
    row(Id::ExternalPlatformOci, "Oracle Cloud Infrastructure external platform", &[(8, NO_VERSION), (14, OK)])
        .on(&[(MAINFRAME, &[(12, NO_ARCHITECTURE)])])
        .excludes(&[
            Id::ClusterManagedNetworking, Id::DualStackPrimaryIpv6, Id::DualStackVips, Id::FullIso, Id::Nmstate,
            Id::Odf, Id::OpenshiftAi, Id::Tna, Id::Tnf, Id::UserManagedLoadBalancer, Id::VipAutoAlloc,
        ]),
    row(Id::DualStack, "Dual-Stack", &[(8, OK)])
        .excludes(&[Id::UserManagedLoadBalancer])
        .excludes_before(13, &[Id::VsphereIntegration]),
    row(Id::PlatformManagedNetworking, "Platform managed networking", &[(8, UNSUPPORTED_PLATFORM)])
        .with(&[(&[NoPlatform, Oci], &[(8, OK)])]),
    row(Id::ExternalPlatform, "External Platform Integration", &[(8, NO_VERSION), (14, OK)])
        .excludes(&[
            Id::ClusterManagedNetworking, Id::DualStackPrimaryIpv6, Id::Nmstate, Id::Tna, Id::Tnf,
            Id::UserManagedLoadBalancer, Id::VipAutoAlloc,
        ]),
    row(Id::OvnNetworkType, "Openshift OVN", &[(8, OK)])
        .excludes(&[
            Id::CalicoNetworkType, Id::CiliumNetworkType, Id::CiscoAciNetworkType, Id::NoneNetworkType,
            Id::SdnNetworkType,
        ]),
    row(Id::SdnNetworkType, "Openshift SDN", &[(8, OK), (15, NO_VERSION)])
        .excludes(&[
            Id::CalicoNetworkType, Id::CiliumNetworkType, Id::CiscoAciNetworkType, Id::NoneNetworkType,
            Id::OvnNetworkType,
        ]),
    row(Id::CiliumNetworkType, "Cilium CNI", &[(8, OK)])
        .excludes(&[
            Id::CalicoNetworkType, Id::CiscoAciNetworkType, Id::NoneNetworkType, Id::OvnNetworkType,
            Id::SdnNetworkType,
        ]),
    row(Id::CalicoNetworkType, "Calico CNI", &[(8, OK)])
        .excludes(&[
            Id::CiliumNetworkType, Id::CiscoAciNetworkType, Id::NoneNetworkType, Id::OvnNetworkType,
            Id::SdnNetworkType,
        ]),
    row(Id::CiscoAciNetworkType, "Cisco ACI CNI", &[(8, OK)])
        .excludes(&[
            Id::CalicoNetworkType, Id::CiliumNetworkType, Id::NoneNetworkType, Id::OvnNetworkType, Id::SdnNetworkType,
        ]),
    row(Id::NoneNetworkType, "None CNI", &[(8, OK)])
        .excludes(&[
            Id::CalicoNetworkType, Id::CiliumNetworkType, Id::CiscoAciNetworkType, Id::OvnNetworkType,
            Id::SdnNetworkType,
        ]),
    row(Id::NodeFeatureDiscovery, "Node Feature Discovery", &[(8, DEV)])
        .on(&[(MAINFRAME, &[(12, NO_ARCHITECTURE)])]),
    row(Id::NvidiaGpu, "NVIDIA GPU", &[(8, DEV)])
        .on(&[(ARM, &[(10, NO_ARCHITECTURE)]), (MAINFRAME, &[(12, NO_ARCHITECTURE)])]),
    row(Id::Pipelines, "Pipelines", &[(8, DEV)]),
    row(Id::Servicemesh, "ServiceMesh", &[(8, DEV)]),
    row(Id::Serverless, "ServerLess", &[(8, DEV)]),
    row(Id::OpenshiftAi, "OpenShift AI", &[(8, NO_VERSION), (12, DEV)])
        .on(&[(ARM, &[(10, NO_ARCHITECTURE)]), (MAINFRAME, &[(12, NO_ARCHITECTURE)])])
        .with(&[(&[Oci], &[(8, NO_VERSION), (12, NO_PLATFORM)])])
        .excludes(&[Id::ExternalPlatformOci]),
    row(Id::NonStandardHaControlPlane, "Non-standard HA OCP Control Plane", &[(8, NO_VERSION), (18, OK)])
        .on(&[
            (ARM, &[(10, NO_ARCHITECTURE)]), (MAINFRAME, &[(12, NO_ARCHITECTURE)]), (MULTI, &[(11, NO_ARCHITECTURE)]),
        ])
        .with(&[(&[Nutanix, Vsphere], &[(8, NO_VERSION), (18, NO_PLATFORM)])])
        .excludes(&[Id::NutanixIntegration, Id::VsphereIntegration]),
    row(Id::Authorino, "Authorino", &[(8, DEV)])
        .on(&[(ARM, &[(10, NO_ARCHITECTURE)])]),
    row(Id::UserManagedLoadBalancer, "User Managed Load Balancer", &[(8, NO_VERSION), (16, OK)])
        .excludes(&[
            Id::DualStack, Id::DualStackPrimaryIpv6, Id::DualStackVips, Id::ExternalPlatform, Id::ExternalPlatformOci,
            Id::NonePlatform, Id::NutanixIntegration, Id::Sno, Id::UserManagedNetworking, Id::VipAutoAlloc,
        ]),
    row(Id::Nmstate, "Nmstate node network configuration", &[(8, NO_VERSION), (12, OK)])
        .on(&[(ARM, &[(10, NO_ARCHITECTURE)]), (MAINFRAME, &[(12, NO_ARCHITECTURE)])])
        .with(&[(&[Nutanix, External, Oci], &[(8, NO_PLATFORM)])])
        .excludes(&[Id::ExternalPlatform, Id::ExternalPlatformOci, Id::NutanixIntegration]),
    row(Id::AmdGpu, "AMD GPU", &[(8, DEV)])
        .on(&[(ARM, &[(10, NO_ARCHITECTURE)]), (MAINFRAME, &[(12, NO_ARCHITECTURE)])]),
    row(Id::Kmm, "Kernel Module Management", &[(8, DEV)]),
    row(Id::NodeHealthcheck, "Node Healthcheck", &[(8, OK)])
        .excludes(&[Id::Sno]),
    row(Id::SelfNodeRemediation, "Self Node Remediation", &[(8, TECH)])
        .excludes(&[Id::Sno]),
    row(Id::FenceAgentsRemediation, "Fence Agents Remediation", &[(8, OK)])
        .excludes(&[Id::Sno]),
    row(Id::NodeMaintenance, "Node Maintenance Operator", &[(8, OK)])
        .excludes(&[Id::Sno]),
    row(Id::KubeDescheduler, "Kube Descheduler", &[(8, OK)])
        .excludes(&[Id::Sno]),
    row(Id::ClusterObservability, "Cluster Observability", &[(8, OK)]),
    row(Id::NumaResources, "NUMA Resources", &[(8, OK)]),
    row(Id::Oadp, "OADP Operator", &[(8, OK)]),
    row(Id::Metallb, "MetalLB", &[(8, NO_VERSION), (11, OK)]),
    row(Id::DualStackPrimaryIpv6, "Dual-Stack Primary IPv6", &[(8, NO_VERSION), (12, TECH)])
        .with(&[(&[Nutanix, Vsphere, External, Oci], &[(8, NO_PLATFORM)])])
        .excludes(&[
            Id::ExternalPlatform, Id::ExternalPlatformOci, Id::NutanixIntegration, Id::UserManagedLoadBalancer,
            Id::VsphereIntegration,
        ])
        .excludes_before(19, &[Id::Sno]),
    row(Id::Loki, "Loki Operator", &[(8, NO_VERSION), (17, OK)]),
    row(Id::OpenshiftLogging, "Red Hat OpenShift Logging Operator", &[(8, NO_VERSION), (17, OK)]),
];

/// The row of a feature.
pub fn feature(id: Id) -> Option<&'static FeatureSupport> {
    FEATURES.iter().find(|row| row.id == id)
}
