//! The ignition that an installed cluster serves to joining hosts, as one of them downloaded it.
//!
//! Settings of an imported cluster are known from it alone: disk encryption, and whether its network is managed.

use std::net::IpAddr;

use ignition::data_url;
use model::steps::ApiVipConnectivityResponse;
use serde::{Deserialize, Serialize};

use crate::snapshot::host_texts::parse;

/// Static pods of a cluster that resolves its own names and holds its own addresses.
const MANAGED: [&str; 2] = [
    "/etc/kubernetes/manifests/coredns.yaml",
    "/etc/kubernetes/manifests/keepalived.yaml",
];
const KUBECONFIG: &str = "/etc/kubernetes/kubeconfig";

/// The parts of the ignition that agents report.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ClusterIgnition {
    storage: ReportedStorage,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReportedStorage {
    files: Vec<File>,
    luks: Vec<Luks>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    path: String,
    contents: ReportedContents,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReportedContents {
    source: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Luks {
    clevis: Option<Clevis>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Clevis {
    tpm2: Option<bool>,
    tang: Vec<TangServer>,
}

/// A Tang server, as ignition spells it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct TangServer {
    pub(crate) url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thumbprint: Option<String>,
}

/// Encryption of the disks of a cluster's hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Encryption {
    /// Disks are not encrypted.
    None,
    /// By a TPM 2.0.
    Tpm,
    /// By these servers.
    Tang(Vec<TangServer>),
    /// By neither: no host can join.
    Unknown,
}

impl ClusterIgnition {
    /// Parses the ignition of an agent's report; none before a download.
    pub(crate) fn of(report: &ApiVipConnectivityResponse) -> Option<Self> {
        parse(&report.ignition)
    }

    /// Encryption of the installation disk.
    /// Source: assisted-service, internal/host/hostutil/host_utils.go, GetDiskEncryptionForDay2.
    pub(crate) fn encryption(&self) -> Encryption {
        let device = self.storage.luks.first();
        let Some(clevis) = device.and_then(|device| device.clevis.as_ref()) else {
            return Encryption::None;
        };
        match clevis {
            Clevis {
                tpm2: Some(true), ..
            } => Encryption::Tpm,
            Clevis { tang, .. } if !tang.is_empty() => Encryption::Tang(tang.clone()),
            _ => Encryption::Unknown,
        }
    }

    /// Whether hosts find the cluster without DNS records of its user: it runs its own DNS, or is reached by address.
    /// Source: assisted-service, internal/host/validator.go, importedClusterHasManagedNetworking.
    pub(crate) fn has_managed_network(&self) -> bool {
        let mut files = self.storage.files.iter();
        files.any(|file| MANAGED.contains(&file.path.as_str())) || self.is_reached_by_address()
    }

    fn is_reached_by_address(&self) -> bool {
        let mut files = self.storage.files.iter();
        let file = files.find(|file| file.path == KUBECONFIG);
        let source = file.and_then(|file| file.contents.source.as_deref());
        source.and_then(server_of).is_some_and(|host| {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host.parse::<IpAddr>().is_ok()
        })
    }
}

/// Host of the only server of a kubeconfig in a data URL.
fn server_of(source: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Kubeconfig {
        clusters: Vec<Named>,
    }
    #[derive(Deserialize)]
    struct Named {
        cluster: Server,
    }
    #[derive(Deserialize)]
    struct Server {
        server: url::Url,
    }
    let bytes = data_url::decode(source).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let config: Kubeconfig = serde_yaml::from_str(&text).ok()?;
    let [named] = config.clusters.as_slice() else {
        return None;
    };
    named.cluster.server.host_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn ignition(storage: &Value) -> ClusterIgnition {
        let report = ApiVipConnectivityResponse {
            ignition: json!({ "ignition": { "version": "3.2.0" }, "storage": storage }).to_string(),
            ..ApiVipConnectivityResponse::default()
        };
        ClusterIgnition::of(&report).unwrap()
    }

    #[test]
    fn encryption_is_that_of_the_first_device() {
        let encryption =
            |clevis: Value| ignition(&json!({ "luks": [{ "clevis": clevis }] })).encryption();
        assert_eq!(ignition(&json!({})).encryption(), Encryption::None);
        assert_eq!(encryption(Value::Null), Encryption::None);
        assert_eq!(encryption(json!({ "tpm2": true })), Encryption::Tpm);
        assert_eq!(encryption(json!({})), Encryption::Unknown);
        let server = json!({ "url": "http://tang", "thumbprint": "x" });
        let Encryption::Tang(servers) = encryption(json!({ "tang": [server] })) else {
            panic!("not by Tang servers");
        };
        assert_eq!(serde_json::to_value(&servers).unwrap(), json!([server]));
        assert!(ClusterIgnition::of(&ApiVipConnectivityResponse::default()).is_none());
    }

    #[test]
    fn managed_networks_have_their_own_pods_or_an_address() {
        let file = |path: &str, text: &str| {
            let source = data_url::text(text);
            ignition(&json!({ "files": [{ "path": path, "contents": { "source": source } }] }))
        };
        let config =
            |server: &str| json!({ "clusters": [{ "cluster": { "server": server } }] }).to_string();
        assert!(file(MANAGED[0], "").has_managed_network());
        assert!(file(KUBECONFIG, &config("https://192.0.2.1:6443")).has_managed_network());
        assert!(file(KUBECONFIG, &config("https://[2001:db8::1]:6443")).has_managed_network());
        let name = "https://api-int.demo.example.com:6443";
        assert!(!file(KUBECONFIG, &config(name)).has_managed_network());
        assert!(!file(KUBECONFIG, "{").has_managed_network());
        assert!(!ignition(&json!({})).has_managed_network());
    }
}
