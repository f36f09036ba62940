//! The records of Ignition 3.0 to 3.6, as far as Atoll writes or checks them.
//!
//! Every record keeps the members that it has no field for in `other`, so nothing a user wrote is lost.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use crate::version::SpecVersion;

/// Members without a field of their own.
pub type Other = Map<String, Value>;

/// Permission bits as Ignition writes them: a decimal number, so `Mode(0o644)` is 420 on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mode(pub u32);

/// A whole configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IgnitionConfig {
    /// Version, other configurations, proxy, trusted certificates.
    pub ignition: Ignition,
    /// Users and groups.
    #[serde(default, skip_serializing_if = "is_default")]
    pub passwd: Passwd,
    /// Files, links, directories.
    #[serde(default, skip_serializing_if = "is_default")]
    pub storage: Storage,
    /// Units.
    #[serde(default, skip_serializing_if = "is_default")]
    pub systemd: Systemd,
    /// Members not named here, as `kernelArguments`.
    #[serde(flatten)]
    pub other: Other,
}

/// Member `ignition`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ignition {
    /// Version of the specification.
    pub version: SpecVersion,
    /// Configurations to fetch.
    #[serde(default, skip_serializing_if = "is_default")]
    pub config: References,
    /// Proxy for fetching.
    #[serde(default, skip_serializing_if = "is_default")]
    pub proxy: IgnitionProxy,
    /// Certificates to trust while fetching.
    #[serde(default, skip_serializing_if = "is_default")]
    pub security: Security,
    /// Members not named here, as `timeouts`.
    #[serde(flatten)]
    pub other: Other,
}

/// Member `ignition.config`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct References {
    /// Configurations merged over this one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub merge: Vec<Resource>,
    /// The configuration to use instead of this one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub replace: Option<Resource>,
    /// Members not named here.
    #[serde(flatten)]
    pub other: Other,
}

/// Something to fetch: the bytes of a file, a certificate or another configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// URL: data, http, https, tftp, s3 or gs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// `gzip`, or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<String>,
    /// Headers of the request.
    #[serde(default, rename = "httpHeaders", skip_serializing_if = "Vec::is_empty")]
    pub http_headers: Vec<HttpHeader>,
    /// Expected hash of the bytes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub verification: Verification,
    /// Members not named here.
    #[serde(flatten)]
    pub other: Other,
}

/// A header of a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HttpHeader {
    /// Name.
    pub name: String,
    /// Value; without one, merging removes the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Member `verification`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// `sha512-<hex>` or, since 3.1, `sha256-<hex>`, of the decompressed bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Members not named here.
    #[serde(flatten)]
    pub other: Other,
}

/// Member `ignition.proxy`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IgnitionProxy {
    /// Proxy for http URLs.
    #[serde(default, rename = "httpProxy", skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    /// Proxy for https URLs.
    #[serde(
        default,
        rename = "httpsProxy",
        skip_serializing_if = "Option::is_none"
    )]
    pub https_proxy: Option<String>,
    /// Hosts, domains and networks reached directly.
    #[serde(default, rename = "noProxy", skip_serializing_if = "Vec::is_empty")]
    pub no_proxy: Vec<String>,
    /// Members not named here.
    #[serde(flatten)]
    pub other: Other,
}

/// Member `ignition.security`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Security {
    /// TLS.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tls: Tls,
    /// Members not named here.
    #[serde(flatten)]
    pub other: Other,
}

/// Member `ignition.security.tls`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tls {
    /// Certificates (PEM) trusted besides the system's.
    #[serde(
        default,
        rename = "certificateAuthorities",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub certificate_authorities: Vec<Resource>,
    /// Members not named here.
    #[serde(flatten)]
    pub other: Other,
}

/// Member `passwd`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Passwd {
    /// Users to create or change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<User>,
    /// Members not named here, as `groups`.
    #[serde(flatten)]
    pub other: Other,
}

/// A user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct User {
    /// Login name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Crypt hash; `!` allows no password.
    #[serde(
        default,
        rename = "passwordHash",
        skip_serializing_if = "Option::is_none"
    )]
    pub password_hash: Option<String>,
    /// Supplementary groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Keys that may log in.
    #[serde(
        default,
        rename = "sshAuthorizedKeys",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub ssh_authorized_keys: Vec<String>,
    /// Members not named here.
    #[serde(flatten)]
    pub other: Other,
}

/// Member `storage`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Storage {
    /// Directories to create.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<Directory>,
    /// Files to write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<IgnitionFile>,
    /// Links to create.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// Members not named here, as `disks`, `raid`, `filesystems` and `luks`.
    #[serde(flatten)]
    pub other: Other,
}

/// Owner of a file: by number or by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Owner {
    /// Number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IgnitionFile {
    /// Absolute path.
    pub path: String,
    /// Whether an existing file may be replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<bool>,
    /// Owner.
    #[serde(default, skip_serializing_if = "is_default")]
    pub user: Owner,
    /// Group.
    #[serde(default, skip_serializing_if = "is_default")]
    pub group: Owner,
    /// Permission bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Bytes of the file.
    #[serde(default, skip_serializing_if = "is_default")]
    pub contents: Resource,
    /// Bytes to append to an existing file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub append: Vec<Resource>,
    /// Members not named here.
    #[serde(flatten)]
    pub other: Other,
}

/// A directory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Directory {
    /// Absolute path.
    pub path: String,
    /// Whether an existing node may be replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<bool>,
    /// Owner.
    #[serde(default, skip_serializing_if = "is_default")]
    pub user: Owner,
    /// Group.
    #[serde(default, skip_serializing_if = "is_default")]
    pub group: Owner,
    /// Permission bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Members not named here.
    #[serde(flatten)]
    pub other: Other,
}

/// A link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Absolute path of the link.
    pub path: String,
    /// Whether an existing node may be replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<bool>,
    /// Owner.
    #[serde(default, skip_serializing_if = "is_default")]
    pub user: Owner,
    /// Group.
    #[serde(default, skip_serializing_if = "is_default")]
    pub group: Owner,
    /// Target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Whether it is a hard link instead of a symbolic one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard: Option<bool>,
    /// Members not named here.
    #[serde(flatten)]
    pub other: Other,
}

/// Member `systemd`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Systemd {
    /// Units.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<Unit>,
    /// Members not named here.
    #[serde(flatten)]
    pub other: Other,
}

/// A unit of systemd.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    /// File name, as in `agent.service`.
    pub name: String,
    /// Whether it is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether it is masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask: Option<bool>,
    /// The unit's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<String>,
    /// Drop-ins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropins: Vec<Dropin>,
    /// Members not named here.
    #[serde(flatten)]
    pub other: Other,
}

/// A drop-in of a unit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Dropin {
    /// File name, ending in `.conf`.
    pub name: String,
    /// Its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<String>,
}

impl IgnitionConfig {
    /// Writes the configuration as compact JSON.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("the records have only string keys")
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_without_a_field_survive() {
        let text = r#"{"ignition":{"version":"3.3.0","timeouts":{"httpTotal":5}},"passwd":{"groups":[{"name":"g"}],"users":[{"name":"core","uid":7}]},"storage":{"files":[{"path":"/a"}],"luks":[{"name":"root","device":"/dev/sda"}]},"kernelArguments":{"shouldExist":["a"]}}"#;
        let config = IgnitionConfig::parse(text.as_bytes()).unwrap();
        let again: Value = serde_json::from_slice(&config.to_json()).unwrap();
        assert_eq!(again, serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn all_versions_are_read() {
        for version in SpecVersion::ALL {
            let text = format!("{{\"ignition\":{{\"version\":\"{version}\"}}}}");
            let config = IgnitionConfig::parse(text.as_bytes()).unwrap();
            assert_eq!(config.ignition.version, version);
            assert_eq!(config.to_json(), text.as_bytes());
        }
    }
}
