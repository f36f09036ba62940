//! Expected hosts: the machines that an infra-env waits for, and their comparison with those that registered.
//!
//! No other installer has them. Names of disk hints follow the agent-based installer's `rootDeviceHints`.

use serde::{Deserialize, Serialize};

use crate::host::values::HostRole;
use crate::ids::HostId;
use crate::time::DateTime;
use crate::wire::{is_zero, null_as_default, wire_enum};

/// Body that replaces the list of an infra-env.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedHostsParams {
    pub hosts: Vec<ExpectedHost>,
}

/// A machine, by its serial number, its MAC addresses, or both; and the settings that it takes over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExpectedHost {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub serial_number: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mac_addresses: Vec<String>,
    /// Name of the host; empty leaves it as it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<HostRole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installation_disk: Option<DiskHints>,
}

/// Properties of the installation disk: all that are set have to match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiskHints {
    /// Path of the device, by kernel name or by path.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub device_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hctl: String,
    /// Part of the model's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Part of the vendor's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub vendor: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub serial_number: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub min_size_gigabytes: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub wwn: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotational: Option<bool>,
}

/// Member of a host whose infra-env expects hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostExpectation {
    /// The entry that it matches; none for an unexpected host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<ExpectedHost>,
    /// Number of expected hosts.
    pub listed: i64,
}

/// Member of a host whose id two machines use, or used one after the other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdentityChange {
    /// MAC addresses of the machine that reported last.
    #[serde(deserialize_with = "null_as_default")]
    pub mac_addresses: Vec<String>,
    /// MAC addresses of the other machine.
    #[serde(deserialize_with = "null_as_default")]
    pub other_mac_addresses: Vec<String>,
    /// Changes from one to the other: a second one proves two machines.
    pub changes: i64,
    /// Time of the last change.
    pub changed_at: DateTime,
}

/// The list of an infra-env, compared with its hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExpectedHostList {
    #[serde(deserialize_with = "null_as_default")]
    pub hosts: Vec<ComparedHost>,
}

/// An expected host, a registered one, or both.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ComparedHost {
    pub state: ExpectedHostState,
    /// The entry; absent for an unexpected host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<ExpectedHost>,
    /// Id of the registered host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_id: Option<HostId>,
    /// Name of the registered host.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host_name: String,
    /// Differences between the entry and the registered host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
}

wire_enum! {
    /// Values of `ExpectedHostState`.
    pub enum ExpectedHostState {
        Missing = "missing",
        Present = "present",
        Unexpected = "unexpected",
    }
}
