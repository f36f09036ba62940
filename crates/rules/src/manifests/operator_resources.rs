//! Resources that set up installed operators: the controller in the new cluster applies them once the operators run.
//!
//! Operators without a row are installed and left to their user.
//! Source: assisted-service, internal/operators/<name>/ (templates/custom, manifest.go), internal/operators/manager.go.

mod storage;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::Error;
use model::operators::{MonitoredOperator, OperatorType};
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::storage::{agent_services, local_volumes, storage_cluster, storage_system, volume_group};
use super::machine_config::{SystemManifest, resource, yaml};
use crate::Snapshot;
use crate::network::networking;

/// An entry of `custom_manifests.json`.
#[derive(Serialize)]
struct OperatorManifest<'a> {
    #[serde(rename = "Name")]
    name: &'a str,
    /// YAML documents, in base64.
    #[serde(rename = "Content")]
    content: String,
}

/// Resources of an operator on a cluster.
type Resources = fn(&Snapshot) -> Vec<Value>;

static RESOURCES: &[(&str, Resources)] = &[
    ("lso", |_| vec![local_volumes()]),
    ("odf", |all| {
        let more = [storage_system(all), agent_services(all, "odf")];
        let more = more.into_iter().flatten();
        std::iter::once(storage_cluster(all)).chain(more).collect()
    }),
    ("cnv", |_| {
        let kind = ("hco.kubevirt.io/v1beta1", "HyperConverged");
        let metadata = json!({ "name": "kubevirt-hyperconverged", "namespace": "openshift-cnv" });
        vec![resource(
            kind,
            &metadata,
            &json!({ "BareMetalPlatform": true }),
        )]
    }),
    ("lvm", |all| {
        let more = agent_services(all, "lvm");
        std::iter::once(volume_group()).chain(more).collect()
    }),
    ("mce", |_| {
        let kind = ("multicluster.openshift.io/v1", "MultiClusterEngine");
        let spec = json!({ "targetNamespace": "multicluster-engine" });
        vec![resource(kind, &json!({ "name": "mce" }), &spec)]
    }),
    ("mtv", |_| {
        let kind = ("forklift.konveyor.io/v1beta1", "ForkliftController");
        let metadata = json!({ "name": "forklift-controller", "namespace": "openshift-mtv" });
        vec![resource(kind, &metadata, &json!({ "olm_managed": true }))]
    }),
    ("osc", |_| {
        let kind = ("kataconfiguration.openshift.io/v1", "KataConfig");
        let metadata = json!({
            "name": "cluster-kataconfig",
            "namespace": "openshift-sandboxed-containers-operator",
        });
        let spec = json!({ "enablePeerPods": false, "logLevel": "info" });
        vec![resource(kind, &metadata, &spec)]
    }),
    ("nmstate", |_| {
        let kind = ("nmstate.io/v1", "NMState");
        vec![resource(kind, &json!({ "name": "nmstate" }), &json!({}))]
    }),
    ("node-feature-discovery", |_| vec![feature_discovery()]),
    ("openshift-ai", |all| {
        science_platform(networking::is_single_node(&all.cluster))
    }),
    ("node-healthcheck", |_| vec![node_health_check()]),
    ("kube-descheduler", |_| {
        let kind = ("operator.openshift.io/v1", "KubeDescheduler");
        let metadata =
            json!({ "name": "cluster", "namespace": "openshift-kube-descheduler-operator" });
        let spec = json!({
            "managementState": "Managed",
            "mode": "Predictive",
            "profiles": ["AffinityAndTaints"],
            "deschedulingIntervalSeconds": 3600,
        });
        vec![resource(kind, &metadata, &spec)]
    }),
    ("numaresources", |_| {
        let kind = ("nodetopology.openshift.io/v1", "NUMAResourcesOperator");
        let pools = json!({ "pools.operator.machineconfiguration.openshift.io/worker": "" });
        let spec =
            json!({ "nodeGroups": [{ "machineConfigPoolSelector": { "matchLabels": pools } }] });
        vec![resource(kind, &json!({ "name": "numaresources" }), &spec)]
    }),
    ("metallb", |_| {
        let kind = ("metallb.io/v1beta1", "MetalLB");
        let metadata = json!({ "name": "metallb", "namespace": "metallb-system" });
        vec![resource(kind, &metadata, &json!({}))]
    }),
];

/// `custom_manifests.json`: the resources of each operator; none for clusters without operators.
///
/// Errors: `Internal` – a record does not serialise.
pub fn custom_manifests(snapshot: &Snapshot) -> Result<Option<String>, Error> {
    let mut manifests = Vec::new();
    for operator in chosen(snapshot) {
        let documents = documents(operator, snapshot)?;
        let content = documents
            .iter()
            .fold(String::new(), |text, one| text + "---\n" + one);
        manifests.push(OperatorManifest {
            name: &operator.name,
            content: STANDARD.encode(content),
        });
    }
    if manifests.is_empty() {
        return Ok(None);
    }
    let text = serde_json::to_string(&manifests);
    text.map(Some)
        .map_err(|error| Error::internal("writing custom_manifests.json", error))
}

/// The same resources in the new cluster itself, for a controller that does not reach this service.
///
/// Source: assisted-service, internal/operators/manager.go (createOLMOperatorsConfigMap).
pub(super) fn config_map(snapshot: &Snapshot) -> Result<Option<SystemManifest>, Error> {
    let mut data = Map::new();
    for operator in chosen(snapshot) {
        let mut names = Vec::new();
        for (at, document) in documents(operator, snapshot)?.iter().enumerate() {
            let name = format!("{}-{:02}.yaml", operator.name, at + 1);
            data.insert(name.clone(), json!(STANDARD.encode(document.trim_end())));
            names.push(name);
        }
        if names.is_empty() {
            continue;
        }
        let metadata = json!({
            "namespace": operator.namespace,
            "subscriptionName": operator.subscription_name,
            "manifests": names,
        });
        let name = format!("{}.metadata.yaml", operator.name);
        data.insert(name, json!(text(&operator.name, &metadata)?));
    }
    if data.is_empty() {
        return Ok(None);
    }
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "olm-operator-manifests", "namespace": "assisted-installer" },
        "data": data,
    });
    yaml("olm_operator_manifests.yaml".to_owned(), &map).map(Some)
}

fn chosen(snapshot: &Snapshot) -> impl Iterator<Item = &MonitoredOperator> {
    let operators = snapshot.cluster.monitored_operators.iter();
    operators.filter(|one| one.operator_type == Some(OperatorType::Olm))
}

/// YAML documents of an operator's resources.
fn documents(operator: &MonitoredOperator, snapshot: &Snapshot) -> Result<Vec<String>, Error> {
    let row = RESOURCES.iter().find(|(name, _)| *name == operator.name);
    let resources = row.map_or_else(Vec::new, |(_, make)| make(snapshot));
    let texts = resources.iter().map(|one| text(&operator.name, one));
    texts.collect()
}

fn text(operator: &str, value: &Value) -> Result<String, Error> {
    serde_yaml::to_string(value)
        .map_err(|error| Error::internal(format!("writing resources of {operator}"), error))
}

/// The components of the AI platform; model serving needs more than one node.
fn science_platform(single_node: bool) -> Vec<Value> {
    let managed = json!({ "managementState": "Managed" });
    let removed = json!({ "managementState": "Removed" });
    let serving = if single_node { "Removed" } else { "Managed" };
    let gateway = json!({ "certificate": { "type": "OpenshiftDefaultIngress" } });
    let components = json!({
        "codeflare": managed,
        "dashboard": managed,
        "datasciencepipelines": managed,
        "kserve": {
            "managementState": serving,
            "serving": {
                "managementState": "Managed",
                "name": "knative-serving",
                "ingressGateway": gateway,
            },
        },
        "kueue": managed,
        "modelmeshserving": managed,
        "ray": managed,
        "trainingoperator": removed,
        "trustyai": removed,
        "workbenches": managed,
    });
    let initialization = json!({
        "applicationsNamespace": "redhat-ods-applications",
        "monitoring": { "managementState": "Managed", "namespace": "redhat-ods-monitoring" },
        "serviceMesh": { "managementState": serving },
        "trustedCABundle": { "managementState": "Managed", "customCABundle": "" },
    });
    let kind = ("datasciencecluster.opendatahub.io/v1", "DataScienceCluster");
    let first = ("dscinitialization.opendatahub.io/v1", "DSCInitialization");
    vec![
        resource(
            kind,
            &json!({ "name": "default-dsc" }),
            &json!({ "components": components }),
        ),
        resource(first, &json!({ "name": "default-dsci" }), &initialization),
    ]
}

fn feature_discovery() -> Value {
    let kind = ("nfd.openshift.io/v1", "NodeFeatureDiscovery");
    let metadata = json!({ "name": "nfd-instance", "namespace": "openshift-nfd" });
    // Classes of network cards, displays and accelerators.
    let config = json!({
        "core": { "sleepInterval": "60s" },
        "sources": { "pci": {
            "deviceClassWhitelist": ["0200", "03", "12"],
            "deviceLabelFields": ["vendor"],
        } },
    });
    let spec = json!({
        "operand": { "imagePullPolicy": "IfNotPresent", "servicePort": 12000 },
        "topologyUpdater": false,
        // The operator reads it as YAML, which JSON is.
        "workerConfig": { "configData": config.to_string() },
    });
    resource(kind, &metadata, &spec)
}

fn node_health_check() -> Value {
    let kind = ("remediation.medik8s.io/v1alpha1", "NodeHealthCheck");
    let metadata = json!({ "name": "node-healthcheck-self-node-remediation-workers" });
    let absent = |role| json!({ "key": format!("node-role.kubernetes.io/{role}"), "operator": "DoesNotExist" });
    let unhealthy = |status| json!({ "type": "Ready", "status": status, "duration": "300s" });
    let spec = json!({
        "selector": { "matchExpressions": [absent("control-plane"), absent("master")] },
        "remediationTemplate": {
            "apiVersion": "self-node-remediation.medik8s.io/v1alpha1",
            "kind": "SelfNodeRemediationTemplate",
            "namespace": "openshift-workload-availability",
            "name": "self-node-remediation-automatic-strategy-template",
        },
        "minHealthy": "51%",
        "unhealthyConditions": [unhealthy("False"), unhealthy("Unknown")],
    });
    resource(kind, &metadata, &spec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::OPERATORS;
    use crate::samples;

    fn chosen(names: &[&str]) -> Snapshot {
        let mut snapshot = samples::snapshot();
        let operators = names.iter().map(|name| MonitoredOperator {
            name: (*name).to_owned(),
            operator_type: Some(OperatorType::Olm),
            ..MonitoredOperator::default()
        });
        snapshot.cluster.monitored_operators.extend(operators);
        snapshot
    }

    /// Name and resources of each entry.
    fn entries(snapshot: &Snapshot) -> Vec<(String, Vec<Value>)> {
        let text = custom_manifests(snapshot).unwrap().unwrap();
        let list: Vec<Value> = serde_json::from_str(&text).unwrap();
        let entry = |one: &Value| {
            let content = STANDARD.decode(one["Content"].as_str().unwrap()).unwrap();
            let resources = serde_yaml::from_slice_multiple::<Value>(&content).unwrap();
            (one["Name"].as_str().unwrap().to_owned(), resources)
        };
        list.iter().map(entry).collect()
    }

    #[test]
    fn clusters_without_operators_have_no_resources() {
        assert_eq!(custom_manifests(&samples::snapshot()).unwrap(), None);
    }

    #[test]
    fn every_operator_has_an_entry_and_its_resources_a_name() {
        let names: Vec<&str> = OPERATORS.iter().map(|one| one.name).collect();
        let all = entries(&chosen(&names));
        assert_eq!(all.len(), OPERATORS.len());
        for (name, resources) in all {
            for resource in resources {
                assert!(
                    resource["metadata"]["name"].is_string(),
                    "{name}: {resource}"
                );
                assert!(resource["kind"].is_string(), "{name}: {resource}");
            }
        }
        for (name, _) in RESOURCES {
            assert!(names.contains(name), "{name}");
        }
    }

    #[test]
    fn the_cluster_has_a_copy_of_the_resources() {
        assert_eq!(config_map(&chosen(&["loki"])).unwrap(), None);
        let mut snapshot = chosen(&["loki", "odf"]);
        let odf = snapshot.cluster.monitored_operators.last_mut().unwrap();
        odf.namespace = "openshift-storage".to_owned();
        odf.subscription_name = "odf-operator".to_owned();
        let map = config_map(&snapshot).unwrap().unwrap();
        assert_eq!(map.file_name, "olm_operator_manifests.yaml");
        let map: Value = serde_yaml::from_str(&map.content).unwrap();
        let names: Vec<&String> = map["data"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["odf-01.yaml", "odf-02.yaml", "odf.metadata.yaml"]);
        let metadata = map["data"]["odf.metadata.yaml"].as_str().unwrap();
        assert_eq!(
            serde_yaml::from_str::<Value>(metadata).unwrap(),
            json!({
                "namespace": "openshift-storage",
                "subscriptionName": "odf-operator",
                "manifests": ["odf-01.yaml", "odf-02.yaml"],
            })
        );
        let first = STANDARD
            .decode(map["data"]["odf-01.yaml"].as_str().unwrap())
            .unwrap();
        let first: Value = serde_yaml::from_slice(&first).unwrap();
        assert_eq!(first["kind"], "StorageCluster");
    }

    #[test]
    fn operators_that_need_no_setup_have_an_empty_entry() {
        assert_eq!(
            entries(&chosen(&["loki"])),
            [("loki".to_owned(), Vec::new())]
        );
    }

    #[test]
    fn multicluster_engine_gets_volumes_of_one_operator() {
        let kinds = |names: &[&str]| {
            let all = entries(&chosen(names)).into_iter();
            let kinds = all.flat_map(|(_, resources)| resources);
            let kinds = kinds.map(|one| one["kind"].as_str().unwrap().to_owned());
            kinds.filter(|kind| kind == "AgentServiceConfig").count()
        };
        assert_eq!(kinds(&["mce"]), 0);
        assert_eq!(kinds(&["lvm"]), 0);
        assert_eq!(kinds(&["lvm", "mce"]), 1);
        assert_eq!(kinds(&["mce", "odf", "lso"]), 1);
    }

    #[test]
    fn a_compact_storage_cluster_uses_the_masters_disks() {
        let mut snapshot = chosen(&["odf"]);
        snapshot.hosts.truncate(3);
        let kinds = |snapshot: &Snapshot| {
            let all = entries(snapshot).remove(0).1;
            let kinds = all
                .iter()
                .map(|one| one["kind"].as_str().unwrap().to_owned());
            (kinds.collect::<Vec<_>>(), all[0]["spec"].clone())
        };
        let (names, spec) = kinds(&snapshot);
        assert_eq!(names, ["StorageCluster", "StorageSystem"]);
        assert!(spec["resources"]["mds"].is_object());
        assert_eq!(
            spec["storageDeviceSets"][0]["count"], 0,
            "no host has a spare disk"
        );
        snapshot.cluster.openshift_version = "4.19.1".to_owned();
        assert_eq!(kinds(&snapshot).0, ["StorageCluster"]);
    }
}
