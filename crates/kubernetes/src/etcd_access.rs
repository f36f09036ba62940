//! The way to etcd: its addresses and a client's certificate, as the cluster keeps them.
//!
//! They are read once, at the beginning: the Kubernetes API may vanish in the middle of a repair, etcd is spoken to
//! directly.

use std::collections::BTreeMap;
use std::net::IpAddr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube::core::DynamicObject;
use model::Error;
use secrecy::SecretString;

use super::connect::KubernetesCluster;
use super::listed::member;
use super::resources::{CONFIG_MAPS, ETCD_NAMESPACE, SECRETS};
use etcd::{EtcdAddress, EtcdCredentials};

/// Port of clients.
const PORT: u16 = 2379;
/// ConfigMap with the addresses of the members.
const ENDPOINTS: &str = "etcd-endpoints";
/// Secret with the certificate of a client.
const CLIENT: &str = "etcd-client";
/// ConfigMap with the authorities of the members.
const AUTHORITIES: &str = "etcd-ca-bundle";

/// The way to etcd.
#[derive(Debug, Clone)]
pub struct EtcdAccess {
    /// Of the members, as the platform's operator has them.
    pub endpoints: Vec<EtcdAddress>,
    /// Of a client that may do everything.
    pub credentials: EtcdCredentials,
}

impl KubernetesCluster {
    /// The way to the cluster's etcd.
    ///
    /// Errors: Conflict – a record is missing; as [`Self::list`].
    pub async fn etcd_access(&self) -> Result<EtcdAccess, Error> {
        let endpoints = self.find(&CONFIG_MAPS, ENDPOINTS).await?;
        let client = self.find(&SECRETS, CLIENT).await?;
        let authorities = self.find(&CONFIG_MAPS, AUTHORITIES).await?;
        access(endpoints, client, authorities)
    }
}

fn access(
    endpoints: Option<DynamicObject>,
    client: Option<DynamicObject>,
    authorities: Option<DynamicObject>,
) -> Result<EtcdAccess, Error> {
    let part = |kind: &str, name: &str, record: Option<DynamicObject>| {
        record.ok_or_else(|| missing(&format!("{kind} {ETCD_NAMESPACE}/{name}")))
    };
    let endpoints = part("ConfigMap", ENDPOINTS, endpoints)?;
    let client = part("Secret", CLIENT, client)?;
    let authorities = part("ConfigMap", AUTHORITIES, authorities)?;
    let addresses: BTreeMap<String, String> = member(&endpoints, "/data");
    let addresses = addresses.values().filter_map(|text| text.parse().ok());
    let endpoints: Vec<_> = addresses.map(endpoint).collect();
    if endpoints.is_empty() {
        let record = format!("address in ConfigMap {ETCD_NAMESPACE}/{ENDPOINTS}");
        return Err(missing(&record));
    }
    let authorities: String = member(&authorities, "/data/ca-bundle.crt");
    Ok(EtcdAccess {
        endpoints,
        credentials: EtcdCredentials {
            authorities_pem: authorities,
            certificate_pem: secret(&client, "tls.crt")?,
            key_pem: SecretString::from(secret(&client, "tls.key")?),
        },
    })
}

fn endpoint(address: IpAddr) -> EtcdAddress {
    EtcdAddress {
        host: address.to_string(),
        port: PORT,
    }
}

fn secret(record: &DynamicObject, name: &str) -> Result<String, Error> {
    let encoded: String = member(record, &format!("/data/{name}"));
    let decoded = BASE64_STANDARD.decode(encoded).ok();
    let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    text.filter(|text| !text.is_empty())
        .ok_or_else(|| missing(&format!("{name} in Secret {ETCD_NAMESPACE}/{CLIENT}")))
}

fn missing(record: &str) -> Error {
    Error::conflict(format!(
        "the cluster has no {record}: name etcd's endpoints and a client's certificate on the command line"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn record(data: &Value) -> Option<DynamicObject> {
        serde_json::from_value(json!({ "metadata": {}, "data": data })).unwrap()
    }

    fn client() -> Option<DynamicObject> {
        record(
            &json!({ "tls.crt": BASE64_STANDARD.encode("PEM"), "tls.key": BASE64_STANDARD.encode("KEY") }),
        )
    }

    #[test]
    fn the_way_is_that_of_the_records() {
        let endpoints = record(&json!({ "a": "192.0.2.10", "b": "2001:db8::1", "c": "name" }));
        let authorities = record(&json!({ "ca-bundle.crt": "CA" }));
        let found = access(endpoints, client(), authorities).unwrap();
        let shown: Vec<_> = found.endpoints.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            ["https://192.0.2.10:2379", "https://[2001:db8::1]:2379"]
        );
        assert_eq!(found.credentials.certificate_pem, "PEM");
        assert!(!format!("{found:?}").contains("KEY"));
    }

    #[test]
    fn a_missing_part_is_named() {
        let endpoints = || record(&json!({ "a": "192.0.2.10" }));
        let authorities = || record(&json!({ "ca-bundle.crt": "CA" }));
        for (endpoints, client, authorities, part) in [
            (
                None,
                client(),
                authorities(),
                "openshift-etcd/etcd-endpoints",
            ),
            (record(&json!({})), client(), authorities(), "address in"),
            (
                endpoints(),
                None,
                authorities(),
                "openshift-etcd/etcd-client",
            ),
            (
                endpoints(),
                record(&json!({ "tls.crt": "%" })),
                authorities(),
                "tls.crt",
            ),
            (endpoints(), client(), None, "openshift-etcd/etcd-ca-bundle"),
        ] {
            let error = access(endpoints, client, authorities).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
