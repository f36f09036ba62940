//! Hosts of record files, with the access to their BMCs. Pure.

use std::collections::HashMap;

use crate::bmc_access::{BmcRecordError, bmc_access, bmc_endpoint};
use crate::{
    ApiGroups, BmcDetails, CredentialSecret, MacAddress, MacAddressError, RecordFile, RecordNode,
};
use redfish::{BmcAccess, BmcInventory, FirmwareMode};

const BMC: &[&str] = &["spec", "bmc"];
const BOOT_MAC: &[&str] = &["spec", "bootMACAddress"];
const BOOT_MODE: &[&str] = &["spec", "bootMode"];

/// A host of record files.
#[derive(Debug, Clone)]
pub struct RecordedBmc {
    /// Name of the host.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its boot MAC address, where it has a usable one.
    pub boot_mac: Option<MacAddress>,
    /// The access to its BMC.
    pub access: Result<BmcAccess, BmcRecordError>,
}

/// The NIC of the boot MAC address is not among those of the BMC.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the BMC has no NIC with the boot MAC address {boot_mac}, but {nics}: correct bootMACAddress, or the address of the \
     BMC"
)]
pub struct BootNicError {
    /// The boot MAC address.
    pub boot_mac: MacAddress,
    /// Those of the BMC.
    pub nics: String,
}

impl RecordedBmc {
    /// Compares the boot MAC address with the NICs of the BMC; one that shows none is not compared.
    ///
    /// Errors: no NIC has it.
    pub fn check_boot_nic(&self, inventory: &BmcInventory) -> Result<(), BootNicError> {
        let Some(boot_mac) = self.boot_mac.filter(|_| !inventory.nics.is_empty()) else {
            return Ok(());
        };
        let nics: Vec<&str> = inventory.nics.iter().map(|nic| nic.mac.as_str()).collect();
        if nics.contains(&boot_mac.to_string().as_str()) {
            return Ok(());
        }
        Err(BootNicError {
            boot_mac,
            nics: nics.join(", "),
        })
    }
}

/// The hosts of files, which are one set, in file order. Documents that are not YAML are left out.
///
/// Records without a namespace are in that of `groups`. Of two secrets with one name, the first counts.
pub fn recorded_bmcs(files: &[RecordFile], groups: &ApiGroups) -> Vec<RecordedBmc> {
    let records = || files.iter().flat_map(RecordFile::records);
    let mut secrets = HashMap::new();
    for secret in records().filter(|record| record.kind() == ApiGroups::SECRET) {
        let key = (namespace(&secret, groups), secret.name());
        secrets.entry(key).or_insert(secret);
    }
    let hosts = records().filter(|record| record.kind() == ApiGroups::HOST);
    let read = |host: RecordNode<'_>| RecordedBmc {
        name: host.name().to_owned(),
        namespace: namespace(&host, groups).to_owned(),
        boot_mac: boot_mac(&host),
        access: access(&host, namespace(&host, groups), &secrets),
    };
    hosts.map(read).collect()
}

fn access(
    host: &RecordNode<'_>,
    namespace: &str,
    secrets: &HashMap<(&str, &str), RecordNode<'_>>,
) -> Result<BmcAccess, BmcRecordError> {
    // Mistakes elsewhere in the record are no obstacle.
    let bmc: BmcDetails = match host.get(BMC) {
        Some(root) => RecordNode { root, ..*host }
            .decode()
            .map_err(BmcRecordError::Undecodable)?,
        None => BmcDetails::default(),
    };
    bmc_endpoint(&bmc)?;
    let name = bmc.credentials_name.as_str();
    if name.is_empty() {
        return Err(BmcRecordError::NoSecretName);
    }
    let secret = secrets
        .get(&(namespace, name))
        .ok_or_else(|| BmcRecordError::NoSecret {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })?;
    let credentials = CredentialSecret::read(secret).map_err(|problem| BmcRecordError::Secret {
        name: name.to_owned(),
        problem,
    })?;
    Ok(BmcAccess {
        mode: mode(host),
        ..bmc_access(&bmc, &credentials)?
    })
}

/// `spec.bootMode`; another text is a mistake that `atoll host check` finds.
fn mode(host: &RecordNode<'_>) -> FirmwareMode {
    match host.text(BOOT_MODE) {
        "legacy" => FirmwareMode::Legacy,
        _ => FirmwareMode::Uefi,
    }
}

fn namespace<'a>(record: &RecordNode<'a>, groups: &'a ApiGroups) -> &'a str {
    match record.namespace() {
        "" => &groups.namespace,
        namespace => namespace,
    }
}

/// The boot MAC address in any spelling.
fn boot_mac(host: &RecordNode<'_>) -> Option<MacAddress> {
    match host.text(BOOT_MAC).parse() {
        Ok(mac) | Err(MacAddressError::Form(mac)) => Some(mac),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CONTROL_NODE: &str = include_str!("../fixtures/control-node.yaml");

    fn read(text: &str) -> Vec<RecordedBmc> {
        let file = RecordFile::read("hosts.yaml", text.as_bytes());
        assert_eq!(file.broken, []);
        recorded_bmcs(&[file], &ApiGroups::default())
    }

    fn refusal(text: &str) -> String {
        let hosts = read(text);
        let error = hosts[0].access.as_ref().unwrap_err();
        let text = error.to_string();
        assert!(!format!("{text}{error:?}").contains("calvin"), "{text}");
        text
    }

    #[test]
    fn hosts_are_read_with_their_secrets() {
        let hosts = read(CONTROL_NODE);
        assert_eq!(hosts.len(), 1);
        let host = &hosts[0];
        assert_eq!(
            (host.name.as_str(), host.namespace.as_str()),
            ("cp-0", "openshift-machine-api")
        );
        assert_eq!(host.boot_mac, Some("52:54:00:00:00:10".parse().unwrap()));
        let access = host.access.as_ref().unwrap();
        assert_eq!(access.credentials.user, "root");
        assert!(!access.verifies_certificate);
        assert_eq!(access.mode, FirmwareMode::Uefi);
        let legacy = read(&CONTROL_NODE.replace("bootMode: UEFI", "bootMode: legacy"));
        let access_of_legacy = legacy[0].access.as_ref().unwrap();
        assert_eq!(access_of_legacy.mode, FirmwareMode::Legacy);
        assert_eq!(
            access.endpoint.to_string(),
            "https://10.0.0.10/redfish/v1/Systems/System.Embedded.1"
        );
        assert!(!format!("{host:?}").contains("calvin"));
    }

    #[test]
    fn records_of_a_cluster_are_read_as_a_list() {
        let metadata = |name: &str| json!({ "name": name, "namespace": "metal" });
        let list = json!({ "kind": "List", "apiVersion": "v1", "items": [
            {
                "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": metadata("w-0"),
                "spec": { "online": true, "bmc": {
                    "address": "redfish://10.0.0.2/redfish/v1/Systems/1", "credentialsName": "w-0-bmc",
                } },
            },
            {
                "apiVersion": "v1", "kind": "Secret", "metadata": metadata("w-0-bmc"),
                "data": { "username": "cm9vdA==", "password": "Y2Fsdmlu" },
            },
        ] });
        let hosts = read(&list.to_string());
        assert!(hosts[0].access.as_ref().unwrap().verifies_certificate);
        assert_eq!(
            (hosts[0].namespace.as_str(), hosts[0].boot_mac),
            ("metal", None)
        );
    }

    #[test]
    fn mistakes_name_the_member_and_the_remedy() {
        for (from, to, expected) in [
            (
                "credentialsName: cp-0-bmc-secret",
                "credentialsName: other",
                "the secret openshift-machine-api/other is not among the records: add it to the files",
            ),
            (
                "credentialsName: cp-0-bmc-secret",
                "credentialsName: ''",
                "spec.bmc.credentialsName is empty: name the secret with username and password",
            ),
            (
                "idrac-virtualmedia://10.0.0.10/redfish/v1/Systems/System.Embedded.1",
                "[1]",
                "spec.bmc.address: has another type than expected: correct the record",
            ),
            (
                "password: Y2Fsdmlu",
                "passwort: Y2Fsdmlu",
                "the secret cp-0-bmc-secret: data.password is missing: add the key",
            ),
            (
                "password: Y2Fsdmlu",
                "password: '*'",
                "the secret cp-0-bmc-secret: data.password is not base64: encode it, or use stringData",
            ),
        ] {
            assert!(CONTROL_NODE.contains(from), "{from}");
            assert_eq!(refusal(&CONTROL_NODE.replace(from, to)), expected);
        }
        let ipmi = CONTROL_NODE.replace(
            "idrac-virtualmedia://10.0.0.10/redfish/v1/Systems/System.Embedded.1",
            "ipmi://10.0.0.10",
        );
        assert!(refusal(&ipmi).contains("its scheme ipmi is IPMI"));
        let unmanaged =
            "{apiVersion: metal3.io/v1alpha1, kind: BareMetalHost, metadata: {name: a}, spec: {}}";
        assert!(refusal(unmanaged).starts_with("the host has no BMC"));
    }

    #[test]
    fn secrets_of_other_namespaces_are_not_used() {
        let secret =
            CONTROL_NODE.replacen("namespace: openshift-machine-api", "namespace: other", 1);
        assert!(refusal(&secret).contains("is not among the records"));
    }
}
