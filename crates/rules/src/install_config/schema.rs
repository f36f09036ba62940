//! The members that an override of the install-config may name, by their canonical spelling.

/// Shape of a value.
#[derive(Debug)]
pub(super) enum Shape {
    /// Anything; inner names are not checked.
    Any,
    /// An object with these members.
    Object(&'static [(&'static str, Shape)]),
    /// A list of these.
    List(&'static Shape),
}

use Shape::{Any, List, Object};

static CIDR: Shape = Object(&[("cidr", Any)]);
static CLUSTER_CIDR: Shape = Object(&[
    ("cidr", Any),
    ("hostPrefix", Any),
    ("hostSubnetLength", Any),
]);
static MIRROR: Shape = Object(&[("source", Any), ("mirrors", Any), ("sourcePolicy", Any)]);
static POOL: Shape = Object(POOL_MEMBERS);
static POOL_MEMBERS: &[(&str, Shape)] = &[
    ("name", Any),
    ("hyperthreading", Any),
    ("replicas", Any),
    ("architecture", Any),
    ("platform", Any),
    ("fencing", Any),
    ("diskSetup", Any),
];
static BAREMETAL: &[(&str, Shape)] = &[
    ("provisioningNetwork", Any),
    ("provisioningNetworkInterface", Any),
    ("provisioningNetworkCIDR", Any),
    ("provisioningDHCPRange", Any),
    ("provisioningHostIP", Any),
    ("clusterProvisioningIP", Any),
    ("bootstrapProvisioningIP", Any),
    ("clusterOSImage", Any),
    ("bootstrapOSImage", Any),
    ("externalBridge", Any),
    ("provisioningBridge", Any),
    ("libvirtURI", Any),
    ("apiVIP", Any),
    ("apiVIPs", Any),
    ("ingressVIP", Any),
    ("ingressVIPs", Any),
    ("hosts", Any),
    ("additionalNTPServers", Any),
    ("bmcVerifyCA", Any),
    ("dnsRecordsType", Any),
    ("loadBalancer", Any),
    ("defaultMachinePlatform", Any),
];

/// The whole file.
pub(super) static ROOT: Shape = Object(&[
    ("apiVersion", Any),
    ("baseDomain", Any),
    ("metadata", Object(&[("name", Any)])),
    ("compute", List(&POOL)),
    ("controlPlane", Object(POOL_MEMBERS)),
    ("arbiter", Object(POOL_MEMBERS)),
    (
        "networking",
        Object(&[
            ("networkType", Any),
            ("clusterNetwork", List(&CLUSTER_CIDR)),
            ("clusterNetworks", List(&CLUSTER_CIDR)),
            ("machineNetwork", List(&CIDR)),
            ("machineCIDR", Any),
            ("serviceNetwork", Any),
            ("serviceCIDR", Any),
            ("clusterNetworkMTU", Any),
            ("ovnKubernetesConfig", Any),
        ]),
    ),
    (
        "proxy",
        Object(&[("httpProxy", Any), ("httpsProxy", Any), ("noProxy", Any)]),
    ),
    (
        "platform",
        Object(&[
            ("baremetal", Object(BAREMETAL)),
            ("none", Any),
            ("vsphere", Any),
            ("nutanix", Any),
            ("external", Any),
        ]),
    ),
    ("bootstrapInPlace", Object(&[("installationDisk", Any)])),
    ("fips", Any),
    ("pullSecret", Any),
    ("sshKey", Any),
    ("additionalTrustBundle", Any),
    ("additionalTrustBundlePolicy", Any),
    ("imageContentSources", List(&MIRROR)),
    ("imageDigestSources", List(&MIRROR)),
    ("featureSet", Any),
    ("featureGates", Any),
    ("cpuPartitioningMode", Any),
    (
        "capabilities",
        Object(&[
            ("baselineCapabilitySet", Any),
            ("additionalEnabledCapabilities", Any),
        ]),
    ),
    ("osImageStream", Any),
    ("pki", Any),
    ("operatorPublishingStrategy", Any),
    ("publish", Any),
    ("credentialsMode", Any),
]);
