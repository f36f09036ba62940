//! Annotations that stop, reboot or change a host.

use super::finding::FindingList;
use super::power::is_inspection_disabled;
use super::scope::CheckScope;
use crate::RecordNode;

const PAUSED: &str = "baremetalhost.metal3.io/paused";
const DETACHED: &str = "baremetalhost.metal3.io/detached";
const STATUS: &str = "baremetalhost.metal3.io/status";
const REBOOT: &str = "reboot.metal3.io";
const HARDWARE: &str = "inspect.metal3.io/hardwaredetails";

/// Source: baremetal-operator, `validateAnnotations`.
pub(super) fn check(host: &RecordNode<'_>, _: &CheckScope<'_>, findings: &mut FindingList<'_>) {
    for (name, value) in host.texts(&["metadata", "annotations"]) {
        let path = ["metadata", "annotations", name];
        let is_reboot = name == REBOOT || name.starts_with(&format!("{REBOOT}/"));
        match name {
            PAUSED => {
                let reason = "stops the operator from acting on the host";
                findings.warning(host, &path, reason, "remove it, unless that is meant");
            }
            DETACHED => {
                let reason = "detaches the host: neither power nor installation are managed";
                findings.warning(host, &path, reason, "remove it, unless that is meant");
            }
            STATUS => {
                if !value.is_empty() && !is_json_object(value) {
                    findings.error(host, &path, "is no JSON object, and refused", "remove it");
                }
                let reason = "becomes the status of a new host";
                findings.warning(host, &path, reason, "remove it, unless the host is moved");
            }
            HARDWARE => {
                if !value.is_empty() && !is_json_object(value) {
                    findings.error(host, &path, "is no JSON object, and refused", "remove it");
                }
                if !value.is_empty() && !is_inspection_disabled(host) {
                    let reason = "is refused while the hardware is inspected";
                    findings.error(host, &path, reason, "set inspectionMode: disabled");
                }
            }
            _ if is_reboot => {
                if !value.is_empty() && !is_reboot_mode(value) {
                    let reason = "has a value that is refused";
                    findings.error(
                        host,
                        &path,
                        reason,
                        "write {\"mode\":\"soft\"} or {\"mode\":\"hard\"}",
                    );
                }
                let reason = "reboots the host as soon as it is applied";
                findings.warning(host, &path, reason, "remove it, unless that is meant");
            }
            _ => {}
        }
    }
}

fn is_json_object(text: &str) -> bool {
    serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_ok()
}

fn is_reboot_mode(text: &str) -> bool {
    let value: Result<serde_json::Value, _> = serde_json::from_str(text);
    value.is_ok_and(|value| {
        let mode = value
            .get("mode")
            .map_or(Some(""), serde_json::Value::as_str);
        value.is_object() && ["", "soft", "hard"].map(Some).contains(&mode)
    })
}
