//! Machine, with the provider's part for hosts with BMCs.
//!
//! Source: openshift/api, machine/v1beta1; openshift/cluster-api-provider-baremetal, pkg/apis/baremetal/v1alpha1.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::api_groups::ApiGroups;
use super::host::{CustomDeploy, ObjectReference, SecretReference};
use super::metadata::ObjectMetadata;

/// A machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineRecord {
    /// API version.
    pub api_version: String,
    /// `Machine`.
    pub kind: String,
    /// Metadata.
    #[serde(default)]
    pub metadata: ObjectMetadata,
    /// The wanted state.
    #[serde(default)]
    pub spec: MachineSpec,
    /// The observed state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<MachineStatus>,
    /// Other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The wanted state of a machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MachineSpec {
    /// `{value: …}` with a [`MachineProviderSpec`].
    pub provider_spec: Value,
    /// Other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The provider's part of a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineProviderSpec {
    /// API version.
    pub api_version: String,
    /// Deployment other than by an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_deploy: Option<CustomDeploy>,
    /// Labels of the hosts that suit.
    #[serde(default)]
    pub host_selector: Map<String, Value>,
    /// Image to write; empty with a custom deployment.
    #[serde(default)]
    pub image: ProviderImage,
    /// `BareMetalMachineProviderSpec`.
    pub kind: String,
    /// Secret with the configuration of the first boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<SecretReference>,
    /// Other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Image of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProviderImage {
    /// Checksum, or its URL.
    pub checksum: String,
    /// URL.
    pub url: String,
}

/// The observed state of a machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MachineStatus {
    /// Addresses of the node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<NodeAddress>,
    /// The node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_ref: Option<ObjectReference>,
    /// `Provisioning`, `Provisioned`, `Running`, `Deleting` or `Failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// An address of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeAddress {
    /// Address or name.
    pub address: String,
    /// `InternalIP`, `Hostname` or `InternalDNS`.
    #[serde(rename = "type")]
    pub kind: String,
}

impl MachineRecord {
    /// A machine of a provider's part.
    pub fn new(
        groups: &ApiGroups,
        metadata: ObjectMetadata,
        provider: &MachineProviderSpec,
    ) -> Self {
        Self {
            api_version: groups.machine.clone(),
            kind: ApiGroups::MACHINE.to_owned(),
            metadata,
            spec: MachineSpec {
                provider_spec: json!({ "value": provider }),
                other: Map::new(),
            },
            status: None,
            other: Map::new(),
        }
    }

    /// The provider's part.
    ///
    /// Errors: it is missing or has another shape.
    pub fn provider(&self) -> Result<MachineProviderSpec, serde_json::Error> {
        MachineProviderSpec::deserialize(&self.spec.provider_spec["value"])
    }
}
