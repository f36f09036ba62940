//! Ignored validations of a cluster.

use std::sync::Arc;

use model::Error;
use model::ids::ClusterId;
use rules::explain::validations::{NEVER_IGNORED_CLUSTER, NEVER_IGNORED_HOST};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ClusterStore, ClusterTransaction, Scope};

const HOST_IDS: &str = "host-validation-ids";
const CLUSTER_IDS: &str = "cluster-validation-ids";
/// Placeholder for every validation that may be ignored.
const ALL: &str = "all";

/// Request body. The API description has strings that hold JSON lists; aicli sends the lists themselves.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct IgnoredValidationsParams {
    #[serde(rename = "host-validation-ids")]
    hosts: Option<ValidationIds>,
    #[serde(rename = "cluster-validation-ids")]
    clusters: Option<ValidationIds>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum ValidationIds {
    List(Vec<String>),
    Text(String),
}

impl ValidationIds {
    fn list(self, field: &str) -> Result<Vec<String>, Error> {
        match self {
            Self::List(list) => Ok(list),
            Self::Text(text) if text.is_empty() => Ok(Vec::new()),
            Self::Text(text) => serde_json::from_str(&text).map_err(|error| {
                Error::invalid(
                    field,
                    format!("{text:?} is not a JSON list of validation ids: {error}"),
                )
            }),
        }
    }
}

/// Checks ids; returns the text for the record.
///
/// Errors: Invalid – unknown, or mandatory.
fn parse_ignored<T>(
    ids: Option<ValidationIds>,
    field: &str,
    mandatory: &[T],
) -> Result<Option<String>, Error>
where
    T: std::str::FromStr<Err = model::UnknownValue> + PartialEq + std::fmt::Display,
{
    let Some(ids) = ids else {
        return Ok(None);
    };
    let list = ids.list(field)?;
    for text in list.iter().filter(|text| *text != ALL) {
        let id: T = text
            .parse()
            .map_err(|error: model::UnknownValue| Error::invalid(field, error.to_string()))?;
        if mandatory.contains(&id) {
            return Err(Error::invalid(
                field,
                format!("validation {id} cannot be ignored"),
            ));
        }
    }
    if list.is_empty() {
        Ok(Some(String::new()))
    } else {
        Ok(Some(json!(list).to_string()))
    }
}

fn shown(cluster: &model::cluster::Cluster) -> Value {
    let mut answer = serde_json::Map::new();
    for (name, text) in [
        (HOST_IDS, &cluster.ignored_host_validations),
        (CLUSTER_IDS, &cluster.ignored_cluster_validations),
    ] {
        if !text.is_empty() {
            answer.insert(name.to_owned(), json!(text));
        }
    }
    Value::Object(answer)
}

/// The ignored validations of a cluster.
pub(crate) async fn ignored_validations(
    clusters: &ClusterStore,
    id: ClusterId,
) -> Result<Value, Error> {
    Ok(shown(&clusters.stored(id).await?.snapshot.cluster))
}

/// Sets the ignored validations; absent members stay unchanged.
///
/// Errors: Invalid – an id, or the cluster's state accepts no changes.
pub(crate) async fn set_ignored_validations(
    clusters: &Arc<ClusterStore>,
    id: ClusterId,
    params: &IgnoredValidationsParams,
) -> Result<Value, Error> {
    let of_hosts = parse_ignored(params.hosts.clone(), HOST_IDS, NEVER_IGNORED_HOST)?;
    let of_cluster = parse_ignored(params.clusters.clone(), CLUSTER_IDS, NEVER_IGNORED_CLUSTER)?;
    let decide = |change: &mut ClusterTransaction| {
        let cluster = &mut change.snapshot.cluster;
        rules::cluster::update::accepts_changes(cluster)
            .map_err(|error| Error::invalid("ignored_validations", error.to_string()))?;
        if let Some(text) = &of_hosts {
            cluster.ignored_host_validations.clone_from(text);
        }
        if let Some(text) = &of_cluster {
            cluster.ignored_cluster_validations.clone_from(text);
        }
        change.refresh();
        Ok(())
    };
    let ((), stored) = clusters
        .change("ignore validations", Scope::Cluster(id), decide)
        .await?;
    Ok(shown(&stored.snapshot.cluster))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: Value) -> Result<Option<String>, Error> {
        let params: IgnoredValidationsParams = serde_json::from_value(body).unwrap();
        parse_ignored(params.hosts, HOST_IDS, NEVER_IGNORED_HOST)
    }

    #[test]
    fn string_and_list_are_equivalent() {
        let text = check(json!({HOST_IDS: "[\"ntp-synced\"]"})).unwrap();
        let list = check(json!({HOST_IDS: ["ntp-synced"]})).unwrap();
        assert_eq!(text, list);
        assert_eq!(text.as_deref(), Some("[\"ntp-synced\"]"));
    }

    #[test]
    fn unknown_and_mandatory_validations_are_refused() {
        assert!(check(json!({HOST_IDS: ["connected"]})).is_err());
        assert!(check(json!({HOST_IDS: ["no-such"]})).is_err());
        assert!(check(json!({HOST_IDS: "not json"})).is_err());
        assert!(check(json!({HOST_IDS: ["all"]})).is_ok());
    }
}
