//! Machines: labels, host, and the provider's part.

use super::finding::{FindingList, shown};
use super::scope::{CheckScope, CheckedKind, reference};
use crate::{ApiGroups, RecordNode};

/// Roles of machines that the platform itself makes.
const ROLES: [&str; 3] = ["master", "worker", "infra"];
const PROVIDER: [&str; 3] = ["spec", "providerSpec", "value"];
const EXTERNAL: &str = "externally provisioned";

pub(super) fn labels(
    machine: &RecordNode<'_>,
    scope: &CheckScope<'_>,
    findings: &mut FindingList<'_>,
) {
    let groups = scope.groups();
    let label = |name: &str| machine.text(&["metadata", "labels", name]).to_owned();
    let [cluster, role, kind] = [
        groups.cluster_label(),
        groups.role_label(),
        groups.type_label(),
    ];
    for (name, remedy) in [
        (
            &cluster,
            "add it, with the id of the cluster (status.infrastructureName of Infrastructure)",
        ),
        (&role, "add it, with the role of the node, as master"),
        (&kind, "add it, with the same value as the role"),
    ] {
        if label(name).is_empty() {
            findings.error(machine, &["metadata", "labels", name], "is missing", remedy);
        }
    }
    let (role_value, kind_value) = (label(&role), label(&kind));
    if !role_value.is_empty() && !ROLES.contains(&role_value.as_str()) {
        let reason = format!("{} is none of {}", shown(&role_value), ROLES.join(", "));
        findings.warning(
            machine,
            &["metadata", "labels", &role],
            reason,
            "write master for a control node",
        );
    }
    if !kind_value.is_empty() && !role_value.is_empty() && kind_value != role_value {
        let reason = format!(
            "{} differs from the role, {}",
            shown(&kind_value),
            shown(&role_value)
        );
        findings.warning(
            machine,
            &["metadata", "labels", &kind],
            reason,
            "give both the same value",
        );
    }
    let finalizer = groups.machine_finalizer();
    let path = &["metadata", "finalizers"];
    let has_it = machine
        .list(path)
        .iter()
        .any(|it| matches!(&it.value, located_yaml::v1_1::Value::Text(text) if *text == finalizer));
    if !has_it {
        let reason = format!("{finalizer} is missing: a deletion would not wait for the host");
        findings.warning(machine, path, reason, "add it");
    }
    if machine.namespace() != groups.namespace && !machine.namespace().is_empty() {
        let reason = format!("machines are reconciled in {} only", groups.namespace);
        let remedy = format!("write namespace: {}", groups.namespace);
        findings.warning(machine, &["metadata", "namespace"], reason, remedy);
    }
}

pub(super) fn host(
    machine: &RecordNode<'_>,
    scope: &CheckScope<'_>,
    findings: &mut FindingList<'_>,
) {
    let annotation = scope.groups().host_annotation();
    let path = ["metadata", "annotations", &annotation];
    let value = machine.text(&path);
    let hosts = scope.records(CheckedKind::Host);
    let consumed = scope.host_of_machine(machine);
    if value.is_empty() {
        if let Some(host) = consumed {
            let reason = format!("is missing, and {} has this consumer", reference(&host));
            let remedy = format!("write {}/{}", scope.namespace(&host), host.name());
            findings.error(machine, &path, reason, remedy);
        } else {
            let reason = "is missing: any available host would be taken";
            findings.warning(machine, &path, reason, "write namespace/name of the host");
        }
        return;
    }
    let parts = value.split_once('/');
    let Some((namespace, name)) = parts.filter(|(namespace, name)| {
        !namespace.is_empty() && !name.is_empty() && !name.contains('/')
    }) else {
        let reason = format!("{} is not namespace/name of a host", shown(value));
        findings.error(machine, &path, reason, "write it so");
        return;
    };
    if namespace != scope.namespace(machine) {
        let reason = format!("{} is not the namespace of the machine", shown(namespace));
        findings.error(machine, &path, reason, "give both the same namespace");
    }
    match scope.find(ApiGroups::HOST, namespace, name) {
        None if hosts.is_empty() => {}
        None => {
            let reason = format!("{} is not among the hosts", shown(value));
            let remedy = match consumed {
                Some(host) => format!("write {}/{}", scope.namespace(&host), host.name()),
                None => "add the host to the files".to_owned(),
            };
            findings.error(machine, &path, reason, remedy);
        }
        Some(host) => back_reference(machine, &host, &path, scope, findings),
    }
}

fn back_reference(
    machine: &RecordNode<'_>,
    host: &RecordNode<'_>,
    path: &[&str],
    scope: &CheckScope<'_>,
    findings: &mut FindingList<'_>,
) {
    if !is_consumer(host, machine, scope) {
        let consumer = host.text(&["spec", "consumerRef", "name"]);
        let reason = match consumer {
            // Its kind or namespace is another one, which a finding of the host says.
            consumer if consumer == machine.name() => return,
            "" => format!("{} has no consumer", reference(host)),
            consumer => format!("{} has the consumer {}", reference(host), shown(consumer)),
        };
        findings.error(
            machine,
            path,
            reason,
            "make the consumerRef of the host name this machine",
        );
        return;
    }
    let is_external = host.flag(&["spec", "externallyProvisioned"]) == Some(true);
    let annotation = scope.groups().instance_state();
    let state = ["metadata", "annotations", &annotation];
    if is_external && machine.text(&state) != EXTERNAL {
        let reason = "does not say that the host is externally provisioned";
        findings.warning(machine, &state, reason, format!("write {EXTERNAL}"));
    }
}

/// Source: cluster-api-provider-baremetal, `consumerRefMatches`.
fn is_consumer(host: &RecordNode<'_>, machine: &RecordNode<'_>, scope: &CheckScope<'_>) -> bool {
    let of = |member: &str| host.text(&["spec", "consumerRef", member]);
    let expected = [ApiGroups::MACHINE, scope.namespace(machine), machine.name()];
    ["kind", "namespace", "name"].map(of) == expected
}

/// Source: cluster-api-provider-baremetal, `BareMetalMachineProviderSpec.IsValid`.
pub(super) fn provider(
    machine: &RecordNode<'_>,
    scope: &CheckScope<'_>,
    findings: &mut FindingList<'_>,
) {
    if machine.get(&PROVIDER).is_none() {
        return;
    }
    let at = |name: &'static str| [PROVIDER[0], PROVIDER[1], PROVIDER[2], name];
    for (name, expected) in [
        ("apiVersion", scope.groups().provider.as_str()),
        ("kind", ApiGroups::PROVIDER),
    ] {
        let found = machine.text(&at(name));
        if !found.is_empty() && found != expected {
            let reason = format!("{} is not {expected}", shown(found));
            findings.error(machine, &at(name), reason, format!("write {expected}"));
        }
    }
    let deploy = [
        PROVIDER[0],
        PROVIDER[1],
        PROVIDER[2],
        "customDeploy",
        "method",
    ];
    if !machine.text(&deploy).is_empty() {
        return;
    }
    for name in ["url", "checksum"] {
        let path = [PROVIDER[0], PROVIDER[1], PROVIDER[2], "image", name];
        if machine.text(&path).is_empty() {
            let reason = "is missing, and there is no customDeploy";
            findings.error(
                machine,
                &path,
                reason,
                "add it, or customDeploy.method: install_coreos",
            );
        }
    }
}
