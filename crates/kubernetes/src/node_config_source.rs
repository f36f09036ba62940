//! Where a new node gets its configuration from: the machine-config server of the cluster, as its records name it.

use std::collections::BTreeMap;

use kube::core::DynamicObject;
use model::Error;
use serde::Deserialize;
use url::{Host, Url};

use super::connect::KubernetesCluster;
use super::listed::member;
use super::resources::{CONFIG_MAPS, INFRASTRUCTURES, MACHINE_CONFIGS};

/// ConfigMaps with the authorities of the machine-config server: namespace, name and key. The first is there once the
/// platform renews them by itself (4.19); its authority has then replaced the other's.
/// Source: machine-config-operator, pkg/controller/certrotation.
const AUTHORITIES: [(&str, &str, &str); 2] = [
    (
        "openshift-machine-config-operator",
        "machine-config-server-ca",
        "ca-bundle.crt",
    ),
    ("kube-system", "root-ca", "ca.crt"),
];

/// The source of a node's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeConfigSource {
    /// Name or address of the machine-config server, as `api-int.demo.example.com`.
    pub server: String,
    /// PEM of the authorities of its certificate.
    pub authorities: Vec<String>,
    /// Keys that log in as `core` on nodes of the role.
    pub ssh_keys: Vec<String>,
}

impl KubernetesCluster {
    /// The source for nodes of `role`, as `master`.
    ///
    /// Errors: Conflict – the cluster has no machine-config server, with all records that it lacks; as [`Self::list`].
    pub async fn node_config_source(&self, role: &str) -> Result<NodeConfigSource, Error> {
        let infrastructure = self.find(&INFRASTRUCTURES, "cluster").await?;
        let mut authorities = Vec::new();
        for (namespace, name, key) in AUTHORITIES {
            let record = self.find(&CONFIG_MAPS.within(namespace), name).await?;
            authorities.extend(record.and_then(|record| authority(&record, key)));
        }
        let keys = self
            .find(&MACHINE_CONFIGS, &format!("99-{role}-ssh"))
            .await?;
        source(infrastructure.as_ref(), authorities, keys.as_ref())
    }
}

fn source(
    infrastructure: Option<&DynamicObject>,
    mut authorities: Vec<String>,
    keys: Option<&DynamicObject>,
) -> Result<NodeConfigSource, Error> {
    let mut missing = Vec::new();
    let server = infrastructure.and_then(server);
    if infrastructure.is_none() {
        missing.push("Infrastructure \"cluster\"".to_owned());
    } else if server.is_none() {
        let part = "address of the internal API in Infrastructure \"cluster\"";
        missing.push(part.to_owned());
    }
    authorities.dedup();
    if authorities.is_empty() {
        let places = AUTHORITIES
            .map(|(namespace, name, key)| format!("{key} in ConfigMap {namespace}/{name}"));
        missing.push(places.join(" or "));
    }
    match server {
        Some(server) if missing.is_empty() => Ok(NodeConfigSource {
            server,
            authorities,
            ssh_keys: keys.map(ssh_keys).unwrap_or_default(),
        }),
        _ => Err(Error::conflict(format!(
            "the cluster has no {}: only clusters of the platform have a machine-config server",
            missing.join(", and no ")
        ))),
    }
}

/// The host of the internal API, which has the machine-config server, too.
fn server(infrastructure: &DynamicObject) -> Option<String> {
    let internal: String = member(infrastructure, "/status/apiServerInternalURI");
    match Url::parse(&internal).ok()?.host()? {
        Host::Domain(name) if !name.is_empty() => Some(name.to_owned()),
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some(address.to_string()),
        Host::Ipv6(address) => Some(address.to_string()),
    }
}

fn authority(record: &DynamicObject, key: &str) -> Option<String> {
    let data: BTreeMap<String, String> = member(record, "/data");
    data.get(key).filter(|pem| !pem.is_empty()).cloned()
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
        let pems = || vec!["NEW".to_owned(), "OLD".to_owned()];
        let keys = record(
            json!({ "metadata": {}, "spec": { "config": { "passwd": { "users": [
            { "name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA one"] }, { "name": "other", "sshAuthorizedKeys": ["no"] },
        ] } } } }),
        );
        let url = "https://api-int.demo.example.com:6443";
        let found = source(internal(url).as_ref(), pems(), keys.as_ref()).unwrap();
        let expected = NodeConfigSource {
            server: "api-int.demo.example.com".to_owned(),
            authorities: pems(),
            ssh_keys: vec!["ssh-ed25519 AAAA one".to_owned()],
        };
        assert_eq!(found, expected);
        let found = source(internal("https://[fd00::5]:6443").as_ref(), pems(), None).unwrap();
        assert_eq!(found.server, "fd00::5");
        for (infrastructure, authorities, parts) in [
            (None, pems(), &["Infrastructure"][..]),
            (internal(""), pems(), &["address"]),
            (internal("data:,"), pems(), &["address"]),
            (internal(url), vec![], &["kube-system/root-ca"]),
            // All that is missing is named at once.
            (None, vec![], &["Infrastructure", "root-ca", "server-ca"]),
        ] {
            let error = source(infrastructure.as_ref(), authorities, None).unwrap_err();
            for part in parts {
                assert!(error.to_string().contains(part), "{part}: {error}");
            }
        }
    }

    #[test]
    fn authorities_are_those_of_their_key() {
        let data = |value: Value| record(json!({ "metadata": {}, "data": value })).unwrap();
        let found = authority(&data(json!({ "ca.crt": "PEM", "other": "x" })), "ca.crt");
        assert_eq!(found.as_deref(), Some("PEM"));
        for strange in [json!({}), json!({ "ca.crt": "" }), json!(null), json!([1])] {
            assert_eq!(authority(&data(strange), "ca.crt"), None);
        }
    }
}
