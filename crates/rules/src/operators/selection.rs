//! Operators of a cluster: expansion of bundles, dependencies, records.
//!
//! Source: assisted-service, internal/bminventory/inventory.go (expandAndMergeOperators, getOLMOperators,
//! populateOperatorBundles), internal/operators/manager.go (ResolveDependencies).

use std::collections::{BTreeMap, VecDeque};

use model::Error;
use model::cluster::Cluster;
use model::operators::{BundleCreateParams, MonitoredOperator, OperatorCreateParams, OperatorType};

use super::bundles::{BUNDLES, OperatorBundle};
use super::catalogue::{OlmOperator, operator};
use crate::input::refuse;
use crate::network::networking;
use crate::operators::support::MinorVersion;

/// Operators and bundles of a request; both absent leave a cluster's operators as they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OperatorRequest<'a> {
    /// `olm_operators`
    pub(crate) operators: Option<&'a [OperatorCreateParams]>,
    /// `operator_bundles`
    pub(crate) bundles: Option<&'a [BundleCreateParams]>,
}

/// An operator of a request.
struct ChosenOperator<'a> {
    operator: &'static OlmOperator,
    properties: &'a str,
    /// Bundles that it comes from; none when it is also chosen by name.
    source_bundles: Vec<String>,
    dependency_only: bool,
}

/// Replaces the chosen operators of a cluster by those of a request. Records of operators that stay keep their state.
/// Whether they fit the cluster is not checked here.
///
/// Errors: `Invalid` on `olm_operators` or `operator_bundles` – unknown names.
pub(crate) fn select(cluster: &mut Cluster, request: OperatorRequest<'_>) -> Result<(), Error> {
    if request.operators.is_none() && request.bundles.is_none() {
        return Ok(());
    }
    let single_node = networking::is_single_node(cluster);
    let mut chosen = expand_bundles(request.bundles.unwrap_or_default(), single_node)?;
    add_named(&mut chosen, request.operators.unwrap_or_default())?;
    add_dependencies(&mut chosen, single_node);
    cluster.operator_bundles = bundle_params(&chosen, single_node);
    let records = chosen.into_iter().map(|one| record(one, cluster)).collect();
    let mut before = std::mem::replace(&mut cluster.monitored_operators, records);
    before.retain(|one| one.operator_type != Some(OperatorType::Olm));
    cluster.monitored_operators.splice(0..0, before);
    Ok(())
}

fn expand_bundles(
    bundles: &[BundleCreateParams],
    single_node: bool,
) -> Result<Vec<ChosenOperator<'static>>, Error> {
    let mut sources: Vec<(&'static OlmOperator, Vec<String>)> = Vec::new();
    for params in bundles {
        let names = bundle_operators(params, single_node)?;
        for found in names.into_iter().filter_map(operator) {
            let known = sources.iter_mut().find(|(one, _)| one.name == found.name);
            match known {
                Some((_, ids)) if ids.contains(&params.id) => {}
                Some((_, ids)) => ids.push(params.id.clone()),
                None => sources.push((found, vec![params.id.clone()])),
            }
        }
    }
    let chosen = sources
        .into_iter()
        .map(|(operator, source_bundles)| ChosenOperator {
            operator,
            properties: "",
            source_bundles,
            dependency_only: false,
        });
    Ok(chosen.collect())
}

/// Names of the operators of a requested bundle.
fn bundle_operators(
    params: &BundleCreateParams,
    single_node: bool,
) -> Result<Vec<&'static str>, Error> {
    let Some(bundle) = BUNDLES.iter().find(|bundle| bundle.id == params.id) else {
        let known: Vec<&str> = BUNDLES.iter().map(|bundle| bundle.id).collect();
        return Err(refuse(
            "operator_bundles",
            &params.id,
            &format!("is not a bundle: choose of [{}]", known.join(", ")),
        ));
    };
    let content = bundle.content(single_node);
    let mut names = content.operators.to_vec();
    for wanted in params.optional_operators.iter().flatten() {
        let mut optional = content.optional_operators.iter();
        let found = optional.find(|name| *name == wanted).ok_or_else(|| {
            refuse(
                "operator_bundles",
                wanted,
                &format!(
                    "is not an optional operator of bundle {}: choose of [{}]",
                    bundle.id,
                    content.optional_operators.join(", ")
                ),
            )
        })?;
        names.push(found);
    }
    Ok(names)
}

/// Adds operators that are chosen by name; these no longer count as parts of a bundle.
fn add_named<'a>(
    chosen: &mut Vec<ChosenOperator<'a>>,
    operators: &'a [OperatorCreateParams],
) -> Result<(), Error> {
    for params in operators {
        let found = operator(&params.name).ok_or_else(|| {
            refuse(
                "olm_operators",
                &params.name,
                "is not an operator that can be chosen: see GET /v2/supported-operators",
            )
        })?;
        let known = chosen
            .iter_mut()
            .find(|one| one.operator.name == found.name);
        match known {
            Some(known) => {
                known.source_bundles.clear();
                known.properties = &params.properties;
            }
            None => chosen.push(ChosenOperator {
                operator: found,
                properties: &params.properties,
                source_bundles: Vec::new(),
                dependency_only: false,
            }),
        }
    }
    Ok(())
}

/// Adds the operators that others need, each once.
fn add_dependencies(chosen: &mut Vec<ChosenOperator<'_>>, single_node: bool) {
    let mut waiting: VecDeque<&'static OlmOperator> =
        chosen.iter().map(|one| one.operator).collect();
    while let Some(needing) = waiting.pop_front() {
        for needed in needing.dependencies(single_node).filter_map(operator) {
            if chosen.iter().any(|one| one.operator.name == needed.name) {
                continue;
            }
            chosen.push(ChosenOperator {
                operator: needed,
                properties: "",
                source_bundles: Vec::new(),
                dependency_only: true,
            });
            waiting.push_back(needed);
        }
    }
}

/// The bundles that operators come from, with their optional operators.
fn bundle_params(chosen: &[ChosenOperator<'_>], single_node: bool) -> Vec<BundleCreateParams> {
    let mut by_bundle: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in chosen {
        for id in &one.source_bundles {
            by_bundle.entry(id).or_default().push(one.operator.name);
        }
    }
    let params = |bundle: &OperatorBundle, names: &[&str]| {
        let optional = bundle.content(single_node).optional_operators.iter();
        let kept = optional.filter(|name| names.contains(name));
        BundleCreateParams {
            id: bundle.id.to_owned(),
            optional_operators: Some(kept.map(ToString::to_string).collect()),
        }
    };
    let rows = BUNDLES.iter();
    rows.filter_map(|bundle| Some(params(bundle, by_bundle.get(bundle.id)?)))
        .collect()
}

/// The record of an operator; its state if the cluster has it already.
fn record(chosen: ChosenOperator<'_>, cluster: &Cluster) -> MonitoredOperator {
    let operator = chosen.operator;
    let known = cluster
        .monitored_operators
        .iter()
        .find(|one| one.name == operator.name);
    // Versions of clusters are parsed when they are created.
    let version = cluster.openshift_version.parse();
    let version = version.unwrap_or(MinorVersion::four(u64::MAX));
    let single_node = networking::is_single_node(cluster);
    let bundles = BUNDLES.iter().filter(|bundle| {
        let content = bundle.content(single_node);
        content.operators.contains(&operator.name)
            || content.optional_operators.contains(&operator.name)
    });
    MonitoredOperator {
        cluster_id: Some(cluster.id),
        name: operator.name.to_owned(),
        namespace: operator.namespace.to_owned(),
        subscription_name: operator.subscription(version).to_owned(),
        operator_type: Some(OperatorType::Olm),
        properties: chosen.properties.to_owned(),
        timeout_seconds: operator.timeout_s,
        bundles: bundles.map(|bundle| bundle.id.to_owned()).collect(),
        dependency_only: chosen.dependency_only,
        source_bundles: chosen.source_bundles,
        ..known.cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use model::operators::OperatorStatus;
    use serde_json::{Value, json};

    use super::*;
    use crate::samples;

    fn choose(cluster: &mut Cluster, operators: &Value, bundles: &Value) -> Result<(), Error> {
        let operators: Option<Vec<_>> = serde_json::from_value(operators.clone()).unwrap();
        let bundles: Option<Vec<_>> = serde_json::from_value(bundles.clone()).unwrap();
        let request = OperatorRequest {
            operators: operators.as_deref(),
            bundles: bundles.as_deref(),
        };
        select(cluster, request)
    }

    /// Names of the operators; those that are only needed by others have a star.
    fn names(cluster: &Cluster) -> Vec<String> {
        let name = |one: &MonitoredOperator| {
            let star = if one.dependency_only { "*" } else { "" };
            format!("{}{star}", one.name)
        };
        cluster.monitored_operators.iter().map(name).collect()
    }

    fn cluster() -> Cluster {
        samples::create(samples::params()).unwrap()
    }

    #[test]
    fn dependencies_are_added_once_and_marked() {
        let mut cluster = cluster();
        let wanted =
            json!([{ "name": "cluster-observability" }, { "name": "amd-gpu" }, { "name": "kmm" }]);
        choose(&mut cluster, &wanted, &Value::Null).unwrap();
        let expected = [
            "console",
            "cluster-observability",
            "amd-gpu",
            "kmm",
            "openshift-logging*",
            "node-feature-discovery*",
            "loki*",
        ];
        assert_eq!(names(&cluster), expected);
        let gpu = &cluster.monitored_operators[2];
        assert_eq!(
            (gpu.namespace.as_str(), gpu.timeout_seconds),
            ("openshift-amd-gpu", 1800)
        );
        assert_eq!(gpu.cluster_id, Some(cluster.id));
    }

    #[test]
    fn a_request_replaces_the_operators_and_keeps_their_state() {
        let mut cluster = cluster();
        choose(&mut cluster, &json!([{ "name": "odf" }]), &Value::Null).unwrap();
        assert_eq!(names(&cluster), ["console", "odf", "lso*"]);
        cluster.monitored_operators[2].status = Some(OperatorStatus::Progressing);
        choose(&mut cluster, &Value::Null, &Value::Null).unwrap();
        assert_eq!(names(&cluster).len(), 3);
        choose(
            &mut cluster,
            &json!([{ "name": "lso", "properties": "{}" }]),
            &Value::Null,
        )
        .unwrap();
        assert_eq!(names(&cluster), ["console", "lso"]);
        let lso = &cluster.monitored_operators[1];
        assert_eq!(
            (lso.status, lso.properties.as_str()),
            (Some(OperatorStatus::Progressing), "{}")
        );
        choose(&mut cluster, &json!([]), &Value::Null).unwrap();
        assert_eq!(names(&cluster), ["console"]);
    }

    #[test]
    fn bundles_expand_to_their_operators() {
        let mut cluster = cluster();
        let bundle = json!([{ "id": "openshift-ai", "optional_operators": ["nvidia-gpu"] }]);
        choose(&mut cluster, &json!([{ "name": "pipelines" }]), &bundle).unwrap();
        let by_name = |name: &str| {
            let mut found = cluster.monitored_operators.iter();
            found.find(|one| one.name == name).unwrap()
        };
        assert_eq!(by_name("odf").source_bundles, ["openshift-ai"]);
        assert_eq!(by_name("nvidia-gpu").source_bundles, ["openshift-ai"]);
        assert!(
            by_name("pipelines").source_bundles.is_empty(),
            "chosen by name, too"
        );
        assert_eq!(by_name("pipelines").bundles, ["openshift-ai"]);
        assert!(by_name("lso").dependency_only);
        assert_eq!(
            serde_json::to_value(&cluster.operator_bundles).unwrap(),
            bundle
        );
    }

    #[test]
    fn single_node_clusters_get_the_content_of_single_nodes() {
        let mut cluster = samples::single_node().cluster;
        choose(
            &mut cluster,
            &Value::Null,
            &json!([{ "id": "openshift-ai" }]),
        )
        .unwrap();
        assert_eq!(names(&cluster), ["console", "lvm", "openshift-ai"]);
    }

    #[test]
    fn unknown_names_are_refused() {
        for (operators, bundles, field) in [
            (json!([{ "name": "nope" }]), Value::Null, "olm_operators"),
            (Value::Null, json!([{ "id": "nope" }]), "operator_bundles"),
            (
                Value::Null,
                json!([{ "id": "openshift-ai", "optional_operators": ["lso"] }]),
                "operator_bundles",
            ),
        ] {
            let error = choose(&mut cluster(), &operators, &bundles)
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(field), "{error}");
        }
    }
}
