//! Members of both files, with the effect of each here.
//!
//! Source: openshift/installer, pkg/types/installconfig.go, pkg/types/baremetal/platform.go,
//! pkg/types/agent/agent_config_type.go.

/// A member of an object.
#[derive(Debug)]
pub(crate) struct Member {
    /// Name as the installer writes it; it reads any letter case.
    pub(crate) name: &'static str,
    /// Shape of its value.
    pub(crate) kind: MemberKind,
    /// Its effect.
    pub(crate) effect: MemberEffect,
}

/// Shape of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MemberKind {
    /// Text; numbers and booleans are read as they are written.
    Text,
    /// A whole number.
    Integer,
    /// True or false.
    Bool,
    /// An object with these members.
    Object(&'static [Member]),
    /// A list of these.
    List(&'static MemberKind),
    /// Anything.
    Any,
}

/// Effect of a member.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MemberEffect {
    /// Read into the declaration.
    Declared,
    /// Overrides the generated install-config.
    Override,
    /// None, neither here nor in the installer.
    None,
    /// None here; a note with this text says so, unless the value is empty.
    Note(&'static str),
    /// Refused with this remedy.
    Refused(&'static str),
}

use MemberEffect::{Declared, Note, Override, Refused};
use MemberKind::{Any, Bool, Integer, List, Object, Text};

const fn member(name: &'static str, kind: MemberKind, effect: MemberEffect) -> Member {
    Member { name, kind, effect }
}

const fn declared(name: &'static str, kind: MemberKind) -> Member {
    member(name, kind, Declared)
}

const fn overrides(name: &'static str, kind: MemberKind) -> Member {
    member(name, kind, Override)
}

const fn without_effect(name: &'static str) -> Member {
    member(name, Any, MemberEffect::None)
}

const CLOUD: &str = "belongs to clouds, which this service does not install on: leave it out";
const PROVISIONED: &str = "has no effect: the installer creates no machines and no bootstrap machine here, hosts boot a discovery image";
const IMAGE_SERVICE: &str =
    "has no effect: the image service delivers the files, under the address in its settings";
const POOL_PLATFORM: &str =
    "has no effect: machines of a pool are the hosts that boot the discovery image";

/// Members of Kubernetes' metadata. Source: apimachinery, meta/v1, ObjectMeta.
const METADATA: &[Member] = &[
    declared("name", Text),
    without_effect("namespace"),
    without_effect("creationTimestamp"),
    without_effect("labels"),
    without_effect("annotations"),
    without_effect("generateName"),
    without_effect("selfLink"),
    without_effect("uid"),
    without_effect("resourceVersion"),
    without_effect("generation"),
    without_effect("deletionTimestamp"),
    without_effect("deletionGracePeriodSeconds"),
    without_effect("ownerReferences"),
    without_effect("finalizers"),
    without_effect("managedFields"),
];

const POOL: &[Member] = &[
    declared("name", Text),
    declared("replicas", Integer),
    declared("architecture", Text),
    declared("hyperthreading", Text),
    member("platform", Any, Note(POOL_PLATFORM)),
    overrides("fencing", Object(FENCING)),
    overrides("diskSetup", Any),
];

const FENCING: &[Member] = &[declared("credentials", List(&Object(FENCING_CREDENTIAL)))];

const FENCING_CREDENTIAL: &[Member] = &[
    declared("hostName", Text),
    declared("macAddress", Text),
    declared("address", Text),
    declared("username", Text),
    declared("password", Text),
    declared("certificateVerification", Text),
];

const ARBITER_POOL: &[Member] = &[
    declared("name", Text),
    declared("replicas", Integer),
    declared("architecture", Text),
    declared("hyperthreading", Text),
    member("platform", Any, Note(POOL_PLATFORM)),
    member(
        "fencing",
        Any,
        Refused("belongs to controlPlane, and to clusters without an arbiter"),
    ),
    overrides("diskSetup", Any),
];

/// Of a list: its items cannot be overridden one by one.
const WORKER_POOL: &[Member] = &[
    declared("name", Text),
    declared("replicas", Integer),
    declared("architecture", Text),
    declared("hyperthreading", Text),
    member("platform", Any, Note(POOL_PLATFORM)),
    member(
        "fencing",
        Any,
        Refused("belongs to controlPlane: the installer refuses it here, too"),
    ),
    member(
        "diskSetup",
        Any,
        Refused("is possible for controlPlane and arbiter only: leave it out"),
    ),
];

const CIDRS: &[Member] = &[declared("cidr", Text)];

const CLUSTER_NETWORK: &[Member] = &[
    declared("cidr", Text),
    declared("hostPrefix", Integer),
    declared("hostSubnetLength", Integer),
];

const NETWORKING: &[Member] = &[
    declared("networkType", Text),
    declared("type", Text),
    declared("machineNetwork", List(&Object(CIDRS))),
    declared("machineCIDR", Text),
    declared("clusterNetwork", List(&Object(CLUSTER_NETWORK))),
    declared("clusterNetworks", List(&Object(CLUSTER_NETWORK))),
    declared("serviceNetwork", List(&Text)),
    declared("serviceCIDR", Text),
    overrides("ovnKubernetesConfig", Object(OVN)),
    declared("clusterNetworkMTU", Integer),
];

const OVN: &[Member] = &[declared("ipv4", Object(OVN_IPV4))];

const OVN_IPV4: &[Member] = &[declared("internalJoinSubnet", Text)];

const CAPABILITIES: &[Member] = &[
    declared("baselineCapabilitySet", Text),
    declared("additionalEnabledCapabilities", List(&Text)),
];

const DIGEST_SOURCE: &[Member] = &[
    declared("source", Text),
    declared("mirrors", List(&Text)),
    declared("sourcePolicy", Text),
];

/// The older member has no policy.
const CONTENT_SOURCE: &[Member] = &[declared("source", Text), declared("mirrors", List(&Text))];

const LOAD_BALANCER: &[Member] = &[declared("type", Text)];

const BMC: &[Member] = &[
    declared("address", Text),
    declared("username", Text),
    declared("password", Text),
    declared("disableCertificateVerification", Bool),
];

const HINTS: &[Member] = &[
    declared("deviceName", Text),
    declared("hctl", Text),
    declared("model", Text),
    declared("vendor", Text),
    declared("serialNumber", Text),
    declared("minSizeGigabytes", Integer),
    declared("wwn", Text),
    declared("rotational", Bool),
    member(
        "wwnWithExtension",
        Text,
        Refused("is not read by the installer either: write wwn"),
    ),
    member(
        "wwnVendorExtension",
        Text,
        Refused("is not read by the installer either: write wwn"),
    ),
];

const INSTALL_HOST: &[Member] = &[
    declared("name", Text),
    declared("role", Text),
    declared("bootMACAddress", Text),
    without_effect("hardwareProfile"),
    declared("bootMode", Text),
    declared("rootDeviceHints", Object(HINTS)),
    declared("networkConfig", Any),
    declared("bmc", Object(BMC)),
];

const BAREMETAL: &[Member] = &[
    declared("apiVIPs", List(&Text)),
    declared("apiVIP", Text),
    declared("ingressVIPs", List(&Text)),
    declared("ingressVIP", Text),
    declared("loadBalancer", Object(LOAD_BALANCER)),
    declared("hosts", List(&Object(INSTALL_HOST))),
    overrides("provisioningNetwork", Text),
    overrides("provisioningNetworkCIDR", Text),
    overrides("provisioningNetworkInterface", Text),
    overrides("provisioningDHCPRange", Text),
    overrides("clusterProvisioningIP", Text),
    overrides("bootstrapProvisioningIP", Text),
    overrides("provisioningHostIP", Text),
    member("provisioningDHCPExternal", Any, Note(PROVISIONED)),
    member("provisioningNetworkGateway", Any, Note(PROVISIONED)),
    overrides("additionalNTPServers", List(&Text)),
    overrides("bmcVerifyCA", Text),
    overrides("dnsRecordsType", Text),
    member("libvirtURI", Any, Note(PROVISIONED)),
    member("externalBridge", Any, Note(PROVISIONED)),
    member("provisioningBridge", Any, Note(PROVISIONED)),
    member("externalMACAddress", Any, Note(PROVISIONED)),
    member("provisioningMACAddress", Any, Note(PROVISIONED)),
    member("bootstrapOSImage", Any, Note(PROVISIONED)),
    member("clusterOSImage", Any, Note(PROVISIONED)),
    member("bootstrapExternalStaticIP", Any, Note(PROVISIONED)),
    member("bootstrapExternalStaticGateway", Any, Note(PROVISIONED)),
    member("bootstrapExternalStaticDNS", Any, Note(PROVISIONED)),
    member("defaultMachinePlatform", Any, Note(PROVISIONED)),
];

const EXTERNAL: &[Member] = &[
    declared("platformName", Text),
    declared("cloudControllerManager", Text),
];

/// Members of vSphere; those without a record override the placeholders of the generated install-config.
const VSPHERE: &[Member] = &[
    declared("apiVIPs", List(&Text)),
    declared("apiVIP", Text),
    declared("ingressVIPs", List(&Text)),
    declared("ingressVIP", Text),
    declared("loadBalancer", Object(LOAD_BALANCER)),
    overrides("vcenters", Any),
    overrides("failureDomains", Any),
    overrides("vCenter", Any),
    overrides("username", Any),
    overrides("password", Any),
    overrides("datacenter", Any),
    overrides("defaultDatastore", Any),
    overrides("cluster", Any),
    overrides("folder", Any),
    overrides("network", Any),
    overrides("resourcePool", Any),
    overrides("nodeNetworking", Any),
    member("diskType", Any, Note(PROVISIONED)),
    member("clusterOSImage", Any, Note(PROVISIONED)),
    member("defaultMachinePlatform", Any, Note(PROVISIONED)),
    member("hosts", Any, Note(PROVISIONED)),
];

/// Members of Nutanix, as those of vSphere.
const NUTANIX: &[Member] = &[
    declared("apiVIPs", List(&Text)),
    declared("apiVIP", Text),
    declared("ingressVIPs", List(&Text)),
    declared("ingressVIP", Text),
    declared("loadBalancer", Object(LOAD_BALANCER)),
    overrides("prismCentral", Any),
    overrides("prismElements", Any),
    overrides("subnetUUIDs", Any),
    overrides("failureDomains", Any),
    overrides("prismAPICallTimeout", Any),
    member("clusterOSImage", Any, Note(PROVISIONED)),
    member("preloadedOSImageName", Any, Note(PROVISIONED)),
    member("defaultMachinePlatform", Any, Note(PROVISIONED)),
];

const PLATFORM: &[Member] = &[
    declared("none", Object(&[])),
    declared("baremetal", Object(BAREMETAL)),
    declared("external", Object(EXTERNAL)),
    declared("vsphere", Object(VSPHERE)),
    declared("nutanix", Object(NUTANIX)),
    member("aws", Any, Refused(CLOUD)),
    member("azure", Any, Refused(CLOUD)),
    member("gcp", Any, Refused(CLOUD)),
    member("ibmcloud", Any, Refused(CLOUD)),
    member("openstack", Any, Refused(CLOUD)),
    member("powervs", Any, Refused(CLOUD)),
    member("alibabacloud", Any, Refused(CLOUD)),
    member("ovirt", Any, Refused(CLOUD)),
    member("libvirt", Any, Refused(CLOUD)),
    member("kubevirt", Any, Refused(CLOUD)),
];

const PROXY: &[Member] = &[
    declared("httpProxy", Text),
    declared("httpsProxy", Text),
    declared("noProxy", Text),
];

const IN_PLACE: &[Member] = &[declared("installationDisk", Text)];

/// Members of install-config.yaml.
pub(crate) const INSTALL_CONFIG: &[Member] = &[
    declared("apiVersion", Text),
    without_effect("kind"),
    declared("metadata", Object(METADATA)),
    declared("baseDomain", Text),
    declared("controlPlane", Object(POOL)),
    declared("compute", List(&Object(WORKER_POOL))),
    declared("arbiter", Object(ARBITER_POOL)),
    declared("networking", Object(NETWORKING)),
    declared("platform", Object(PLATFORM)),
    declared("proxy", Object(PROXY)),
    declared("pullSecret", Text),
    declared("sshKey", Text),
    declared("additionalTrustBundle", Text),
    declared("bootstrapInPlace", Object(IN_PLACE)),
    declared("publish", Text),
    declared("credentialsMode", Text),
    overrides("additionalTrustBundlePolicy", Text),
    overrides("capabilities", Object(CAPABILITIES)),
    overrides("cpuPartitioningMode", Text),
    overrides("featureGates", List(&Text)),
    overrides("featureSet", Text),
    overrides("fips", Bool),
    overrides("imageContentSources", List(&Object(CONTENT_SOURCE))),
    overrides("imageDigestSources", List(&Object(DIGEST_SOURCE))),
    overrides("osImageStream", Text),
    overrides("pki", Any),
    member("operatorPublishingStrategy", Any, Note(CLOUD)),
    member("controlPlaneMachineSet", Any, Note(PROVISIONED)),
];

const INTERFACE: &[Member] = &[declared("name", Text), declared("macAddress", Text)];

const AGENT_HOST: &[Member] = &[
    declared("hostname", Text),
    declared("role", Text),
    declared("rootDeviceHints", Object(HINTS)),
    declared("interfaces", List(&Object(INTERFACE))),
    declared("networkConfig", Any),
    declared("bmc", Object(BMC)),
];

/// Members of agent-config.yaml.
pub(crate) const AGENT_CONFIG: &[Member] = &[
    declared("apiVersion", Text),
    without_effect("kind"),
    declared("metadata", Object(METADATA)),
    declared("rendezvousIP", Text),
    declared("additionalNTPSources", List(&Text)),
    declared("minimalISO", Bool),
    // An addition to the installer's file.
    declared("embeddedAgent", Bool),
    declared("hosts", List(&Object(AGENT_HOST))),
    member("bootArtifactsBaseURL", Text, Note(IMAGE_SERVICE)),
    member("ipxeBaseURL", Text, Note(IMAGE_SERVICE)),
];

/// Places of a member in both files, at which its name is right; none for a name that many objects have.
pub(crate) fn places_of(name: &str) -> Vec<String> {
    let mut places = Vec::new();
    for (table, suffix) in [
        (INSTALL_CONFIG, ""),
        (AGENT_CONFIG, " of agent-config.yaml"),
    ] {
        let mut found = Vec::new();
        add_places(table, name, "", &mut found);
        places.extend(found.into_iter().map(|place| place + suffix));
    }
    if places.len() > MOST_PLACES {
        places.clear();
    }
    places
}

/// Most places of a name that still help.
const MOST_PLACES: usize = 2;

fn add_places(table: &'static [Member], name: &str, above: &str, places: &mut Vec<String>) {
    for row in table {
        let path = if above.is_empty() {
            row.name.to_owned()
        } else {
            format!("{above}.{}", row.name)
        };
        if row.name.eq_ignore_ascii_case(name) && !matches!(row.effect, MemberEffect::None) {
            places.push(path);
            continue;
        }
        let (inner, list) = match row.kind {
            Object(inner) => (inner, ""),
            List(Object(inner)) => (*inner, "[]"),
            _ => continue,
        };
        add_places(inner, name, &(path + list), places);
    }
}

/// Paths of the install-config's members that override the generated one.
pub(crate) fn override_paths() -> Vec<Vec<&'static str>> {
    let mut paths = Vec::new();
    add_override_paths(INSTALL_CONFIG, &mut Vec::new(), &mut paths);
    // Hosts with BMCs, which the declaration reads.
    paths.push(vec!["platform", "baremetal", "hosts"]);
    paths
}

fn add_override_paths(
    members: &'static [Member],
    above: &mut Vec<&'static str>,
    paths: &mut Vec<Vec<&'static str>>,
) {
    for member in members {
        above.push(member.name);
        match (member.effect, member.kind) {
            (Override, _) => paths.push(above.clone()),
            (Declared, Object(inner)) => add_override_paths(inner, above, paths),
            _ => {}
        }
        above.pop();
    }
}
