//! Manifests that install operators: namespace, operator group, subscription.
//!
//! The catalogs of a new cluster may have other names than the platform's, since they are mirrored.
//! Source: assisted-service, internal/operators/<name>/ (templates/openshift, manifest.go).

use model::Error;
use serde_json::{Value, json};

use super::machine_config::{SystemManifest, yaml};
use crate::InstallationPolicy;
use crate::Snapshot;
use crate::operators::support::MinorVersion;
use crate::operators::{OlmOperator, operator};

/// Namespace of the catalogs.
const CATALOGS: &str = "openshift-marketplace";
const PLATFORM_CATALOG: &str = "redhat-operators";
const CERTIFIED_CATALOG: &str = "certified-operators";

/// Namespaces that an operator watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchedNamespaces {
    Own,
    All,
}

use WatchedNamespaces::{All, Own};

/// The package of an operator, and the resources that its subscription needs.
struct InstalledPackage {
    /// Name of the operator.
    operator: &'static str,
    /// Name of the package; none for the name of the subscription.
    package: Option<&'static str>,
    catalog: &'static str,
    /// None for the default channel of the package.
    channel: Option<&'static str>,
    /// Operator group of its namespace. Without one the namespace exists: it is the platform's, or that of an operator
    /// that this one needs.
    group: Option<(&'static str, WatchedNamespaces)>,
    /// Whether the platform's monitoring scrapes the namespace.
    monitored: bool,
}

impl InstalledPackage {
    const fn package(mut self, name: &'static str) -> Self {
        self.package = Some(name);
        self
    }

    const fn channel(mut self, name: &'static str) -> Self {
        self.channel = Some(name);
        self
    }

    const fn certified(mut self) -> Self {
        self.catalog = CERTIFIED_CATALOG;
        self
    }

    const fn group(mut self, name: &'static str, watched: WatchedNamespaces) -> Self {
        self.group = Some((name, watched));
        self
    }

    const fn monitored(mut self) -> Self {
        self.monitored = true;
        self
    }

    /// The subscription `name` to the package in a catalog source.
    fn subscription(&self, operator: &OlmOperator, name: &str, catalog: &str) -> Value {
        let mut spec = json!({
            "name": self.package.unwrap_or(name),
            "source": catalog,
            "sourceNamespace": CATALOGS,
            "installPlanApproval": "Automatic",
        });
        if let Some(channel) = self.channel {
            spec["channel"] = json!(channel);
        }
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "Subscription",
            "metadata": { "name": name, "namespace": operator.namespace },
            "spec": spec,
        })
    }
}

const fn row(operator: &'static str) -> InstalledPackage {
    InstalledPackage {
        operator,
        package: None,
        catalog: PLATFORM_CATALOG,
        channel: None,
        group: None,
        monitored: false,
    }
}

/// Every operator that can be chosen.
#[rustfmt::skip]
static PACKAGES: &[InstalledPackage] = &[
    row("lso").group("local-storage", Own).monitored(),
    row("odf").group("openshift-storage-operatorgroup", Own).monitored(),
    row("cnv").package("kubevirt-hyperconverged").channel("stable").group("kubevirt-hyperconverged-group", Own),
    row("lvm").group("openshift-storage-operatorgroup", Own).monitored(),
    row("mce").group("mce", Own),
    row("mtv").group("migration", Own),
    row("osc").group("sandboxed-containers-operator-group", Own),
    row("nmstate").channel("stable").group("openshift-nmstate", Own),
    row("node-feature-discovery").channel("stable").group("openshift-nfd", Own).monitored(),
    row("nvidia-gpu").certified().channel("stable").group("nvidia-gpu-operator", Own),
    row("amd-gpu").certified().channel("alpha").group("kube-amd-gpu", All).monitored(),
    row("kmm").channel("stable").group("openshift-kmm", All),
    row("pipelines").channel("latest"),
    row("servicemesh").channel("stable"),
    row("serverless").channel("stable").group("openshift-serverless", All),
    row("authorino").channel("tech-preview-v1"),
    row("openshift-ai").channel("stable").group("rhods-operator", All),
    row("node-healthcheck").channel("stable").group("openshift-node-availability", All),
    row("self-node-remediation").channel("stable"),
    row("fence-agents-remediation").channel("stable"),
    row("node-maintenance").channel("stable").group("openshift-node-availability", All),
    row("kube-descheduler").channel("stable").group("openshift-node-availability", Own).monitored(),
    row("cluster-observability").channel("stable").group("cluster-observability", All).monitored(),
    row("numaresources").group("numaresources-operator", Own).monitored(),
    row("oadp").group("oadp", Own),
    row("metallb").channel("stable").group("metallb", All),
    row("loki").group("loki-operator", All).monitored(),
    row("openshift-logging").group("cluster-logging", Own).monitored(),
];

/// Manifests of the operators that a cluster is installed with.
pub(super) fn manifests(
    snapshot: &Snapshot,
    policy: &InstallationPolicy,
) -> Result<Vec<SystemManifest>, Error> {
    let cluster = &snapshot.cluster;
    let version = cluster.openshift_version.parse();
    let version = version.unwrap_or(MinorVersion::four(u64::MAX));
    let mut manifests = Vec::new();
    for chosen in &cluster.monitored_operators {
        let Some(found) = operator(&chosen.name) else {
            continue;
        };
        let Some(row) = PACKAGES.iter().find(|row| row.operator == found.name) else {
            continue;
        };
        let subscription = found.subscription(version);
        let catalog = policy.catalog_sources.get(row.catalog);
        let catalog = catalog.map_or(row.catalog, String::as_str);
        let mut add = |kind: &str, resource: Value| {
            let name = format!("50_{}_{kind}.yaml", found.name);
            yaml(name, &resource).map(|manifest| manifests.push(manifest))
        };
        if let Some((name, watched)) = row.group {
            add("namespace", namespace(row, found))?;
            add("operatorgroup", group(name, watched, found))?;
        }
        add(
            "subscription",
            row.subscription(found, subscription, catalog),
        )?;
    }
    Ok(manifests)
}

fn namespace(row: &InstalledPackage, operator: &OlmOperator) -> Value {
    let mut resource = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": operator.namespace },
    });
    if row.monitored {
        resource["metadata"]["labels"] = json!({ "openshift.io/cluster-monitoring": "true" });
    }
    resource
}

fn group(name: &str, watched: WatchedNamespaces, operator: &OlmOperator) -> Value {
    let spec = match watched {
        Own => json!({ "targetNamespaces": [operator.namespace] }),
        All => json!({ "upgradeStrategy": "Default" }),
    };
    json!({
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": { "name": name, "namespace": operator.namespace },
        "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::operators::MonitoredOperator;

    use super::*;
    use crate::operators::OPERATORS;
    use crate::samples;

    fn of(names: &[&str], sources: &[(&str, &str)]) -> BTreeMap<String, Value> {
        let mut snapshot = samples::snapshot();
        let operators = names.iter().map(|name| MonitoredOperator {
            name: (*name).to_owned(),
            ..MonitoredOperator::default()
        });
        snapshot.cluster.monitored_operators.extend(operators);
        let policy = InstallationPolicy {
            catalog_sources: sources
                .iter()
                .map(|(from, to)| ((*from).to_owned(), (*to).to_owned()))
                .collect(),
            ..InstallationPolicy::default()
        };
        let all = manifests(&snapshot, &policy).unwrap();
        let parsed = all.into_iter().map(|one| {
            let value = serde_yaml::from_str(&one.content).unwrap();
            (one.file_name, value)
        });
        parsed.collect()
    }

    #[test]
    fn every_operator_has_a_package() {
        let rows: Vec<&str> = PACKAGES.iter().map(|row| row.operator).collect();
        let operators: Vec<&str> = OPERATORS.iter().map(|one| one.name).collect();
        assert_eq!(rows, operators);
    }

    #[test]
    fn namespaces_without_a_group_are_made_by_another_operator_or_the_platform() {
        for row in PACKAGES.iter().filter(|row| row.group.is_none()) {
            let own = operator(row.operator).unwrap();
            let mut needed = own.dependencies(false).filter_map(operator);
            let is_made = needed.any(|one| one.namespace == own.namespace);
            assert!(
                is_made || own.namespace == "openshift-operators",
                "{}",
                own.name
            );
        }
    }

    #[test]
    fn operators_get_namespace_group_and_subscription() {
        let all = of(&["cnv", "loki", "pipelines"], &[]);
        let names: Vec<&str> = all.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "50_cnv_namespace.yaml",
                "50_cnv_operatorgroup.yaml",
                "50_cnv_subscription.yaml",
                "50_loki_namespace.yaml",
                "50_loki_operatorgroup.yaml",
                "50_loki_subscription.yaml",
                "50_pipelines_subscription.yaml",
            ]
        );
        assert_eq!(
            all["50_cnv_subscription.yaml"],
            json!({
                "apiVersion": "operators.coreos.com/v1alpha1",
                "kind": "Subscription",
                "metadata": { "name": "hco-operatorhub", "namespace": "openshift-cnv" },
                "spec": {
                    "name": "kubevirt-hyperconverged",
                    "source": "redhat-operators",
                    "sourceNamespace": "openshift-marketplace",
                    "installPlanApproval": "Automatic",
                    "channel": "stable",
                },
            })
        );
        let spec = |name: &str| all[name]["spec"].clone();
        let own = json!({ "targetNamespaces": ["openshift-cnv"] });
        assert_eq!(spec("50_cnv_operatorgroup.yaml"), own);
        assert!(
            spec("50_loki_operatorgroup.yaml")
                .get("targetNamespaces")
                .is_none()
        );
        assert!(spec("50_loki_subscription.yaml").get("channel").is_none());
        let labels = &all["50_loki_namespace.yaml"]["metadata"]["labels"];
        assert_eq!(
            *labels,
            json!({ "openshift.io/cluster-monitoring": "true" })
        );
    }

    #[test]
    fn mirrored_catalogs_have_their_own_names() {
        let all = of(
            &["nvidia-gpu", "lvm"],
            &[("certified-operators", "cs-certified")],
        );
        let source = |name: &str| all[name]["spec"]["source"].clone();
        assert_eq!(source("50_nvidia-gpu_subscription.yaml"), "cs-certified");
        assert_eq!(source("50_lvm_subscription.yaml"), "redhat-operators");
    }
}
