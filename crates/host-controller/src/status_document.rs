//! The status of a host as it is applied: the fields that the controller owns, and no others. Pure.

use chrono::SecondsFormat;
use model::time::Timestamp;
use serde_json::{Value, json};

use host_records::HostStatusRecord;

/// Members of other controllers' records that this one writes, too.
const OWNED: [&str; 3] = ["hardware", GOOD_CREDENTIALS, TRIED_CREDENTIALS];
/// The credentials that the BMC has accepted.
pub(super) const GOOD_CREDENTIALS: &str = "goodCredentials";
/// The credentials that were sent last.
pub(super) const TRIED_CREDENTIALS: &str = "triedCredentials";
/// Members that are removed with an installation.
pub(super) const DEPLOYMENT: [&str; 2] = ["image", "customDeploy"];

/// The fields of the controller.
pub(super) fn document(status: &HostStatusRecord, now: Timestamp) -> Value {
    // Records of older versions of the kind must have it.
    let profile = status.other.get("hardwareProfile").and_then(Value::as_str);
    let mut document = json!({
        "errorCount": status.error_count,
        "errorMessage": status.error_message,
        "hardwareProfile": profile.unwrap_or_default(),
        "lastUpdated": now.to_rfc3339_opts(SecondsFormat::Secs, true),
        "operationalStatus": status.operational_status,
        "poweredOn": status.powered_on,
        "provisioning": { "ID": status.provisioning.id, "state": status.provisioning.state },
    });
    if !status.error_type.is_empty() {
        document["errorType"] = json!(status.error_type);
    }
    for name in OWNED {
        if let Some(value) = status.other.get(name) {
            document[name] = value.clone();
        }
    }
    document
}

/// Pointers to the fields that this status does not have, and an apply alone may not remove.
pub(super) fn surplus(status: &HostStatusRecord) -> Vec<&'static str> {
    let deployment = &status.provisioning.other;
    let [image, custom] = DEPLOYMENT.map(|name| !deployment.contains_key(name));
    [
        ("/errorType", status.error_type.is_empty()),
        ("/provisioning/image", image),
        ("/provisioning/customDeploy", custom),
    ]
    .into_iter()
    .filter_map(|(pointer, is_absent)| is_absent.then_some(pointer))
    .collect()
}
