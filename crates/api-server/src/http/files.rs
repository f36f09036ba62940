//! Handlers of installation files, and of signed links to them.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRef, State};
use cluster_files::Object;
use model::Error;
use model::ids::ClusterId;
use model::infra_env::PresignedUrl;
use model::logs::LogsType;

use super::download::FileResponse;
use super::error::ApiError;
use super::extract::{InCluster, OfHost};
use super::logs::source_of;
use super::query::Query;
use crate::app::files::{ClusterFiles, KUBEADMIN_PASSWORD, KUBECONFIG, KUBECONFIG_NOINGRESS};
use crate::app::hosts::Hosts;
use crate::app::infra_envs::InfraEnvs;
use crate::app::links::Links;
use crate::app::logs::Logs;
use crate::app::manifests::{ManifestPath, Manifests};
use crate::app::redacted_files::{
    self, check_agent_download, check_installer_download, sees_secrets_of_cluster,
};
use crate::app::{App, ClusterStore};
use crate::auth::Caller;

const CLUSTER_FILES: &[&str] = &[
    "bootstrap.ign",
    "master.ign",
    "metadata.json",
    "worker.ign",
    "install-config.yaml",
    "custom_manifests.json",
    "custom_manifests.yaml",
    "arbiter.ign",
];
const CREDENTIALS: &[&str] = &[KUBEADMIN_PASSWORD, KUBECONFIG, KUBECONFIG_NOINGRESS];

/// Parameter of a link to a file without secrets.
const REDACTED: &str = "redacted";
const LOGS: &str = "logs";
const MANIFESTS: &str = "manifests";
/// Files with signed links.
const LINKED_FILES: &[&str] = &[
    "bootstrap.ign",
    "master.ign",
    "metadata.json",
    "worker.ign",
    "install-config.yaml",
    LOGS,
    MANIFESTS,
];

pub(crate) async fn cluster_file(
    State(files): State<Arc<ClusterFiles>>,
    State(clusters): State<Arc<ClusterStore>>,
    caller: Caller,
    InCluster(id): InCluster,
    query: Query,
) -> Result<FileResponse, ApiError> {
    let name = query.required_one_of("file_name", CLUSTER_FILES)?;
    check_agent_download(&clusters, &caller, id, name).await?;
    let object = files.get(id, name).await?;
    let has_secrets = match caller {
        // The link of a reader says so.
        Caller::Link => !query.flag(REDACTED),
        caller => sees_secrets_of_cluster(&clusters, &caller, id).await?,
    };
    shown(name, object, has_secrets).await
}

/// A stored file, without its secrets unless `has_secrets`.
async fn shown(name: &str, object: Object, has_secrets: bool) -> Result<FileResponse, ApiError> {
    if has_secrets || !redacted_files::has_secrets(name) {
        return Ok(FileResponse::object(name, object));
    }
    let (name, bytes) = redacted_files::redacted(name, &object.bytes().await?)?;
    Ok(FileResponse::bytes(name, bytes))
}

pub(crate) async fn cluster_credentials(
    State(files): State<Arc<ClusterFiles>>,
    State(clusters): State<Arc<ClusterStore>>,
    caller: Caller,
    InCluster(id): InCluster,
    query: Query,
) -> Result<FileResponse, ApiError> {
    let name = query.required_one_of("file_name", CREDENTIALS)?;
    check_agent_download(&clusters, &caller, id, name).await?;
    Ok(FileResponse::object(
        name,
        files.credentials(id, name).await?,
    ))
}

/// Files with signed links, and their links.
#[derive(Debug, Clone)]
pub(crate) struct LinkedFiles {
    clusters: Arc<ClusterStore>,
    files: Arc<ClusterFiles>,
    logs: Arc<Logs>,
    manifests: Arc<Manifests>,
    links: Arc<Links>,
}

impl FromRef<App> for LinkedFiles {
    fn from_ref(app: &App) -> Self {
        Self {
            clusters: app.part(),
            files: app.part(),
            logs: app.part(),
            manifests: app.part(),
            links: app.part(),
        }
    }
}

/// A signed link to a file that can be downloaded now.
pub(crate) async fn cluster_file_link(
    State(linked): State<LinkedFiles>,
    caller: Caller,
    InCluster(id): InCluster,
    query: Query,
) -> Result<Json<PresignedUrl>, ApiError> {
    let name = query.required_one_of("file_name", LINKED_FILES)?;
    // Refused also where they have no meaning.
    query.id("host_id")?;
    query.one_of::<LogsType>("logs_type")?;
    let link = match name {
        LOGS => linked.logs_link(id, &query).await?,
        MANIFESTS => linked.manifest_link(id, &query).await?,
        name => {
            linked.files.get(id, name).await?;
            let mut query = vec![("file_name", name)];
            if !sees_secrets_of_cluster(&linked.clusters, &caller, id).await? {
                query.push((REDACTED, "true"));
            }
            linked.links.sign(id, "/downloads/files", &query).await?
        }
    };
    Ok(Json(link))
}

impl LinkedFiles {
    async fn logs_link(&self, id: ClusterId, query: &Query) -> Result<PresignedUrl, ApiError> {
        let host = query.id("host_id")?.map(|host| host.to_string());
        let default = host.as_ref().map_or("all", |_| "host");
        let kind = query.text("logs_type").unwrap_or(default);
        match source_of(query, kind)? {
            Some(source) => drop(self.logs.get(id, source).await?),
            None => self.logs.check_cluster(id).await?,
        }
        let mut parameters = vec![("logs_type", kind)];
        parameters.extend(host.as_deref().map(|host| ("host_id", host)));
        Ok(self.links.sign(id, "/logs", &parameters).await?)
    }

    async fn manifest_link(&self, id: ClusterId, query: &Query) -> Result<PresignedUrl, ApiError> {
        let name = query.text("additional_name").unwrap_or_default();
        let parts = name.split_once('/');
        let parsed = parts.and_then(|(folder, file)| Some((folder.parse().ok()?, folder, file)));
        let Some((folder, folder_name, file_name)) = parsed else {
            let reason = "names the manifest with its folder, as in openshift/99-example.yaml";
            return Err(Error::invalid("additional_name", reason).into());
        };
        let place = ManifestPath {
            folder,
            file_name: file_name.to_owned(),
        };
        self.manifests.get(id, &place).await?;
        let query = [("folder", folder_name), ("file_name", file_name)];
        Ok(self.links.sign(id, "/manifests/files", &query).await?)
    }
}

/// A signed link to credentials that can be downloaded now.
pub(crate) async fn cluster_credentials_link(
    State(files): State<Arc<ClusterFiles>>,
    State(links): State<Arc<Links>>,
    InCluster(id): InCluster,
    query: Query,
) -> Result<Json<PresignedUrl>, ApiError> {
    let name = query.required_one_of("file_name", CREDENTIALS)?;
    files.credentials(id, name).await?;
    let query = [("file_name", name)];
    let link = links.sign(id, "/downloads/credentials", &query).await?;
    Ok(Json(link))
}

pub(crate) async fn host_ignition(
    State(files): State<Arc<ClusterFiles>>,
    State(hosts): State<Arc<Hosts>>,
    State(infra_envs): State<Arc<InfraEnvs>>,
    caller: Caller,
    OfHost(infra_env, id): OfHost,
) -> Result<FileResponse, ApiError> {
    let (name, object) = files.host_ignition(infra_env, id).await?;
    check_installer_download(&hosts, &caller, infra_env, id).await?;
    let owner = infra_envs.get(infra_env).await?.user_name;
    let has_secrets = redacted_files::sees_secrets(&caller, &owner);
    shown(&name, object, has_secrets).await
}
