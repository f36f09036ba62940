//! The access to the BMC of a host, by its record and its secret. Pure.

use serde_json::Value;

use host_records::host_state::CredentialsReach;
use host_records::{BmcDetails, CredentialSecret, RecordFile};
use host_records::{bmc_access, bmc_endpoint};
use redfish::BmcAccess;

/// The reason why there is no access; values of secrets are not repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoAccess {
    pub(super) credentials: CredentialsReach,
    pub(super) reason: String,
}

/// The access, with the content of the secret that the host names.
///
/// Errors: the address is unusable; the secret is missing, or has no credentials.
pub(super) fn host_access(bmc: &BmcDetails, secret: Option<&Value>) -> Result<BmcAccess, NoAccess> {
    let refused = |credentials, reason: String| NoAccess {
        credentials,
        reason,
    };
    // Mistakes of the address are those of the BMC, and come first.
    bmc_endpoint(bmc).map_err(|error| refused(CredentialsReach::Present, error.to_string()))?;
    let name = bmc.credentials_name.as_str();
    if name.is_empty() {
        let reason =
            "spec.bmc.credentialsName is empty: name the secret with username and password";
        return Err(refused(CredentialsReach::Missing, reason.to_owned()));
    }
    let Some(secret) = secret else {
        let reason =
            format!("the secret {name} does not exist: create it with username and password");
        return Err(refused(CredentialsReach::Missing, reason));
    };
    let invalid = |problem: String| {
        refused(
            CredentialsReach::Invalid,
            format!("the secret {name}: {problem}"),
        )
    };
    let file = RecordFile::read(name, secret.to_string().as_bytes());
    let record = file.records().next();
    let record = record.ok_or_else(|| invalid("it cannot be read".to_owned()))?;
    let credentials =
        CredentialSecret::read(&record).map_err(|problem| invalid(problem.to_string()))?;
    bmc_access(bmc, &credentials)
        .map_err(|error| refused(CredentialsReach::Present, error.to_string()))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;
    use serde_json::json;

    use super::*;

    fn bmc(address: &str, name: &str) -> BmcDetails {
        BmcDetails {
            address: address.to_owned(),
            credentials_name: name.to_owned(),
            ..BmcDetails::default()
        }
    }

    fn secret(data: &Value) -> Value {
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "bmc" }, "data": data })
    }

    #[test]
    fn credentials_are_those_of_the_secret() {
        let secret = secret(&json!({ "username": "cm9vdA==", "password": "Y2Fsdmlu" }));
        let access = host_access(&bmc("redfish://10.0.0.1", "bmc"), Some(&secret)).unwrap();
        assert_eq!(access.credentials.user, "root");
        assert_eq!(access.credentials.password.expose_secret(), "calvin");
    }

    #[test]
    fn a_record_without_access_has_a_remedy() {
        use CredentialsReach::{Invalid, Missing, Present};
        let good = secret(&json!({ "username": "cm9vdA==", "password": "Y2Fsdmlu" }));
        let empty = secret(&json!({ "username": "cm9vdA==" }));
        let redfish = "redfish://10.0.0.1";
        for (address, name, secret, credentials, part) in [
            (
                "ipmi://10.0.0.1",
                "bmc",
                Some(&good),
                Present,
                "redfish-virtualmedia://",
            ),
            ("", "bmc", Some(&good), Present, "give the address"),
            (redfish, "", None, Missing, "credentialsName is empty"),
            (redfish, "bmc", None, Missing, "create it"),
            (
                redfish,
                "bmc",
                Some(&empty),
                Invalid,
                "data.password is missing",
            ),
        ] {
            let refused = host_access(&bmc(address, name), secret).unwrap_err();
            assert_eq!(refused.credentials, credentials, "{}", refused.reason);
            assert!(refused.reason.contains(part), "{}", refused.reason);
            assert!(!refused.reason.contains("calvin"), "{}", refused.reason);
        }
    }
}
