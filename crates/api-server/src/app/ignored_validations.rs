//! Validations that a user has switched off for one cluster.

use model::Error;
use model::ids::ClusterId;
use model::validations::{ClusterValidationId as OfCluster, HostValidationId as OfHost};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{App, Scope, Work};

const HOST_IDS: &str = "host-validation-ids";
const CLUSTER_IDS: &str = "cluster-validation-ids";
/// Stands for every validation that may be ignored.
const ALL: &str = "all";

const NEVER_OF_HOSTS: &[OfHost] = &[
    OfHost::Connected,
    OfHost::HasInventory,
    OfHost::InventoryNotFullyTruncated,
    OfHost::MachineCidrDefined,
    OfHost::HostnameUnique,
    OfHost::HostnameValid,
];
const NEVER_OF_CLUSTERS: &[OfCluster] = &[
    OfCluster::ApiVipsDefined,
    OfCluster::IngressVipsDefined,
    OfCluster::AllHostsAreReadyToInstall,
    OfCluster::SufficientMastersCount,
    OfCluster::PullSecretSet,
];

/// The description has texts that hold JSON lists; one of the clients in the field sends the lists themselves.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Params {
    #[serde(rename = "host-validation-ids")]
    hosts: Option<Ids>,
    #[serde(rename = "cluster-validation-ids")]
    clusters: Option<Ids>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Ids {
    List(Vec<String>),
    Text(String),
}

impl Ids {
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

/// Checks ids against those that exist and those that always count; the text is what the record holds.
fn checked<T>(ids: Option<Ids>, field: &str, never: &[T]) -> Result<Option<String>, Error>
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
        if never.contains(&id) {
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

impl App {
    /// What is switched off.
    pub(crate) async fn ignored_validations(&self, id: ClusterId) -> Result<Value, Error> {
        Ok(shown(&self.stored_cluster(id).await?.snapshot.cluster))
    }

    /// Switches validations off; members that are not sent stay.
    ///
    /// Errors: Invalid – an id, or the cluster takes no changes now.
    pub(crate) async fn set_ignored_validations(
        &self,
        id: ClusterId,
        params: &Params,
    ) -> Result<Value, Error> {
        let hosts = checked(params.hosts.clone(), HOST_IDS, NEVER_OF_HOSTS)?;
        let clusters = checked(params.clusters.clone(), CLUSTER_IDS, NEVER_OF_CLUSTERS)?;
        let decide = |work: &mut Work| {
            let cluster = &mut work.snapshot.cluster;
            rules::update::accepts_changes(cluster)
                .map_err(|error| Error::invalid("ignored_validations", error.to_string()))?;
            if let Some(text) = &hosts {
                cluster.ignored_host_validations.clone_from(text);
            }
            if let Some(text) = &clusters {
                cluster.ignored_cluster_validations.clone_from(text);
            }
            work.refresh(&self.policy);
            Ok(())
        };
        let ((), stored) = self
            .change("ignore validations", Scope::Cluster(id), decide)
            .await?;
        Ok(shown(&stored.snapshot.cluster))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: Value) -> Result<Option<String>, Error> {
        let params: Params = serde_json::from_value(body).unwrap();
        checked(params.hosts, HOST_IDS, NEVER_OF_HOSTS)
    }

    #[test]
    fn text_and_list_mean_the_same() {
        let text = check(json!({HOST_IDS: "[\"ntp-synced\"]"})).unwrap();
        let list = check(json!({HOST_IDS: ["ntp-synced"]})).unwrap();
        assert_eq!(text, list);
        assert_eq!(text.as_deref(), Some("[\"ntp-synced\"]"));
    }

    #[test]
    fn what_always_counts_and_what_does_not_exist_is_refused() {
        assert!(check(json!({HOST_IDS: ["connected"]})).is_err());
        assert!(check(json!({HOST_IDS: ["no-such"]})).is_err());
        assert!(check(json!({HOST_IDS: "not json"})).is_err());
        assert!(check(json!({HOST_IDS: ["all"]})).is_ok());
    }
}
