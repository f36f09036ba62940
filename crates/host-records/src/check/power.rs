//! Power state, boot mode and inspection.

use super::finding::FindingList;
use super::scope::{CheckScope, bmc_address};
use crate::RecordNode;

const INSPECTION_MODE: &[&str] = &["spec", "inspectionMode"];
const INSPECT_ANNOTATION: &[&str] = &["metadata", "annotations", "inspect.metal3.io"];
const ONLINE: &[&str] = &["spec", "online"];

/// Whether the hardware is not inspected. Source: baremetal-operator, `InspectionDisabled`.
pub(super) fn is_inspection_disabled(host: &RecordNode<'_>) -> bool {
    [INSPECTION_MODE, INSPECT_ANNOTATION]
        .iter()
        .any(|path| host.text(path) == "disabled")
}

pub(super) fn check(host: &RecordNode<'_>, _: &CheckScope<'_>, findings: &mut FindingList<'_>) {
    if host.flag(ONLINE) != Some(false) {
        return;
    }
    if host.flag(&["spec", "disablePowerOff"]) == Some(true) {
        let reason = "is false, and disablePowerOff forbids to switch the host off";
        findings.error(host, ONLINE, reason, "change one of them");
    } else if host.flag(&["spec", "externallyProvisioned"]) == Some(true) {
        let reason = "is false: the installed host would be switched off";
        findings.warning(
            host,
            ONLINE,
            reason,
            "write online: true, unless that is meant",
        );
    }
}

pub(super) fn boot_mode(host: &RecordNode<'_>, _: &CheckScope<'_>, findings: &mut FindingList<'_>) {
    let field = &["spec", "bootMode"];
    let Some(address) = bmc_address(host) else {
        return;
    };
    if host.text(field) == "UEFISecureBoot" && !address.scheme().can_secure_boot() {
        let reason = format!("{} cannot switch Secure Boot on", address.scheme().name);
        findings.error(host, field, reason, "write UEFI, or use a Redfish address");
    }
}

pub(super) fn inspection(
    host: &RecordNode<'_>,
    _: &CheckScope<'_>,
    findings: &mut FindingList<'_>,
) {
    let (mode, annotation) = (host.text(INSPECTION_MODE), host.text(INSPECT_ANNOTATION));
    if !["", "disabled"].contains(&annotation) {
        let reason = "has a value other than \"disabled\" and \"\", which is refused";
        findings.error(
            host,
            INSPECT_ANNOTATION,
            reason,
            "remove it, or write disabled",
        );
    }
    let are_both = !mode.is_empty() && !annotation.is_empty();
    if are_both && (mode == "disabled") != (annotation == "disabled") {
        let reason = format!("{mode:?} contradicts the annotation inspect.metal3.io");
        findings.error(host, INSPECTION_MODE, reason, "remove the annotation");
    }
    let address = bmc_address(host);
    let slow = address.filter(|address| !address.scheme().can_inspect());
    if let Some(address) = slow.filter(|_| mode == "fast") {
        let reason = format!("{} cannot inspect by the BMC", address.scheme().name);
        findings.error(
            host,
            INSPECTION_MODE,
            reason,
            "write agent, or use a Redfish address",
        );
    }
}
