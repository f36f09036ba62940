//! Discovery images.

use std::time::SystemTime;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use model::Error;
use serde::Deserialize;
use uuid::Uuid;

use super::boot_artifacts::network_archives;
use super::credentials::{infra_env_id, infra_env_of_token, of_request};
use super::error::{ErrorResponse, plain};
use super::response::{Representation, respond};
use crate::ImageApp;
use crate::content::ImageContent;
use crate::image::{full_iso, minimal_iso};
use crate::installer_api::RequestCredentials;
use crate::settings::{FULL_ISO, S390X};

const MINIMAL_ISO: &str = "minimal-iso";

/// Path of the three short routes: id or token, version, architecture, file name.
type ShortPath = Path<(String, String, String, String)>;

/// Query of the old route and credentials of all.
#[derive(Deserialize)]
pub(super) struct ImageQuery {
    version: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    arch: Option<String>,
    api_key: Option<String>,
    image_token: Option<String>,
}

/// A parsed image request.
struct ImageRequest {
    id: Uuid,
    version: String,
    architecture: String,
    kind: ImageKind,
    credentials: RequestCredentials,
}

#[derive(Clone, Copy)]
enum ImageKind {
    Full,
    Minimal,
    Disconnected,
}

impl ImageKind {
    fn of_file(name: &str) -> Option<Self> {
        match name {
            "full.iso" => Some(Self::Full),
            "minimal.iso" => Some(Self::Minimal),
            "disconnected.iso" => Some(Self::Disconnected),
            _ => None,
        }
    }

    fn of_type(name: &str) -> Option<Self> {
        match name {
            FULL_ISO => Some(Self::Full),
            MINIMAL_ISO => Some(Self::Minimal),
            "disconnected-iso" => Some(Self::Disconnected),
            _ => None,
        }
    }
}

pub(super) async fn by_id(
    State(app): State<ImageApp>,
    Path((id, version, architecture, file)): ShortPath,
    Query(query): Query<ImageQuery>,
    head: Parts,
) -> Result<Response, ErrorResponse> {
    let id = infra_env_id(&id)?;
    let credentials = of_request(query.api_key, query.image_token, &head.headers);
    let kind = kind_of_file(&file)?;
    let request = ImageRequest {
        id,
        version,
        architecture,
        kind,
        credentials,
    };
    image(&app, &head, request).await
}

pub(super) async fn by_api_key(
    State(app): State<ImageApp>,
    Path((key, version, architecture, file)): ShortPath,
    head: Parts,
) -> Result<Response, ErrorResponse> {
    let id = infra_env_of_token(&key)?;
    let kind = kind_of_file(&file)?;
    let credentials = RequestCredentials::ApiKey(key);
    let request = ImageRequest {
        id,
        version,
        architecture,
        kind,
        credentials,
    };
    image(&app, &head, request).await
}

pub(super) async fn by_token(
    State(app): State<ImageApp>,
    Path((token, version, architecture, file)): ShortPath,
    head: Parts,
) -> Result<Response, ErrorResponse> {
    let id = infra_env_of_token(&token)?;
    let kind = kind_of_file(&file)?;
    let credentials = RequestCredentials::ImageToken(token);
    let request = ImageRequest {
        id,
        version,
        architecture,
        kind,
        credentials,
    };
    image(&app, &head, request).await
}

/// The old route, with everything but the id in the query. Source: assisted-image-service, its error texts included.
pub(super) async fn by_query(
    State(app): State<ImageApp>,
    Path(id): Path<String>,
    Query(query): Query<ImageQuery>,
    head: Parts,
) -> Result<Response, ErrorResponse> {
    let id = infra_env_id(&id)?;
    let required = |name: &str| {
        plain(
            StatusCode::BAD_REQUEST,
            format!("'{name}' parameter required"),
        )
    };
    let Some(version) = query.version else {
        return Ok(required("version"));
    };
    let Some(kind) = query.kind else {
        return Ok(required("type"));
    };
    let Some(kind) = ImageKind::of_type(&kind) else {
        let text = format!("invalid value '{kind}' for parameter 'type'");
        return Ok(plain(StatusCode::BAD_REQUEST, text));
    };
    let request = ImageRequest {
        id,
        version,
        architecture: query.arch.unwrap_or_else(default_architecture),
        kind,
        credentials: of_request(query.api_key, query.image_token, &head.headers),
    };
    image(&app, &head, request).await
}

pub(super) fn default_architecture() -> String {
    "x86_64".to_owned()
}

fn kind_of_file(name: &str) -> Result<ImageKind, ErrorResponse> {
    ImageKind::of_file(name).ok_or_else(|| {
        let reason = format!("unrecognized file name {name}; expected full.iso or minimal.iso");
        ErrorResponse::Path(reason)
    })
}

async fn image(
    app: &ImageApp,
    head: &Parts,
    request: ImageRequest,
) -> Result<Response, ErrorResponse> {
    match request.kind {
        ImageKind::Full => full(app, head, request).await,
        ImageKind::Minimal => minimal(app, head, request).await,
        ImageKind::Disconnected => Err(Error::not_found(
            "disconnected image",
            format!("{} {}", request.version, request.architecture),
        )
        .into()),
    }
}

async fn full(
    app: &ImageApp,
    head: &Parts,
    request: ImageRequest,
) -> Result<Response, ErrorResponse> {
    let image = app.catalog.image(&request.version, &request.architecture)?;
    let permit = app.streams.acquire().await?;
    let (ignition, kargs) = tokio::try_join!(
        app.api
            .ignition(request.id, Some(FULL_ISO), &request.credentials),
        app.api.kernel_arguments(request.id, &request.credentials),
    )?;
    let base = image.modified;
    let (id, json) = (request.id, ignition.json);
    let compose = move || full_iso(&image, &json, &kargs);
    let content = app.customising.run(compose).await?;
    let what = discovery_image(id, content, base, ignition.modified);
    Ok(respond(head, what, permit))
}

/// An image without the root file system, which early boot downloads from this service. Source: assisted-image-service.
async fn minimal(
    app: &ImageApp,
    head: &Parts,
    request: ImageRequest,
) -> Result<Response, ErrorResponse> {
    let entry = app.catalog.entry(&request.version, &request.architecture)?;
    if entry.architecture == S390X {
        let reason = "there are no minimal images of s390x; use full.iso, or a network boot";
        return Err(Error::invalid("architecture", reason).into());
    }
    let image = app.catalog.image(&request.version, &request.architecture)?;
    let base_url = app.base_url.as_deref().ok_or_else(|| {
        Error::conflict(
            "hosts that boot a minimal image download their root file system from IMAGE_SERVICE_BASE_URL, \
             which is not set; set it, or use full.iso",
        )
    })?;
    let rootfs_url = format!(
        "{base_url}/boot-artifacts/rootfs?arch={}&version={}",
        entry.architecture, entry.version
    );
    let permit = app.streams.acquire().await?;
    let (ignition, kargs, network) = tokio::try_join!(
        app.api
            .ignition(request.id, Some(MINIMAL_ISO), &request.credentials),
        app.api.kernel_arguments(request.id, &request.credentials),
        network_archives(app, entry, request.id, &request.credentials),
    )?;
    let base = image.modified;
    let (id, json) = (request.id, ignition.json);
    let compose = move || minimal_iso(&image, &json, network, &kargs, &rootfs_url);
    let content = app.customising.run(compose).await?;
    let what = discovery_image(id, content, base, ignition.modified);
    Ok(respond(head, what, permit))
}

fn discovery_image(
    id: Uuid,
    content: ImageContent,
    base_modified: SystemTime,
    modified: Option<SystemTime>,
) -> Representation {
    Representation {
        content,
        file_name: format!("{id}-discovery.iso"),
        content_type: "application/x-cd-image",
        modified: modified.unwrap_or(base_modified),
        base_modified,
    }
}
