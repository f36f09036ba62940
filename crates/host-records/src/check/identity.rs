//! Names, namespaces, and fields that belong to one cluster.

use super::finding::FindingList;
use super::scope::{CheckScope, reference};
use crate::{ApiGroups, RecordNode};

/// Fields of the metadata that a cluster sets, and the effect of giving them.
const OF_CLUSTER: &[(&str, &str)] = &[
    (
        "resourceVersion",
        "a record that has changed since is refused",
    ),
    ("uid", "a record that was created again is refused"),
    ("managedFields", "server-side apply refuses it"),
    (
        "ownerReferences",
        "the record is deleted if the owner is not in the cluster",
    ),
    (
        "deletionTimestamp",
        "the record was being deleted when it was saved",
    ),
];

pub(super) fn check(
    record: &RecordNode<'_>,
    scope: &CheckScope<'_>,
    findings: &mut FindingList<'_>,
) {
    let kind = record.kind();
    let Some(_) = scope.groups().version_of(kind) else {
        return;
    };
    let (namespace, name) = (scope.namespace(record), record.name());
    if record.get(&["metadata"]).is_none() {
        return;
    }
    if name.is_empty() {
        findings.error(record, &["metadata", "name"], "is missing", "add the name");
    } else if kind == ApiGroups::HOST && is_uuid(name) {
        let reason = "is a UUID, which the operator refuses as the name of a host";
        findings.error(record, &["metadata", "name"], reason, "rename it");
    }
    if record.get(&["metadata", "namespace"]).is_none() {
        let remedy = format!("write namespace: {}", scope.groups().namespace);
        let reason = "is missing: the namespace of the client's context would be used";
        findings.warning(record, &["metadata", "namespace"], reason, remedy);
    }
    let first = scope.find(kind, namespace, name);
    let first = first.filter(|first| !name.is_empty() && !std::ptr::eq(first.root, record.root));
    if let Some(first) = first {
        let reason = format!("is given twice, first as {}", reference(&first));
        findings.error(
            record,
            &["metadata", "name"],
            reason,
            "rename or remove one of them",
        );
    }
}

pub(super) fn of_cluster(
    record: &RecordNode<'_>,
    scope: &CheckScope<'_>,
    findings: &mut FindingList<'_>,
) {
    if scope.groups().version_of(record.kind()).is_none() {
        return;
    }
    for (name, effect) in OF_CLUSTER {
        let path = ["metadata", name];
        if record.get(&path).is_some() {
            findings.warning(
                record,
                &path,
                format!("belongs to one cluster: {effect}"),
                "remove it",
            );
        }
    }
}

/// Whether a text has the form of a UUID. Source: github.com/google/uuid, `Parse`.
fn is_uuid(text: &str) -> bool {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    let is_hex = text
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_hex && (groups == [8, 4, 4, 4, 12] || groups == [32])
}
