//! Handlers of infra-envs.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use model::ids::ClusterId;
use model::infra_env::{ImageType, InfraEnv, InfraEnvCreateParams, PresignedUrl};

use super::audit::Created;
use super::download::FileResponse;
use super::error::ApiError;
use super::extract::{InInfraEnv, JsonBody};
use super::paged_list::paged_list;
use super::query::Query;
use crate::app::access::AccessControl;
use crate::app::discovery_files::DiscoveryFiles;
use crate::app::infra_envs::InfraEnvs;
use crate::app::ipxe::{IpxeScript, IpxeScripts};
use crate::app::redacted_files;
use crate::app::token_validity::InfraEnvTokens;
use crate::auth::{Caller, OwnedResource};
use crate::settings::Settings;

const IGNITION: &str = "discovery.ign";
const IPXE: &str = "ipxe-script";
const NETWORK: &str = "static-network-config";
const ALWAYS: &str = "discovery-image-always";
const BOOT_ORDER: &str = "boot-order-control";

pub(crate) async fn register(
    State(infra_envs): State<Arc<InfraEnvs>>,
    State(access): State<Arc<AccessControl>>,
    caller: Caller,
    body: JsonBody,
) -> Result<(StatusCode, Extension<Created>, Json<InfraEnv>), ApiError> {
    let params: InfraEnvCreateParams = body.parse("infraenv-create-params")?;
    if let Some(id) = params.cluster_id {
        access.check_named_cluster(&caller, id).await?;
    }
    let infra_env = infra_envs.register(&caller, params).await?;
    let created = Created(OwnedResource::InfraEnv(infra_env.id));
    Ok((StatusCode::CREATED, Extension(created), Json(infra_env)))
}

pub(crate) async fn list(
    State(infra_envs): State<Arc<InfraEnvs>>,
    caller: Caller,
    query: Query,
) -> Result<Response, ApiError> {
    let cluster = query.id("cluster_id")?.map(ClusterId);
    let ids = infra_envs.ids(cluster).await?;
    let asked = Arc::new((infra_envs, caller, query));
    paged_list(ids, move |ids| {
        let asked = asked.clone();
        async move {
            let (infra_envs, caller, query) = &*asked;
            infra_envs.page(caller, query.text("owner"), &ids).await
        }
    })
    .await
}

pub(crate) async fn get(
    State(infra_envs): State<Arc<InfraEnvs>>,
    caller: Caller,
    InInfraEnv(id): InInfraEnv,
) -> Result<Json<InfraEnv>, ApiError> {
    Ok(Json(infra_envs.get_for(&caller, id).await?))
}

pub(crate) async fn update(
    State(infra_envs): State<Arc<InfraEnvs>>,
    caller: Caller,
    InInfraEnv(id): InInfraEnv,
    body: JsonBody,
) -> Result<(StatusCode, Json<InfraEnv>), ApiError> {
    let params = body.parse("infra-env-update-params")?;
    Ok((
        StatusCode::CREATED,
        Json(infra_envs.update(&caller, id, &params).await?),
    ))
}

pub(crate) async fn deregister(
    State(infra_envs): State<Arc<InfraEnvs>>,
    InInfraEnv(id): InInfraEnv,
) -> Result<StatusCode, ApiError> {
    infra_envs.deregister(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn download_url(
    State(infra_envs): State<Arc<InfraEnvs>>,
    caller: Caller,
    InInfraEnv(id): InInfraEnv,
) -> Result<Json<PresignedUrl>, ApiError> {
    let infra_env = infra_envs.get_for(&caller, id).await?;
    Ok(Json(PresignedUrl {
        url: infra_env.download_url,
        expires_at: infra_env.expires_at,
    }))
}

pub(crate) async fn file_url(
    State(infra_envs): State<Arc<InfraEnvs>>,
    State(tokens): State<Arc<InfraEnvTokens>>,
    State(settings): State<Arc<Settings>>,
    InInfraEnv(id): InInfraEnv,
    query: Query,
) -> Result<Json<PresignedUrl>, ApiError> {
    let file = query.required_one_of("file_name", &[IGNITION, IPXE])?;
    let infra_env = infra_envs.get(id).await?;
    let mut url = format!(
        "{}{}/downloads/files?file_name={file}",
        settings.base_url(),
        rules::urls::infra_env(id)
    );
    if let Some(kind) = query.optional_one_of("ipxe_script_type", &[ALWAYS, BOOT_ORDER])? {
        if file != IPXE {
            return Err(ApiError::parameter(
                "ipxe_script_type",
                "query",
                "requires file_name ipxe-script",
            ));
        }
        url = format!("{url}&ipxe_script_type={kind}");
    }
    Ok(Json(tokens.sign_url(&infra_env, url).await?))
}

pub(crate) async fn download_file(
    State(infra_envs): State<Arc<InfraEnvs>>,
    State(discovery): State<Arc<DiscoveryFiles>>,
    State(ipxe): State<Arc<IpxeScripts>>,
    caller: Caller,
    InInfraEnv(id): InInfraEnv,
    query: Query,
) -> Result<Response, ApiError> {
    let file = query.required_one_of("file_name", &[IGNITION, IPXE, NETWORK])?;
    let script = query.optional_one_of("ipxe_script_type", &[ALWAYS, BOOT_ORDER])?;
    let image_type = query.one_of::<ImageType>("discovery_iso_type")?;
    let mac = query.mac("mac")?;
    let infra_env = infra_envs.get(id).await?;
    let has_secrets = redacted_files::sees_secrets(&caller, &infra_env.user_name);
    let download = match file {
        IGNITION => {
            let ignition = discovery.ignition(id, image_type).await?;
            if has_secrets {
                FileResponse::bytes(IGNITION, ignition)
            } else {
                let (name, ignition) = redacted_files::redacted(IGNITION, &ignition)?;
                FileResponse::bytes(name, ignition)
            }
        }
        IPXE => {
            let script = IpxeScript {
                by_boot_order: script == Some(BOOT_ORDER),
                mac: mac.as_deref(),
                is_signed: has_secrets,
            };
            FileResponse::bytes(
                format!("{id}-{IPXE}"),
                ipxe.script(&infra_env, script).await?.into_bytes(),
            )
        }
        _ => {
            let archive = discovery.static_networks(&infra_env)?;
            let name = if archive.is_empty() {
                String::new()
            } else {
                format!("{id}-{NETWORK}.tar")
            };
            FileResponse::bytes(name, archive)
        }
    };
    let mut response = download.into_response();
    let changed = infra_env
        .updated_at
        .0
        .map(|time| time.format("%a, %d %b %Y %H:%M:%S GMT").to_string());
    if let Some(Ok(value)) = changed.map(|text| HeaderValue::from_str(&text)) {
        response.headers_mut().insert(header::LAST_MODIFIED, value);
    }
    Ok(response)
}

/// The ramdisk of a network boot; 204 without content.
pub(crate) async fn minimal_initrd(
    State(discovery): State<Arc<DiscoveryFiles>>,
    State(infra_envs): State<Arc<InfraEnvs>>,
    InInfraEnv(id): InInfraEnv,
) -> Result<Response, ApiError> {
    let archive = discovery.minimal_initrd(&infra_envs.get(id).await?)?;
    if archive.is_empty() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(FileResponse::bytes("minimal-initrd", archive).into_response())
}

pub(crate) async fn regenerate_signing_key(
    State(tokens): State<Arc<InfraEnvTokens>>,
    InInfraEnv(id): InInfraEnv,
) -> Result<StatusCode, ApiError> {
    tokens.regenerate_signing_key(id).await?;
    Ok(StatusCode::NO_CONTENT)
}
