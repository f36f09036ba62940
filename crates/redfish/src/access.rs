//! The access to one BMC: its address, its credentials, and the mode of its host.

use std::fmt;

use secrecy::SecretString;

use super::endpoint::RedfishEndpoint;

/// User name and password of a BMC.
#[derive(Clone)]
pub struct BmcCredentials {
    /// User name.
    pub user: String,
    /// Password.
    pub password: SecretString,
}

impl fmt::Debug for BmcCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BmcCredentials").finish_non_exhaustive()
    }
}

/// The access to one BMC.
#[derive(Debug, Clone)]
pub struct BmcAccess {
    /// Its address.
    pub endpoint: RedfishEndpoint,
    /// Its credentials.
    pub credentials: BmcCredentials,
    /// Whether its certificate is verified.
    pub verifies_certificate: bool,
    /// Mode in which its host starts.
    pub mode: FirmwareMode,
}

/// Mode of the firmware that starts a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FirmwareMode {
    /// The default, with Secure Boot or without.
    #[default]
    Uefi,
    /// That of old PCs.
    Legacy,
}

impl FirmwareMode {
    /// The name in `BootSourceOverrideMode`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Uefi => "UEFI",
            Self::Legacy => "Legacy",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_has_no_credentials() {
        let access = BmcAccess {
            endpoint: RedfishEndpoint::new("https://10.0.0.1", None).unwrap(),
            credentials: BmcCredentials {
                user: "admin-user".to_owned(),
                password: "s3cret".into(),
            },
            verifies_certificate: true,
            mode: FirmwareMode::default(),
        };
        let text = format!("{access:?}");
        assert!(text.contains("10.0.0.1"), "{text}");
        assert!(
            !text.contains("s3cret") && !text.contains("admin-user"),
            "{text}"
        );
    }
}
