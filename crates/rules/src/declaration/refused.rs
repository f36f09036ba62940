//! Members of the files that are known and refused, each with its remedy.

use model::Error;
use serde_json::Value;

use crate::input;

const CLOUD: &str = "belongs to clouds, which this service does not install on: leave it out";
const PROVISIONING: &str = "belongs to installations with a provisioning network, here hosts boot a discovery image: leave it out";
const DEPRECATED: &str = "is deprecated: use the member that replaced it";

/// Path of the member, and the reason with the remedy.
pub(super) static INSTALL_CONFIG: &[(&str, &str)] = &[
    ("metadata.namespace", "has no meaning here: leave it out"),
    ("credentialsMode", CLOUD),
    ("platform.aws", CLOUD),
    ("platform.azure", CLOUD),
    ("platform.gcp", CLOUD),
    ("platform.ibmcloud", CLOUD),
    ("platform.openstack", CLOUD),
    ("platform.powervs", CLOUD),
    (
        "platform.vsphere",
        "is set by PATCH of the cluster: declare none or baremetal",
    ),
    (
        "platform.nutanix",
        "is set by PATCH of the cluster: declare none or baremetal",
    ),
    (
        "platform.external",
        "is set by PATCH of the cluster: declare none or baremetal",
    ),
    (
        "platform.baremetal.hosts",
        "has no effect: declare the hosts in agent-config.yaml",
    ),
    ("platform.baremetal.provisioningNetwork", PROVISIONING),
    ("platform.baremetal.provisioningNetworkCIDR", PROVISIONING),
    (
        "platform.baremetal.provisioningNetworkInterface",
        PROVISIONING,
    ),
    ("platform.baremetal.provisioningDHCPRange", PROVISIONING),
    ("platform.baremetal.bootstrapProvisioningIP", PROVISIONING),
    ("platform.baremetal.clusterProvisioningIP", PROVISIONING),
    ("platform.baremetal.externalBridge", PROVISIONING),
    ("platform.baremetal.provisioningBridge", PROVISIONING),
    ("platform.baremetal.libvirtURI", PROVISIONING),
    ("networking.machineCIDR", DEPRECATED),
    ("networking.type", DEPRECATED),
    ("networking.serviceCIDR", DEPRECATED),
    ("networking.clusterNetworks", DEPRECATED),
    (
        "bootstrapInPlace",
        "is set by a single master: declare controlPlane.replicas 1",
    ),
    (
        "arbiter",
        "is declared by the role of a host in agent-config.yaml: leave it out",
    ),
];

/// The same of the other file.
pub(super) static AGENT_CONFIG: &[(&str, &str)] = &[
    (
        "rendezvousIP",
        "names the host that runs the installer, and here this service does: leave it out",
    ),
    (
        "ipxeBaseURL",
        "is the address of the image service, a setting of this service: leave it out",
    ),
    (
        "bootArtifactsBaseURL",
        "is the address of the image service, a setting of this service: leave it out",
    ),
    ("metadata.namespace", "has no meaning here: leave it out"),
];

/// Errors: Invalid – a refused member is present.
pub(super) fn check(file: &str, value: &Value, table: &[(&str, &str)]) -> Result<(), Error> {
    for (path, reason) in table {
        let mut found = Some(value);
        for member in path.split('.') {
            found = found.and_then(|value| value.get(member));
        }
        if found.is_some_and(|value| !value.is_null()) {
            return Err(Error::invalid(format!("{file}: {path}"), *reason));
        }
    }
    Ok(())
}

/// The error about one value.
pub(super) fn value(file: &str, path: &str, value: &str, remedy: &str) -> Error {
    input::refuse(&format!("{file}: {path}"), value, remedy)
}
