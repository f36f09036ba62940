//! The access to a BMC, from the records of its host. Pure.

use crate::{
    BmcAddress, BmcAddressError, BmcDetails, CredentialError, CredentialSecret, DecodeError,
    NotDriven, SystemPathError,
};
use redfish::{BmcAccess, BmcCredentials, BmcError, FirmwareMode, RedfishEndpoint};

/// The reason why the records of a host give no access to its BMC; values of secrets are not repeated.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BmcRecordError {
    /// A host without BMC.
    #[error("the host has no BMC: set spec.bmc.address and spec.bmc.credentialsName")]
    Unmanaged,
    /// Members of other types.
    #[error("spec.bmc.{0}: correct the record")]
    Undecodable(DecodeError),
    /// Not the address of a BMC.
    #[error("spec.bmc.address {}: {}", .0, .0.remedy())]
    Address(BmcAddressError),
    /// An address without Redfish.
    #[error("spec.bmc.address: {0}")]
    NotDriven(NotDriven),
    /// A path that is no system's.
    #[error("spec.bmc.address {}: {}", .0, .0.remedy("<id>"))]
    SystemPath(SystemPathError),
    /// An unusable origin.
    #[error("spec.bmc.address: {0}")]
    Endpoint(BmcError),
    /// No name of a secret.
    #[error("spec.bmc.credentialsName is empty: name the secret with username and password")]
    NoSecretName,
    /// The secret is not there.
    #[error("the secret {namespace}/{name} is not among the records: add it to the files")]
    NoSecret {
        /// Namespace of the host.
        namespace: String,
        /// Name of the secret.
        name: String,
    },
    /// The secret has no credentials.
    #[error("the secret {name}: {problem}")]
    Secret {
        /// Name of the secret.
        name: String,
        /// The problem, with its remedy.
        problem: CredentialError,
    },
}

/// The access to the BMC of a host that starts by UEFI, with the credentials of its secret. Pure.
///
/// Errors: Unmanaged, Address, NotDriven, SystemPath, Endpoint.
pub fn bmc_access(
    bmc: &BmcDetails,
    credentials: &CredentialSecret,
) -> Result<BmcAccess, BmcRecordError> {
    Ok(BmcAccess {
        endpoint: bmc_endpoint(bmc)?,
        credentials: BmcCredentials {
            user: credentials.username.clone(),
            password: credentials.password.clone(),
        },
        verifies_certificate: !bmc.disable_certificate_verification,
        mode: FirmwareMode::default(),
    })
}

/// The endpoint of a BMC. The rest of the address, its query included, is not for Redfish.
///
/// Errors: the record has no BMC, or its address is not that of a system.
pub fn bmc_endpoint(bmc: &BmcDetails) -> Result<RedfishEndpoint, BmcRecordError> {
    if bmc.is_empty() {
        return Err(BmcRecordError::Unmanaged);
    }
    let address: BmcAddress = bmc.address.parse().map_err(BmcRecordError::Address)?;
    let origin = address
        .redfish_origin()
        .map_err(BmcRecordError::NotDriven)?;
    address.system_id().map_err(BmcRecordError::SystemPath)?;
    RedfishEndpoint::new(&origin, address.system_path()).map_err(BmcRecordError::Endpoint)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use secrecy::ExposeSecret as _;

    use super::*;

    fn secret() -> CredentialSecret {
        CredentialSecret {
            name: "cp-0-bmc-secret".to_owned(),
            namespace: String::new(),
            username: "root-user".to_owned(),
            password: "s3cret".into(),
        }
    }

    fn read(address: &str) -> Result<BmcAccess, BmcRecordError> {
        let bmc = BmcDetails {
            address: address.to_owned(),
            credentials_name: "cp-0-bmc-secret".to_owned(),
            ..BmcDetails::default()
        };
        bmc_access(&bmc, &secret())
    }

    #[test]
    fn addresses_of_the_redfish_family_become_endpoints() {
        for (address, endpoint) in [
            (
                "idrac-virtualmedia://10.0.0.10/redfish/v1/Systems/System.Embedded.1",
                "https://10.0.0.10/redfish/v1/Systems/System.Embedded.1",
            ),
            (
                "redfish+http://bmc.example:8000/redfish/v1/Systems/1/",
                "http://bmc.example:8000/redfish/v1/Systems/1",
            ),
            (
                "redfish-uefihttp+https://[fd00::1]:8443/redfish/v1/Systems/1?x=y",
                "https://[fd00::1]:8443/redfish/v1/Systems/1",
            ),
            ("ilo5-redfish://ilo-7", "https://ilo-7"),
            ("redfish://10.0.0.1/redfish/v1", "https://10.0.0.1"),
        ] {
            let access = read(address).unwrap();
            assert_eq!(access.endpoint.to_string(), endpoint);
            assert!(access.verifies_certificate, "{address}");
            assert_eq!(access.credentials.user, "root-user");
            assert_eq!(access.credentials.password.expose_secret(), "s3cret");
        }
    }

    #[test]
    fn certificates_are_unverified_only_where_the_record_says_so() {
        let bmc = BmcDetails {
            address: "redfish://10.0.0.1/redfish/v1/Systems/1".to_owned(),
            credentials_name: "x".to_owned(),
            disable_certificate_verification: true,
            ..BmcDetails::default()
        };
        assert!(!bmc_access(&bmc, &secret()).unwrap().verifies_certificate);
    }

    #[test]
    fn other_addresses_are_refused_with_a_remedy() {
        for (address, form, remedy) in [
            ("ipmi://10.0.0.1", "ipmi is IPMI", "redfish-virtualmedia://"),
            ("10.0.0.1:623", "ipmi is IPMI", "redfish-virtualmedia://"),
            (
                "libvirt://10.0.0.1:6230",
                "libvirt is IPMI",
                "redfish-virtualmedia://",
            ),
            ("https://10.0.0.1", "web page", "redfish-virtualmedia://"),
            (
                "idrac://10.0.0.1",
                "driver that was removed",
                "idrac-virtualmedia",
            ),
            (
                "redfish://root:s3cret@10.0.0.1",
                "user name or password",
                "secret",
            ),
            (
                "redfish://10.0.0.1/api/1",
                "has a path that is not",
                "write /redfish/v1/Systems/<id>",
            ),
            // metal3-io/baremetal-operator, issue 896
            (
                "redfish-virtualmedia://10.10.3.10/redfish/v1/Managers/1",
                "has the path of managers, not of a system",
                "write /redfish/v1/Systems/<id>",
            ),
            (
                "idrac-virtualmedia+https://10.0.0.1/redfish/v1/Managers/iDRAC.Embedded.1/",
                "has the path of managers",
                "write /redfish/v1/Systems/<id>",
            ),
            (
                "ilo5-virtualmedia://10.0.0.1/redfish/v1/Systems/",
                "has the path of all systems, not of one",
                "write /redfish/v1/Systems/<id>",
            ),
            (
                "redfish://10.0.0.1/redfish/v1/Systems/1/VirtualMedia/Cd",
                "below that of a system",
                "write /redfish/v1/Systems/<id>",
            ),
            ("", "is empty", "give the address"),
        ] {
            let error = read(address).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(form) && text.contains(remedy), "{text}");
            assert!(text.starts_with("spec.bmc.address"), "{text}");
            assert!(!format!("{text}{error:?}").contains("s3cret"), "{text}");
        }
        let error = bmc_access(&BmcDetails::default(), &secret()).unwrap_err();
        assert!(matches!(error, BmcRecordError::Unmanaged));
    }

    proptest! {
        #[test]
        fn any_address_is_an_endpoint_or_refused(address in "\\PC{0,60}|(redfish|ipmi)(\\+http)?://[a-z0-9:.\\[\\]]{0,12}(/[a-zA-Z0-9/%]{0,20})?") {
            if let Ok(access) = read(&address) {
                prop_assert!(access.endpoint.to_string().starts_with("http"));
            }
        }
    }
}
