//! The connection, and reading of records.

use std::path::Path;
use std::time::Duration;

use kube::api::{Api, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::DynamicObject;
use kube::{Client, Config};
use model::Error;
use model::error::chain;

use super::resources::ResourceKind;

/// Records of one kind that are read at most: a cluster has at most some thousand nodes.
const MAX_RECORDS: usize = 20_000;
/// Records of a page.
const PAGE: u32 = 500;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest kubeconfig. Units: bytes.
const MAX_KUBECONFIG: u64 = 4 << 20;

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
    /// Errors: Invalid – the kubeconfig cannot be read, or lacks the context.
    pub async fn new(address: ClusterAddress<'_>) -> Result<Self, Error> {
        let kubeconfig = read_kubeconfig(address.kubeconfig)?;
        Self::of_kubeconfig(kubeconfig, address.context).await
    }

    /// Prepares a connection by a kubeconfig that a server keeps; nothing is sent.
    ///
    /// Errors: Invalid – it is malformed, or starts programs or reads files of the server.
    pub async fn of_stored(kubeconfig: &str) -> Result<Self, Error> {
        let kubeconfig = Kubeconfig::from_yaml(kubeconfig).map_err(|error| invalid(&error))?;
        if let Some(member) = outside_member(&kubeconfig) {
            let reason = format!(
                "{member}: only certificates, keys and tokens in the kubeconfig itself are used here"
            );
            return Err(Error::invalid("kubeconfig", reason));
        }
        Self::of_kubeconfig(kubeconfig, None).await
    }

    async fn of_kubeconfig(kubeconfig: Kubeconfig, context: Option<&str>) -> Result<Self, Error> {
        let options = KubeConfigOptions {
            context: context.map(str::to_owned),
            ..KubeConfigOptions::default()
        };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let mut config = config.map_err(|error| invalid(&error))?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.read_timeout = Some(READ_TIMEOUT);
        config.write_timeout = Some(READ_TIMEOUT);
        let url = config.cluster_url.to_string();
        let client = Client::try_from(config).map_err(|error| invalid(&error))?;
        Ok(Self { client, url })
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
    pub(super) async fn names(&self, kind: &ResourceKind) -> Result<Vec<String>, Error> {
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

fn read_kubeconfig(path: Option<&Path>) -> Result<Kubeconfig, Error> {
    let Some(path) = path else {
        return Kubeconfig::read().map_err(|error| invalid(&error));
    };
    // A device or a whole disk image is not read into memory.
    let size = path
        .metadata()
        .map_err(|error| Error::invalid("kubeconfig", format!("{}: {error}", path.display())))?;
    let size = size.len();
    if size > MAX_KUBECONFIG {
        return Err(Error::TooLarge {
            what: "the kubeconfig",
            limit: MAX_KUBECONFIG,
        });
    }
    Kubeconfig::read_from(path).map_err(|error| invalid(&error))
}

/// The first member by which a kubeconfig starts a program or reads a file.
fn outside_member(kubeconfig: &Kubeconfig) -> Option<&'static str> {
    let users = kubeconfig.auth_infos.iter();
    let users = users.filter_map(|user| user.auth_info.as_ref());
    let of_users = users.flat_map(|user| {
        [
            user.exec.is_some().then_some("exec"),
            user.auth_provider.is_some().then_some("auth-provider"),
            user.token_file.is_some().then_some("tokenFile"),
            user.client_certificate
                .is_some()
                .then_some("client-certificate"),
            user.client_key.is_some().then_some("client-key"),
        ]
    });
    let clusters = kubeconfig.clusters.iter();
    let clusters = clusters.filter_map(|cluster| cluster.cluster.as_ref());
    let of_clusters = clusters.map(|cluster| {
        let authority = cluster.certificate_authority.as_ref();
        authority.map(|_| "certificate-authority")
    });
    of_users.chain(of_clusters).flatten().next()
}

fn invalid(error: &(dyn std::error::Error + 'static)) -> Error {
    Error::invalid("kubeconfig", chain(error))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(user: &str, cluster: &str) -> Kubeconfig {
        let text = format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: a\n  cluster:\n    server: https://api.lab.test:6443\n    {cluster}\n\
             users:\n- name: b\n  user:\n    {user}\ncontexts: []\n"
        );
        Kubeconfig::from_yaml(&text).unwrap()
    }

    #[test]
    fn a_stored_kubeconfig_reaches_neither_programs_nor_files() {
        let outside = |user, cluster| outside_member(&kubeconfig(user, cluster));
        let ca = "certificate-authority-data: AA==";
        assert_eq!(outside("client-key-data: AA==", ca), None);
        assert_eq!(outside("token: a", ca), None);
        for (user, member) in [
            ("exec: {command: sh, apiVersion: v1}", "exec"),
            ("auth-provider: {name: oidc, config: {}}", "auth-provider"),
            ("tokenFile: /etc/shadow", "tokenFile"),
            ("client-certificate: /a", "client-certificate"),
            ("client-key: /a", "client-key"),
        ] {
            assert_eq!(outside(user, ca), Some(member));
        }
        let file = "certificate-authority: /a";
        assert_eq!(outside("token: a", file), Some("certificate-authority"));
    }
}
