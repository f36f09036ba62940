//! The boot MAC address.

use super::finding::{FindingList, shown};
use super::power::is_inspection_disabled;
use super::scope::{CheckScope, bmc_address, boot_mac, reference};
use crate::{MacAddress, MacAddressError, RecordNode};

const FIELD: &[&str] = &["spec", "bootMACAddress"];

pub(super) fn check(host: &RecordNode<'_>, scope: &CheckScope<'_>, findings: &mut FindingList<'_>) {
    let text = host.text(FIELD);
    if text.is_empty() {
        missing(host, findings);
        return;
    }
    match text.parse::<MacAddress>() {
        Ok(_) => {}
        Err(error) => {
            let remedy = match &error {
                MacAddressError::Form(meant) => format!("write {meant}"),
                _ => "write the address of the NIC, as 52:54:00:00:00:10".to_owned(),
            };
            findings.error(host, FIELD, format!("{} {error}", shown(text)), remedy);
        }
    }
    if let Some(first) = boot_mac(host).and_then(|mac| scope.first_of_mac(mac, host)) {
        let reason = format!("is also the address of {}", reference(&first));
        findings.error(host, FIELD, reason, "correct one of them");
    }
}

/// Source: baremetal-operator, `validateBMCAccess`.
fn missing(host: &RecordNode<'_>, findings: &mut FindingList<'_>) {
    let Some(address) = bmc_address(host) else {
        return;
    };
    let reason = if address.scheme().needs_mac {
        format!("is missing, and {} needs it", address.scheme().name)
    } else if is_inspection_disabled(host) {
        "is missing, and without inspection it stays unknown".to_owned()
    } else {
        return;
    };
    findings.error(host, FIELD, reason, "add the address of the NIC that boots");
}
