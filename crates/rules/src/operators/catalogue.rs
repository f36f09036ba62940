//! The table of operators: resources that install them, timeouts, dependencies.
//!
//! Source: assisted-service, internal/operators/<name>/ (Operator, GetDependencies, GetFeatureSupportID).

use model::support::FeatureId;

use crate::operators::support::MinorVersion;

/// An operator that can be chosen.
#[derive(Debug, Clone, Copy)]
pub struct OlmOperator {
    /// Name on the wire.
    pub name: &'static str,
    /// Its feature, whose support levels hold.
    pub feature: FeatureId,
    /// Namespace of its subscription.
    pub namespace: &'static str,
    /// Name of its subscription.
    subscription: &'static str,
    /// Name of its subscription before a minor release of platform 4.
    old_subscription: Option<(u64, &'static str)>,
    /// Time that its installation may take. Units: seconds.
    pub timeout_s: i64,
    /// Operators that it needs.
    dependencies: &'static [&'static str],
    /// Operators that it needs on a single-node cluster, besides.
    single_node_dependencies: &'static [&'static str],
}

impl OlmOperator {
    /// Name of its subscription in a version of the platform.
    pub fn subscription(&self, version: MinorVersion) -> &'static str {
        match self.old_subscription {
            Some((minor, old)) if version < MinorVersion::four(minor) => old,
            _ => self.subscription,
        }
    }

    /// Names of the operators that it needs.
    pub fn dependencies(&self, single_node: bool) -> impl Iterator<Item = &'static str> {
        let more = if single_node {
            self.single_node_dependencies
        } else {
            &[]
        };
        self.dependencies.iter().chain(more).copied()
    }

    const fn needs(mut self, dependencies: &'static [&'static str]) -> Self {
        self.dependencies = dependencies;
        self
    }

    const fn single_node_needs(mut self, dependencies: &'static [&'static str]) -> Self {
        self.single_node_dependencies = dependencies;
        self
    }

    const fn subscription_before(mut self, minor: u64, name: &'static str) -> Self {
        self.old_subscription = Some((minor, name));
        self
    }
}

const fn row(
    name: &'static str,
    feature: FeatureId,
    namespace: &'static str,
    subscription: &'static str,
    timeout_s: i64,
) -> OlmOperator {
    OlmOperator {
        name,
        feature,
        namespace,
        subscription,
        old_subscription: None,
        timeout_s,
        dependencies: &[],
        single_node_dependencies: &[],
    }
}

/// Every operator that can be chosen: name, feature, namespace, subscription, timeout.
#[rustfmt::skip]
pub static OPERATORS: &[OlmOperator] = &[
    row("lso", FeatureId::Lso, "openshift-local-storage", "local-storage-operator", 4200),
    row("odf", FeatureId::Odf, "openshift-storage", "odf-operator", 1800)
        .subscription_before(9, "ocs-operator").needs(&["lso"]),
    row("cnv", FeatureId::Cnv, "openshift-cnv", "hco-operatorhub", 3600),
    row("lvm", FeatureId::Lvm, "openshift-storage", "lvms-operator", 1800)
        .subscription_before(12, "odf-lvm-operator"),
    row("mce", FeatureId::Mce, "multicluster-engine", "multicluster-engine", 3600),
    row("mtv", FeatureId::Mtv, "openshift-mtv", "mtv-operator", 3600).needs(&["cnv"]),
    row("osc", FeatureId::Osc, "openshift-sandboxed-containers-operator", "sandboxed-containers-operator", 3600)
        .needs(&["node-feature-discovery"]),
    row("nmstate", FeatureId::Nmstate, "openshift-nmstate", "kubernetes-nmstate-operator", 3600),
    row("node-feature-discovery", FeatureId::NodeFeatureDiscovery, "openshift-nfd", "nfd", 1800),
    row("nvidia-gpu", FeatureId::NvidiaGpu, "nvidia-gpu-operator", "gpu-operator-certified", 1800)
        .needs(&["node-feature-discovery"]),
    row("amd-gpu", FeatureId::AmdGpu, "openshift-amd-gpu", "amd-gpu-operator", 1800)
        .needs(&["node-feature-discovery", "kmm"]),
    row("kmm", FeatureId::Kmm, "openshift-kmm", "kernel-module-management", 1800),
    row("pipelines", FeatureId::Pipelines, "openshift-operators", "openshift-pipelines-operator-rh", 1800),
    row("servicemesh", FeatureId::Servicemesh, "openshift-operators", "servicemeshoperator", 1800),
    row("serverless", FeatureId::Serverless, "openshift-serverless", "serverless-operator", 1800),
    row("authorino", FeatureId::Authorino, "openshift-operators", "authorino-operator", 1800),
    row("openshift-ai", FeatureId::OpenshiftAi, "redhat-ods-operator", "rhods-operator", 1800)
        .single_node_needs(&["lvm"]),
    row("node-healthcheck", FeatureId::NodeHealthcheck, "openshift-workload-availability",
        "node-healthcheck-operator", 1800),
    row("self-node-remediation", FeatureId::SelfNodeRemediation, "openshift-workload-availability",
        "self-node-remediation", 1800).needs(&["node-healthcheck"]),
    row("fence-agents-remediation", FeatureId::FenceAgentsRemediation, "openshift-workload-availability",
        "fence-agents-remediation", 1800).needs(&["node-healthcheck"]),
    row("node-maintenance", FeatureId::NodeMaintenance, "openshift-workload-maintenance",
        "node-maintenance-operator", 1800),
    row("kube-descheduler", FeatureId::KubeDescheduler, "openshift-kube-descheduler-operator",
        "cluster-kube-descheduler-operator", 1800),
    row("cluster-observability", FeatureId::ClusterObservability, "openshift-cluster-observability-operator",
        "cluster-observability-operator", 1800).needs(&["openshift-logging"]),
    row("numaresources", FeatureId::NumaResources, "openshift-numaresources", "numaresources-operator", 1800),
    row("oadp", FeatureId::Oadp, "openshift-adp", "redhat-oadp-operator", 1800),
    row("metallb", FeatureId::Metallb, "metallb-system", "metallb-operator", 1800),
    row("loki", FeatureId::Loki, "openshift-operators-redhat", "loki-operator", 1800),
    row("openshift-logging", FeatureId::OpenshiftLogging, "openshift-logging", "cluster-logging", 1800)
        .needs(&["loki"]),
];

/// The operator of that name; `ocs` is the old name of `odf`.
pub fn operator(name: &str) -> Option<&'static OlmOperator> {
    let name = if name == "ocs" { "odf" } else { name };
    OPERATORS.iter().find(|operator| operator.name == name)
}

/// Names of all operators, sorted.
pub fn operator_names() -> Vec<&'static str> {
    let mut names: Vec<_> = OPERATORS.iter().map(|operator| operator.name).collect();
    names.sort_unstable();
    names
}

/// Features of the operators that one needs on some cluster.
pub fn dependency_features(needing: &OlmOperator) -> Vec<FeatureId> {
    let names = needing.dependencies(true);
    names
        .filter_map(|name| Some(operator(name)?.feature))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_features_are_unique_and_dependencies_known() {
        let names: BTreeSet<_> = OPERATORS.iter().map(|one| one.name).collect();
        let features: BTreeSet<_> = OPERATORS.iter().map(|one| one.feature).collect();
        assert_eq!((names.len(), features.len()), (28, 28));
        for one in OPERATORS {
            for needed in one.dependencies(true) {
                assert!(names.contains(needed), "{} needs {needed}", one.name);
            }
        }
    }

    #[test]
    fn subscriptions_depend_on_the_version() {
        let name = |operator_name, minor| {
            operator(operator_name).map(|one| one.subscription(MinorVersion::four(minor)))
        };
        assert_eq!(name("lvm", 11), Some("odf-lvm-operator"));
        assert_eq!(name("lvm", 12), Some("lvms-operator"));
        assert_eq!(name("ocs", 16), Some("odf-operator"));
        assert_eq!(name("unknown", 16), None);
    }
}
