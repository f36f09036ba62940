//! The BMC of a host: address, transport, credentials.

use super::finding::{FindingList, shown};
use super::scope::{CheckScope, CheckedKind, bmc_address, reference};
use crate::{ApiGroups, BmcAddress, BmcFamily, BmcTransport, RecordNode};

const ADDRESS: &[&str] = &["spec", "bmc", "address"];
const CREDENTIALS: &[&str] = &["spec", "bmc", "credentialsName"];
const VERIFICATION: &[&str] = &["spec", "bmc", "disableCertificateVerification"];
const SYSTEMS: &str = "/redfish/v1/Systems/";

/// A host without address and credentials is unmanaged, which is no mistake.
pub(super) fn address(host: &RecordNode<'_>, _: &CheckScope<'_>, findings: &mut FindingList<'_>) {
    let (address, credentials) = (host.text(ADDRESS), host.text(CREDENTIALS));
    if address.is_empty() && credentials.is_empty() {
        return;
    }
    for (path, value, remedy) in [
        (ADDRESS, address, "write the address of the BMC"),
        (
            CREDENTIALS,
            credentials,
            "write the name of a secret with username and password",
        ),
    ] {
        // Missing fields are those of the schema.
        if value.is_empty() && host.get(path).is_some() {
            findings.error(host, path, "is empty", remedy);
        }
    }
    if address.is_empty() {
        return;
    }
    if let Err(error) = address.parse::<BmcAddress>() {
        findings.error(host, ADDRESS, error.to_string(), error.remedy());
    }
}

pub(super) fn system(host: &RecordNode<'_>, _: &CheckScope<'_>, findings: &mut FindingList<'_>) {
    let Some(address) = bmc_address(host) else {
        return;
    };
    let scheme = address.scheme();
    if scheme.family == BmcFamily::Ipmi {
        if !["", "/"].contains(&address.path()) {
            findings.warning(
                host,
                ADDRESS,
                "has a path, which IPMI ignores",
                "remove the path",
            );
        }
        return;
    }
    if address.query().is_some() {
        let reason = "has a query, which Redfish drivers ignore";
        findings.warning(host, ADDRESS, reason, "remove it from the ? on");
    }
    let usual = scheme.system_id.unwrap_or("<id>");
    let id = match address.system_id() {
        Ok(Some(id)) => id,
        Ok(None) => {
            let reason = "names no system, which works only while the BMC has one";
            findings.warning(host, ADDRESS, reason, format!("add {SYSTEMS}{usual}"));
            return;
        }
        Err(error) => {
            findings.error(host, ADDRESS, error.to_string(), error.remedy(usual));
            return;
        }
    };
    match (scheme.system_id, idrac_scheme(scheme.name)) {
        (Some(usual), _) if id != usual => {
            let reason = format!("has the system {}, and an iDRAC has {usual}", shown(id));
            findings.warning(host, ADDRESS, reason, format!("write {SYSTEMS}{usual}"));
        }
        (None, Some((idrac, theirs))) if id == theirs => {
            let reason = format!("has the system of an iDRAC, and the scheme {}", scheme.name);
            findings.warning(host, ADDRESS, reason, format!("write {idrac}://"));
        }
        _ => {}
    }
}

/// The scheme of iDRACs instead of a general one, and the id of their system.
fn idrac_scheme(name: &str) -> Option<(&'static str, &'static str)> {
    let instead = match name {
        "redfish-virtualmedia" => "idrac-virtualmedia",
        "redfish" => "idrac-redfish",
        _ => return None,
    };
    Some((instead, "System.Embedded.1"))
}

pub(super) fn transport(host: &RecordNode<'_>, _: &CheckScope<'_>, findings: &mut FindingList<'_>) {
    let Some(address) = bmc_address(host) else {
        return;
    };
    if address.scheme().family != BmcFamily::Redfish {
        return;
    }
    let is_verified = host.flag(VERIFICATION) != Some(true);
    match address.transport() {
        BmcTransport::Http => {
            let reason = "sends the password in clear text";
            findings.warning(host, ADDRESS, reason, "remove +http, if the BMC has HTTPS");
        }
        BmcTransport::Https if is_verified && address.ip().is_some() => {
            let reason = "is an IP address, and certificates of BMCs seldom name theirs";
            let remedy = "use a host name, or set disableCertificateVerification: true";
            findings.warning(host, ADDRESS, reason, remedy);
        }
        BmcTransport::Https => {}
    }
}

pub(super) fn duplicate(
    host: &RecordNode<'_>,
    scope: &CheckScope<'_>,
    findings: &mut FindingList<'_>,
) {
    let Some(address) = bmc_address(host) else {
        return;
    };
    if let Some(first) = scope.first_of_system(&address, host) {
        let reason = format!("is also the BMC of {}", reference(&first));
        findings.error(host, ADDRESS, reason, "correct one of them");
    }
}

pub(super) fn credentials(
    host: &RecordNode<'_>,
    scope: &CheckScope<'_>,
    findings: &mut FindingList<'_>,
) {
    let (namespace, name) = (scope.namespace(host), host.text(CREDENTIALS));
    if name.is_empty() || scope.find(ApiGroups::SECRET, namespace, name).is_some() {
        return;
    }
    if let Some(elsewhere) = scope.find_elsewhere(ApiGroups::SECRET, name) {
        let reason = format!(
            "is in the namespace {}, and the host in {}",
            shown(scope.namespace(&elsewhere)),
            shown(namespace)
        );
        findings.error(host, CREDENTIALS, reason, "give both the same namespace");
        return;
    }
    if scope.settings.has_secrets_elsewhere {
        return;
    }
    let secrets = scope.records(CheckedKind::Secret).iter();
    let near = secrets.filter(|secret| scope.namespace(secret) == namespace);
    let remedy = match findings.meant(name, near.map(RecordNode::name)) {
        Some(meant) => format!("{meant} may be meant"),
        None => "add the secret to the files".to_owned(),
    };
    findings.error(host, CREDENTIALS, "is not among the secrets", remedy);
}
