//! Kind and API version.

use located_yaml::v1_1::Value;

use super::finding::{FindingList, shown};
use super::scope::CheckScope;
use crate::{ApiGroups, RecordNode};

const KINDS: [&str; 3] = [ApiGroups::HOST, ApiGroups::MACHINE, ApiGroups::SECRET];

pub(super) fn check(
    record: &RecordNode<'_>,
    scope: &CheckScope<'_>,
    findings: &mut FindingList<'_>,
) {
    if !matches!(record.root.value, Value::Object(_)) {
        findings.error(
            record,
            &[],
            "is no record",
            "write apiVersion, kind and metadata",
        );
        return;
    }
    let kind = record.kind();
    if kind.is_empty() {
        if record.get(&["kind"]).is_none() {
            findings.error(
                record,
                &["kind"],
                "is missing",
                "add the kind of the record",
            );
        } else {
            findings.error(
                record,
                &["kind"],
                "is no text",
                "write the kind of the record",
            );
        }
        return;
    }
    let Some(expected) = scope.groups().version_of(kind) else {
        if let Some(meant) = findings
            .meant(kind, KINDS)
            .filter(|meant| is_typo(kind, meant))
        {
            let reason = format!("{} is not known", shown(kind));
            findings.error(record, &["kind"], reason, format!("write {meant}"));
        }
        return;
    };
    let found = record.api_version();
    if found != expected && record.get(&["apiVersion"]).is_some() {
        let reason = format!("{} is not the API version of {kind}", shown(found));
        findings.error(record, &["apiVersion"], reason, format!("write {expected}"));
    }
}

/// Whether one is the other, mistyped: MachineSet is a kind of its own.
fn is_typo(kind: &str, meant: &str) -> bool {
    !kind.starts_with(meant)
}
