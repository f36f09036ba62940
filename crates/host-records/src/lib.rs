//! Records of hosts: BareMetalHost, its credential Secret, and Machine, as files with YAML or JSON documents.
//!
//! A [`RecordFile`] keeps every document with its positions and unknown members, in file order. The typed records read
//! the members that Atoll acts on and keep the others.

mod api_groups;
mod bmc_access;
mod bmc_address;
mod bmc_scheme;
pub mod check;
mod credentials;
mod file;
mod host;
pub mod host_state;
pub mod inventory;
mod mac_address;
mod machine;
mod metadata;
mod name;
pub mod network;
mod node;
mod recorded_bmcs;
mod split;
mod template;
mod tree;

pub use api_groups::ApiGroups;
pub use bmc_access::{BmcRecordError, bmc_access, bmc_endpoint};
pub use bmc_address::{BmcAddress, BmcAddressError, NotDriven};
pub use bmc_scheme::{BmcFamily, BmcScheme, BmcTransport, BootMethod, SCHEMES};
pub use credentials::{CredentialError, CredentialSecret, MAX_CREDENTIAL};
pub use file::{BrokenDocument, MAX_DOCUMENTS, MAX_FILE, MAX_TEXT, MAX_VALUES, RecordFile};
pub use host::{
    BareMetalHost, BmcDetails, CustomDeploy, HostImage, HostSpec, HostStatusRecord,
    ObjectReference, ProvisioningRecord, RootDeviceHints, SecretReference,
};
pub use mac_address::{MacAddress, MacAddressError};
pub use machine::{
    MachineProviderSpec, MachineRecord, MachineSpec, MachineStatus, NodeAddress, ProviderImage,
};
pub use metadata::ObjectMetadata;
pub use name::{LABEL, NameForm, SUBDOMAIN};
pub use node::{DecodeError, RecordNode};
pub use recorded_bmcs::{BootNicError, RecordedBmc, recorded_bmcs};
pub use redfish::SystemPathError;
pub use template::template;
pub use tree::{json_text, yaml_text};

pub(crate) use credentials::decode as decode_base64;
pub(crate) use node::join;
