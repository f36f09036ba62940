//! BareMetalHost. Source: metal3-io/baremetal-operator, apis/metal3.io/v1alpha1/baremetalhost_types.go.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::api_groups::ApiGroups;
use super::metadata::ObjectMetadata;

/// A host with a BMC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BareMetalHost {
    /// API version.
    pub api_version: String,
    /// `BareMetalHost`.
    pub kind: String,
    /// Metadata.
    #[serde(default)]
    pub metadata: ObjectMetadata,
    /// The wanted state.
    pub spec: HostSpec,
    /// The observed state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<HostStatusRecord>,
    /// Other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The wanted state of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostSpec {
    /// `metadata` or `disabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automated_cleaning_mode: Option<String>,
    /// The BMC.
    #[serde(default, skip_serializing_if = "BmcDetails::is_default")]
    pub bmc: BmcDetails,
    /// MAC address of the NIC that boots.
    #[serde(
        default,
        rename = "bootMACAddress",
        skip_serializing_if = "Option::is_none"
    )]
    pub boot_mac_address: Option<String>,
    /// `UEFI` (the default), `UEFISecureBoot` or `legacy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_mode: Option<String>,
    /// The object that uses the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer_ref: Option<ObjectReference>,
    /// Deployment other than by an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_deploy: Option<CustomDeploy>,
    /// Whether power stays on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disable_power_off: bool,
    /// Whether something else installed the host: only its power state is managed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub externally_provisioned: bool,
    /// Image to write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<HostImage>,
    /// `disabled`, `agent` or `fast`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inspection_mode: Option<String>,
    /// Wanted power state.
    pub online: bool,
    /// Choice of the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_device_hints: Option<RootDeviceHints>,
    /// Secret with the configuration of the first boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<SecretReference>,
    /// Other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The BMC of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BmcDetails {
    /// Address; see [`BmcAddress`](super::BmcAddress).
    pub address: String,
    /// Name of the secret, in the namespace of the host.
    pub credentials_name: String,
    /// Whether certificates of the BMC are not verified.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disable_certificate_verification: bool,
    /// Other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl BmcDetails {
    /// Whether the host is unmanaged. Source: baremetal-operator, `HasBMCDetails`.
    pub fn is_empty(&self) -> bool {
        self.address.is_empty() && self.credentials_name.is_empty()
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Reference of an object.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectReference {
    /// API version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Deployment other than by an image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomDeploy {
    /// Such as `install_coreos`.
    pub method: String,
}

/// Reference of a secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretReference {
    /// Name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// Image to write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HostImage {
    /// Checksum, or its URL.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub checksum: String,
    /// `md5`, `sha256`, `sha512` or `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum_type: Option<String>,
    /// `raw`, `qcow2`, `vdi`, `vmdk` or `live-iso`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// URL.
    pub url: String,
}

/// Choice of the disk: all hints have to match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RootDeviceHints {
    /// As `/dev/sda`, or below `/dev/disk/by-path/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// SCSI address, as `0:0:0:0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hctl: Option<String>,
    /// Units: GB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_size_gigabytes: Option<u64>,
    /// Part of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether it has platters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotational: Option<bool>,
    /// Serial number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial_number: Option<String>,
    /// Part of the vendor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// World wide name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wwn: Option<String>,
    /// Extension of the world wide name by the vendor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wwn_vendor_extension: Option<String>,
    /// World wide name with its extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wwn_with_extension: Option<String>,
}

/// The observed state of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HostStatusRecord {
    /// Errors since the last success.
    pub error_count: u64,
    /// Empty, or the last error.
    pub error_message: String,
    /// Empty, or the kind of the error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error_type: String,
    /// Such as `OK`.
    pub operational_status: String,
    /// Whether power is on.
    pub powered_on: bool,
    /// State of the installation.
    pub provisioning: ProvisioningRecord,
    /// Other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// State of the installation of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ProvisioningRecord {
    /// Id of the provisioner.
    #[serde(rename = "ID")]
    pub id: String,
    /// Such as `externally provisioned`.
    pub state: String,
    /// Other members.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl BareMetalHost {
    /// A host without BMC.
    pub fn new(groups: &ApiGroups, metadata: ObjectMetadata, spec: HostSpec) -> Self {
        Self {
            api_version: groups.host.clone(),
            kind: ApiGroups::HOST.to_owned(),
            metadata,
            spec,
            status: None,
            other: Map::new(),
        }
    }
}
