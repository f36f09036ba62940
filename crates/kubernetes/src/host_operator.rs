//! Other controllers of hosts: two of them would undo each other's power changes.

use chrono::TimeDelta;
use kube::core::DynamicObject;
use model::Error;
use model::time::Timestamp;

use super::connect::KubernetesCluster;
use super::host_records::FIELD_MANAGER;
use super::listed::{conditions, member};
use super::managed_fields::status_writes;
use super::resources::{CLUSTER_OPERATORS, DEPLOYMENTS, HOSTS, MACHINES_NAMESPACE};

/// Deployments of the usual controller, by namespace and name.
///
/// Source: openshift/cluster-baremetal-operator, provisioning/baremetal_pod.go and image; metal3-io/baremetal-operator,
/// config/base/kustomization.yaml.
const OPERATORS: [(&str, &str); 3] = [
    (MACHINES_NAMESPACE, "metal3"),
    (MACHINES_NAMESPACE, "metal3-baremetal-operator"),
    (
        "baremetal-operator-system",
        "baremetal-operator-controller-manager",
    ),
];
/// The operator of the platform that deploys the usual controller.
const PLATFORM_OPERATOR: &str = "baremetal";
/// Its condition on platforms without machine management.
const DISABLED: &str = "Disabled";
/// Another program that wrote a status within this time is at work.
const RECENT: TimeDelta = TimeDelta::minutes(5);

impl KubernetesCluster {
    /// Errors: Conflict – the usual controller of hosts runs, with its remedy; those of the cluster.
    pub async fn refuse_host_operator(&self) -> Result<(), Error> {
        for (namespace, name) in OPERATORS {
            let kind = DEPLOYMENTS.within(namespace);
            let deployment = self.find(&kind, name).await?;
            if deployment.as_ref().is_some_and(is_available) {
                return Err(Error::conflict(format!(
                    "the deployment {namespace}/{name} manages the hosts of this cluster: two controllers would undo each \
                     other's work; use that one, or scale it to zero"
                )));
            }
        }
        let operator = self.find(&CLUSTER_OPERATORS, PLATFORM_OPERATOR).await?;
        if operator.as_ref().is_some_and(is_enabled) {
            return Err(Error::conflict(format!(
                "the ClusterOperator {PLATFORM_OPERATOR} is enabled on this platform, and deploys the usual controller of \
                 hosts: use that one"
            )));
        }
        Ok(())
    }

    /// `now` by the clock of the cluster.
    ///
    /// Errors: Conflict – another program has lately written the status of a host; NotFound – the cluster does not have the
    /// kind; those of the cluster.
    pub async fn refuse_other_status_writers(&self, now: Option<Timestamp>) -> Result<(), Error> {
        let view = |host: &_| now.and_then(|now| other_writer(host, now));
        let Some(others) = self.list(&HOSTS, view).await? else {
            return Err(Error::not_found("resource kind", HOSTS.kind));
        };
        match others.into_iter().flatten().next() {
            None => Ok(()),
            Some((host, manager)) => Err(Error::conflict(format!(
                "{manager} has written the status of {host} within the last {} minutes: another controller of hosts runs; \
                 stop it, or wait",
                RECENT.num_minutes()
            ))),
        }
    }
}

fn is_available(deployment: &DynamicObject) -> bool {
    member::<u64>(deployment, "/status/availableReplicas") > 0
}

fn is_enabled(operator: &DynamicObject) -> bool {
    let conditions = conditions(operator);
    !conditions
        .get(DISABLED)
        .is_some_and(|(is_true, _)| *is_true)
}

/// The host, and the program that has lately written its status.
fn other_writer(host: &DynamicObject, now: Timestamp) -> Option<(String, String)> {
    let is_recent = |at: Timestamp| now.signed_duration_since(at) < RECENT;
    let writes = status_writes(host).into_iter();
    let mut others = writes.filter(|it| it.manager != FIELD_MANAGER && is_recent(it.at));
    let name = host.metadata.name.clone().unwrap_or_default();
    others.next().map(|it| (name, it.manager))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn record(content: Value) -> DynamicObject {
        serde_json::from_value(content).unwrap()
    }

    #[test]
    fn a_deployment_without_replicas_manages_nothing() {
        for (status, expected) in [
            (json!({ "availableReplicas": 1 }), true),
            (json!({ "availableReplicas": 0 }), false),
            (json!({ "unavailableReplicas": 1 }), false),
            (json!({}), false),
        ] {
            let deployment = record(json!({ "metadata": {}, "status": status }));
            assert_eq!(is_available(&deployment), expected, "{status}");
        }
    }

    #[test]
    fn the_operator_of_other_platforms_is_disabled() {
        for (condition, expected) in [("True", false), ("False", true)] {
            let conditions = json!([
                { "type": "Available", "status": "True" },
                { "type": "Disabled", "status": condition },
            ]);
            let operator = json!({ "metadata": {}, "status": { "conditions": conditions } });
            assert_eq!(is_enabled(&record(operator)), expected, "{condition}");
        }
        assert!(is_enabled(&record(json!({ "metadata": {} }))));
    }

    #[test]
    fn other_writers_count_while_they_are_recent() {
        let host = |manager: &str, subresource: &str| {
            record(json!({ "metadata": { "name": "host-1", "managedFields": [{
                "manager": manager, "operation": "Update", "time": "2026-01-02T03:00:00Z", "subresource": subresource,
            }] } }))
        };
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let soon = at("2026-01-02T03:04:59Z");
        let found = Some(("host-1".to_owned(), "operator".to_owned()));
        assert_eq!(other_writer(&host("operator", "status"), soon), found);
        assert_eq!(other_writer(&host("operator", ""), soon), None);
        assert_eq!(other_writer(&host(FIELD_MANAGER, "status"), soon), None);
        let later = at("2026-01-02T03:05:00Z");
        assert_eq!(other_writer(&host("operator", "status"), later), None);
    }
}
