//! Boots of hosts from the discovery image of an infra-env, by their BMCs. No other installer has them.

use secrecy::SecretString;
use serde::{Deserialize, Deserializer, Serialize};

use crate::infra_env::ImageType;
use crate::time::DateTime;
use crate::wire::wire_enum;

wire_enum! {
    /// Means by which a BMC gives its host the image.
    pub enum BmcBootMedium {
        VirtualMedia = "virtual-media",
        UefiHttp = "uefi-http",
    }
}

wire_enum! {
    /// State of the boot of one host.
    pub enum BmcBootState {
        Waiting = "waiting",
        Running = "running",
        Installing = "installing",
        Done = "done",
        Failed = "failed",
    }
}

/// Body that boots hosts. It is not written anywhere, so it has no serialiser.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BmcBootParams {
    #[serde(default)]
    pub medium: BmcBootMedium,
    /// Type of the image; that of the infra-env by default.
    #[serde(default)]
    pub image_type: Option<ImageType>,
    pub bmcs: Vec<BmcBootTarget>,
    /// Keep the credentials in memory until the hosts are installed, and eject the medium then.
    #[serde(default)]
    pub eject_after_install: bool,
}

/// A BMC, with its credentials.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BmcBootTarget {
    /// Name of the host, as of a BareMetalHost.
    pub name: String,
    /// As in a BareMetalHost, or `https://HOST[:PORT][/redfish/v1/Systems/ID]`.
    pub address: String,
    pub username: String,
    #[serde(deserialize_with = "secret")]
    pub password: SecretString,
    #[serde(default)]
    pub disable_certificate_verification: bool,
}

/// The boots of an infra-env's hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BmcBootList {
    /// By name.
    pub hosts: Vec<BmcBootHost>,
}

/// The last boot of one host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BmcBootHost {
    pub name: String,
    /// Address of its BMC, as it was given.
    pub address: String,
    pub state: BmcBootState,
    /// The current step.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub step: String,
    /// Reason of a failure, with its remedy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// Of a boot order that does not start with the disk.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub warning: String,
    /// Name of the user.
    pub requested_by: String,
    pub requested_at: DateTime,
    pub started_at: DateTime,
    pub ended_at: DateTime,
}

/// A text that errors do not repeat: those of serde show values of another type.
fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    SecretString::deserialize(deserializer).map_err(|_| serde::de::Error::custom("is not a text"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn neither_errors_nor_debug_output_show_a_password() {
        let body = |password: serde_json::Value| {
            json!({ "bmcs": [{
                "name": "cp-0", "address": "redfish://10.0.0.1", "username": "root", "password": password,
            }] })
        };
        for wrong in [json!(271_828), json!(["271828"]), json!({ "271828": 1 })] {
            let refused = serde_json::from_value::<BmcBootParams>(body(wrong)).unwrap_err();
            assert!(!refused.to_string().contains("271828"), "{refused}");
        }
        let params: BmcBootParams = serde_json::from_value(body(json!("271828"))).unwrap();
        assert!(!format!("{params:?}").contains("271828"));
        assert_eq!(params.medium, BmcBootMedium::VirtualMedia);
    }
}
