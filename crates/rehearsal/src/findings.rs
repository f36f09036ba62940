//! Findings of a cluster's record: the causes of `explain`, or the validations of servers without it.

use declarations::site::SiteFinding;
use model::explain::{Cause, CauseStatus, Explanation, SubjectKind};
use serde_json::Value;

use crate::api::RequestRefusal;

/// Validation that fails with each host that is not ready.
const CONSEQUENCE: &str = "all-hosts-are-ready-to-install";
/// Events about mistakes for which no validation fails: name, required value, remedy.
const WARNINGS: &[(&str, &str, &str)] = &[(
    "disk_speed_slower_than_supported",
    "an installation disk that etcd can use",
    "Choose a faster installation disk, for instance an SSD.",
)];

/// Findings of the causes that an explanation lists; work within its time only if there is nothing else.
pub(crate) fn of_explanation(explanation: &Explanation) -> Vec<SiteFinding> {
    let (waiting, lasting): (Vec<_>, Vec<_>) = explanation
        .causes
        .iter()
        .partition(|cause| cause.status == CauseStatus::Waiting);
    let causes = if lasting.is_empty() { waiting } else { lasting };
    without_consequences(causes.into_iter().map(of_cause).collect())
}

/// Leaves out findings that the others explain.
fn without_consequences(findings: Vec<SiteFinding>) -> Vec<SiteFinding> {
    let is_alone = findings.len() == 1;
    let is_cause = |finding: &SiteFinding| is_alone || finding.id != CONSEQUENCE;
    findings.into_iter().filter(is_cause).collect()
}

fn of_cause(cause: &Cause) -> SiteFinding {
    let is_host = cause.subject.kind == SubjectKind::Host;
    let host = if is_host { &cause.subject.name } else { "" };
    SiteFinding {
        id: cause.id.clone(),
        host: host.to_owned(),
        observed: cause.observed.clone(),
        required: cause.required.clone(),
        fix: cause.fix.clone(),
    }
}

/// Findings of the validations in a cluster's record and in those of its hosts: all that do not pass.
pub(crate) fn of_validations(cluster: &Value) -> Vec<SiteFinding> {
    with_status(cluster, &["failure", "error", "pending"])
}

/// Findings of the validations that fail, also of those that do not keep a cluster from being installed.
pub(crate) fn failures(cluster: &Value) -> Vec<SiteFinding> {
    with_status(cluster, &["failure", "error"])
}

/// Whether a validation still waits for results of hosts.
pub(crate) fn has_pending(cluster: &Value) -> bool {
    !with_status(cluster, &["pending"]).is_empty()
}

fn with_status(cluster: &Value, statuses: &[&str]) -> Vec<SiteFinding> {
    let mut found = of_record(cluster, "", statuses);
    for host in list(&cluster["hosts"]) {
        found.extend(of_record(host, name_of(host), statuses));
    }
    without_consequences(found)
}

fn of_record(record: &Value, host: &str, statuses: &[&str]) -> Vec<SiteFinding> {
    let text = record["validations_info"].as_str().unwrap_or_default();
    let categories: Value = serde_json::from_str(text).unwrap_or_default();
    let validations = categories.as_object().into_iter().flatten();
    let validations = validations.flat_map(|(_, validations)| list(validations));
    let failed = validations.filter(|one| {
        let status = one["status"].as_str().unwrap_or_default();
        statuses.contains(&status)
    });
    let finding = |one: &Value| SiteFinding {
        id: text_of(&one["id"]),
        host: host.to_owned(),
        observed: text_of(&one["message"]),
        ..SiteFinding::default()
    };
    failed.map(finding).collect()
}

/// Findings of events, each kind once for a host.
pub(crate) fn of_events(events: &Value, cluster: &Value) -> Vec<SiteFinding> {
    let found = list(events).filter_map(|event| {
        let name = event["name"].as_str()?;
        let (id, required, fix) = WARNINGS.iter().find(|(id, ..)| *id == name)?;
        let mut hosts = list(&cluster["hosts"]);
        let host = hosts.find(|host| host["id"] == event["host_id"]);
        Some(SiteFinding {
            id: (*id).to_owned(),
            host: host.map_or("", name_of).to_owned(),
            observed: text_of(&event["message"]),
            required: (*required).to_owned(),
            fix: (*fix).to_owned(),
        })
    });
    let mut once: Vec<SiteFinding> = Vec::new();
    for finding in found {
        if !once
            .iter()
            .any(|one| one.id == finding.id && one.host == finding.host)
        {
            once.push(finding);
        }
    }
    once
}

/// The finding about a refused request.
pub(crate) fn refused(refusal: &RequestRefusal) -> SiteFinding {
    SiteFinding {
        id: "refused".to_owned(),
        observed: refusal.observed(),
        required: "a request that the server accepts".to_owned(),
        ..SiteFinding::default()
    }
}

/// The name of a host's record.
pub(crate) fn name_of(host: &Value) -> &str {
    host["requested_hostname"].as_str().unwrap_or_default()
}

pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn causes_in_progress_are_no_findings() {
        let explanation: Explanation = serde_json::from_value(json!({ "causes": [
            { "kind": "stage", "id": "Rebooting", "status": "waiting", "subject": { "kind": "host", "name": "a" } },
            { "kind": "validation", "id": "ntp-synced", "status": "failure", "observed": "no source", "required": "one",
              "fix": "Set one.", "subject": { "kind": "host", "name": "b" } },
            { "kind": "validation", "id": "api-vips-valid", "status": "failure", "subject": { "kind": "cluster", "name": "c" } },
        ]}))
        .unwrap();
        let found = of_explanation(&explanation);
        let names: Vec<_> = found
            .iter()
            .map(|one| (one.id.as_str(), one.host.as_str()))
            .collect();
        assert_eq!(names, [("ntp-synced", "b"), ("api-vips-valid", "")]);
        assert_eq!(found[0].fix, "Set one.");
    }

    #[test]
    fn slow_disks_are_read_from_events() {
        let slow = |host: u8| json!({ "name": "disk_speed_slower_than_supported", "host_id": host, "message": "47 ms" });
        let other = json!({ "name": "host_status_updated", "host_id": 1, "message": "known" });
        let cluster = json!({ "hosts": [
            { "id": 1, "requested_hostname": "a" }, { "id": 2, "requested_hostname": "b" },
        ]});
        let found = of_events(&json!([other, slow(2), slow(2), slow(1)]), &cluster);
        let names: Vec<_> = found.iter().map(|one| one.host.as_str()).collect();
        assert_eq!(names, ["b", "a"]);
        assert_eq!(found[0].observed, "47 ms");
    }

    #[test]
    fn validations_are_read_from_records() {
        let validations = |id: &str, status: &str| {
            json!({ "hardware": [{ "id": id, "status": status, "message": "too small" }] })
                .to_string()
        };
        let cluster = json!({
            "validations_info": validations("cluster-cidr-defined", "success"),
            "hosts": [{ "requested_hostname": "b", "validations_info": validations("has-min-memory", "failure") }],
        });
        let found = of_validations(&cluster);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].id.as_str(), found[0].host.as_str()),
            ("has-min-memory", "b")
        );
        assert_eq!(found[0].observed, "too small");
    }
}
