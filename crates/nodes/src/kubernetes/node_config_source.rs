//! Where a new node gets its configuration from: the machine-config server of the cluster, as its records name it.

use kube::core::DynamicObject;
use model::Error;
use serde::Deserialize;
use url::Url;

use super::connect::KubernetesCluster;
use super::listed::member;
use super::resources::{CONFIG_MAPS, INFRASTRUCTURES, MACHINE_CONFIGS, ResourceKind};

/// Port of the machine-config server.
const PORT: u16 = 22623;
/// Namespace and name of the ConfigMap with the authority of the machine-config server.
const AUTHORITY: (&str, &str) = ("kube-system", "root-ca");

/// The source of a node's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeConfigSource {
    /// As `https://api-int.demo.example.com:22623/config/master`.
    pub url: String,
    /// PEM of the authority of its certificate.
    pub authority: String,
    /// Keys that log in as `core` on nodes of the role.
    pub ssh_keys: Vec<String>,
}

impl KubernetesCluster {
    /// The source for nodes of `role`, as `master`.
    ///
    /// Errors: Conflict – the cluster has no machine-config server; as [`Self::list`].
    pub async fn node_config_source(&self, role: &str) -> Result<NodeConfigSource, Error> {
        let infrastructure = self.find(&INFRASTRUCTURES, "cluster").await?;
        let (namespace, name) = AUTHORITY;
        let authorities: ResourceKind = CONFIG_MAPS.within(namespace);
        let authority = self.find(&authorities, name).await?;
        let keys = self
            .find(&MACHINE_CONFIGS, &format!("99-{role}-ssh"))
            .await?;
        source(infrastructure, authority, keys, role)
    }
}

fn source(
    infrastructure: Option<DynamicObject>,
    authority: Option<DynamicObject>,
    keys: Option<DynamicObject>,
    role: &str,
) -> Result<NodeConfigSource, Error> {
    let missing = |record: &str| {
        Error::conflict(format!(
            "the cluster has no {record}: only clusters of the platform have a machine-config server"
        ))
    };
    let infrastructure = infrastructure.ok_or_else(|| missing("Infrastructure \"cluster\""))?;
    let internal: String = member(&infrastructure, "/status/apiServerInternalURI");
    let mut url = Url::parse(&internal)
        .map_err(|_| missing("address of the internal API in Infrastructure \"cluster\""))?;
    url.set_port(Some(PORT))
        .map_err(|()| missing("address of the internal API"))?;
    url.set_path(&format!("/config/{role}"));
    let (namespace, name) = AUTHORITY;
    let authority = authority.ok_or_else(|| missing(&format!("ConfigMap {namespace}/{name}")))?;
    let authority: String = member(&authority, "/data/ca.crt");
    if authority.is_empty() {
        return Err(missing(&format!("ca.crt in ConfigMap {namespace}/{name}")));
    }
    Ok(NodeConfigSource {
        url: url.into(),
        authority,
        ssh_keys: keys.map(|keys| ssh_keys(&keys)).unwrap_or_default(),
    })
}

fn ssh_keys(config: &DynamicObject) -> Vec<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct User {
        name: String,
        #[serde(rename = "sshAuthorizedKeys")]
        keys: Vec<String>,
    }
    let users: Vec<User> = member(config, "/spec/config/passwd/users");
    let core = users.into_iter().filter(|user| user.name == "core");
    core.flat_map(|user| user.keys).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn record(value: Value) -> Option<DynamicObject> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_source_is_that_of_the_records() {
        let internal = |url: &str| {
            record(json!({ "metadata": {}, "status": { "apiServerInternalURI": url } }))
        };
        let authority = record(json!({ "metadata": {}, "data": { "ca.crt": "PEM" } }));
        let keys = record(
            json!({ "metadata": {}, "spec": { "config": { "passwd": { "users": [
            { "name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA one"] }, { "name": "other", "sshAuthorizedKeys": ["no"] },
        ] } } } }),
        );
        let url = "https://api-int.demo.example.com:6443";
        let found = source(internal(url), authority.clone(), keys, "master").unwrap();
        let expected = NodeConfigSource {
            url: "https://api-int.demo.example.com:22623/config/master".to_owned(),
            authority: "PEM".to_owned(),
            ssh_keys: vec!["ssh-ed25519 AAAA one".to_owned()],
        };
        assert_eq!(found, expected);
        for (infrastructure, authority, part) in [
            (None, authority.clone(), "Infrastructure"),
            (internal(""), authority.clone(), "address"),
            (internal("data:,"), authority, "address"),
            (internal(url), None, "kube-system/root-ca"),
            (internal(url), record(json!({ "metadata": {} })), "ca.crt"),
        ] {
            let error = source(infrastructure, authority, None, "master").unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
