//! The connection, and reading of records.

use std::path::Path;
use std::time::Duration;

use kube::api::{Api, ListParams};
use kube::config::KubeConfigOptions;
use kube::core::DynamicObject;
use kube::{Client, Config};
use model::Error;
use model::error::chain;

use super::kubeconfig::{check_context, invalid, read_kubeconfig};
use super::resources::ResourceKind;

/// Records of one kind that are read at most: a cluster has at most some thousand nodes.
const MAX_RECORDS: usize = 20_000;
/// Records of a page. A node with hundreds of images has 100 kB.
const PAGE: u32 = 25;
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
pub(super) const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Role of the cluster in errors.
const CLUSTER: &str = "the cluster's API";

/// The way to a cluster.
#[derive(Debug, Clone, Default)]
pub struct ClusterAddress<'a> {
    /// kubeconfig; none: `KUBECONFIG`, or `~/.kube/config`.
    pub kubeconfig: Option<&'a Path>,
    /// None: the current context.
    pub context: Option<&'a str>,
}

/// A cluster, by its Kubernetes API. Clones share the connection.
#[derive(Clone)]
pub struct KubernetesCluster {
    client: Client,
    /// Of the API, as the kubeconfig has it.
    url: String,
}

impl std::fmt::Debug for KubernetesCluster {
    /// Without credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubernetesCluster")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl KubernetesCluster {
    /// Prepares a connection; nothing is sent.
    ///
    /// Errors: Invalid – the kubeconfig cannot be read, or lacks the context or its parts.
    pub async fn new(address: ClusterAddress<'_>) -> Result<Self, Error> {
        let file = address.kubeconfig;
        let kubeconfig = read_kubeconfig(file)?;
        check_context(&kubeconfig, address.context).map_err(|reason| invalid(file, reason))?;
        let options = KubeConfigOptions {
            context: address.context.map(str::to_owned),
            ..KubeConfigOptions::default()
        };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let mut config = config.map_err(|error| invalid(file, chain(&error)))?;
        if config.root_cert.as_ref().is_some_and(Vec::is_empty) {
            let reason = "the certificate-authority of its cluster has no certificate: expected PEM, which begins with \
                          -----BEGIN CERTIFICATE-----";
            return Err(invalid(file, reason.to_owned()));
        }
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.read_timeout = Some(READ_TIMEOUT);
        config.write_timeout = Some(READ_TIMEOUT);
        let url = config.cluster_url.to_string();
        let client = Client::try_from(config).map_err(|error| invalid(file, unusable(&error)))?;
        Ok(Self::by(client, url))
    }

    /// A cluster by its client.
    pub(super) fn by(client: Client, url: String) -> Self {
        Self { client, url }
    }

    /// Address of the API.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A view of all records of a kind, which are held page by page; none where the cluster does not have the kind.
    ///
    /// Errors: Unavailable; Forbidden – the user of the kubeconfig may not list them; Conflict – there are too many.
    pub async fn list<T>(
        &self,
        kind: &ResourceKind,
        view: impl Fn(&DynamicObject) -> T,
    ) -> Result<Option<Vec<T>>, Error> {
        let api = self.api(kind);
        let mut records = Vec::new();
        let mut next: Option<String> = None;
        loop {
            let mut params = ListParams::default().limit(PAGE);
            params.continue_token = next;
            let page = match api.list(&params).await {
                Ok(page) => page,
                Err(error) if is_missing(&error) => return Ok(None),
                Err(error) => return Err(refused(kind, error)),
            };
            records.extend(page.items.iter().map(&view));
            if records.len() > MAX_RECORDS {
                let reason = format!(
                    "the cluster has more than {MAX_RECORDS} records of kind {}",
                    kind.kind
                );
                return Err(Error::conflict(reason));
            }
            next = page.metadata.continue_.filter(|token| !token.is_empty());
            if next.is_none() {
                return Ok(Some(records));
            }
        }
    }

    /// Names of all records of a kind, without their contents.
    ///
    /// Errors: as [`Self::list`].
    pub async fn names(&self, kind: &ResourceKind) -> Result<Vec<String>, Error> {
        let listed = self.api(kind).list_metadata(&ListParams::default()).await;
        let listed = listed.map_err(|error| refused(kind, error))?;
        let names = listed.items.into_iter();
        Ok(names.filter_map(|item| item.metadata.name).collect())
    }

    /// A record by its name; none where it, or the kind, does not exist.
    ///
    /// Errors: as [`Self::list`].
    pub async fn find(
        &self,
        kind: &ResourceKind,
        name: &str,
    ) -> Result<Option<DynamicObject>, Error> {
        match self.api(kind).get(name).await {
            Ok(record) => Ok(Some(record)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(refused(kind, error)),
        }
    }

    pub(super) fn api(&self, kind: &ResourceKind) -> Api<DynamicObject> {
        let resource = kind.api_resource();
        match kind.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }
}

/// The reason why a kubeconfig makes no client, without the key that an error of its PEM repeats.
fn unusable(error: &kube::Error) -> String {
    match error {
        kube::Error::RustlsTls(kube::client::RustlsTlsError::InvalidIdentityPem(_)) => {
            "the client certificate or key of its user is broken PEM: copy it again".to_owned()
        }
        error => chain(error),
    }
}

/// Whether another one was faster, or the name is taken.
pub(super) fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

pub(super) fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

pub(super) fn refused(kind: &ResourceKind, error: kube::Error) -> Error {
    match error {
        kube::Error::Api(status) if status.code == 401 => Error::Unauthenticated {
            reason: format!(
                "{CLUSTER} refuses the credentials of the kubeconfig: {}",
                status.message
            ),
        },
        kube::Error::Api(status) if status.code == 403 => Error::Forbidden {
            reason: format!("{}: {}", kind.plural, status.message),
        },
        // A busy server asks for patience with 429.
        kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 429 => {
            Error::conflict(format!("{}: {}", kind.plural, status.message))
        }
        error => Error::unavailable(CLUSTER, error),
    }
}
