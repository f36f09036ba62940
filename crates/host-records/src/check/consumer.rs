//! References of a host to other records.

use super::finding::{FindingList, shown};
use super::scope::{CheckScope, CheckedKind, reference};
use crate::{ApiGroups, RecordNode};

const CONSUMER: &[&str] = &["spec", "consumerRef"];
const NAMESPACE: &[&str] = &["spec", "consumerRef", "namespace"];
const NAME: &[&str] = &["spec", "consumerRef", "name"];
const KIND: &[&str] = &["spec", "consumerRef", "kind"];

/// Source: baremetal-operator, `validateCrossNamespaceSecretReferences`.
pub(super) fn references(
    host: &RecordNode<'_>,
    scope: &CheckScope<'_>,
    findings: &mut FindingList<'_>,
) {
    for name in ["userData", "networkData", "metaData"] {
        let path = ["spec", name, "namespace"];
        let namespace = host.text(&path);
        if !namespace.is_empty() && namespace != scope.namespace(host) {
            let reason = format!(
                "{} is not the namespace of the host, and refused",
                shown(namespace)
            );
            findings.error(host, &path, reason, "give both the same namespace");
        }
    }
}

pub(super) fn check(host: &RecordNode<'_>, scope: &CheckScope<'_>, findings: &mut FindingList<'_>) {
    if host.get(CONSUMER).is_none() {
        return;
    }
    let [kind, namespace, name] = [KIND, NAMESPACE, NAME].map(|path| host.text(path));
    for (path, value) in [(KIND, kind), (NAME, name)] {
        if value.is_empty() {
            findings.error(host, path, "is missing", "add it");
        }
    }
    if let Some(first) = scope.first_of_consumer(host) {
        let reason = format!("consumes also {}", reference(&first));
        findings.error(host, NAME, reason, "correct one of them");
    }
    if kind != ApiGroups::MACHINE {
        if findings.meant(kind, [ApiGroups::MACHINE]).is_some() {
            findings.error(
                host,
                KIND,
                format!("{} is not known", shown(kind)),
                "write Machine",
            );
        }
        return;
    }
    let version = &["spec", "consumerRef", "apiVersion"];
    let expected = &scope.groups().machine;
    let group = |version: &str| version.split('/').next().unwrap_or_default().to_owned();
    if group(host.text(version)) != group(expected) {
        let reason = format!(
            "{} is not the API version of Machine",
            shown(host.text(version))
        );
        findings.error(host, version, reason, format!("write {expected}"));
    }
    if namespace.is_empty() {
        let remedy = format!("write namespace: {}", scope.groups().namespace);
        findings.error(
            host,
            NAMESPACE,
            "is missing, and the machine would not match",
            remedy,
        );
        return;
    }
    machine(host, [namespace, name], scope, findings);
}

/// Looks for the machine, if the files have machines at all.
fn machine(
    host: &RecordNode<'_>,
    [namespace, name]: [&str; 2],
    scope: &CheckScope<'_>,
    findings: &mut FindingList<'_>,
) {
    let machines = scope.records(CheckedKind::Machine);
    let is_there = scope.find(ApiGroups::MACHINE, namespace, name).is_some();
    if is_there || machines.is_empty() || name.is_empty() {
        return;
    }
    if let Some(elsewhere) = scope.find_elsewhere(ApiGroups::MACHINE, name) {
        let reason = format!(
            "{} is not the namespace of {}",
            shown(namespace),
            reference(&elsewhere)
        );
        findings.error(host, NAMESPACE, reason, "give both the same namespace");
        return;
    }
    let remedy = match findings.meant(name, machines.iter().map(RecordNode::name)) {
        Some(meant) => format!("{meant} may be meant"),
        None => "add the machine to the files, or remove consumerRef".to_owned(),
    };
    findings.error(
        host,
        NAME,
        format!("{} is not among the machines", shown(name)),
        remedy,
    );
}
