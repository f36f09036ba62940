//! Discovery images.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use model::Error;
use serde::Deserialize;
use uuid::Uuid;

use super::app::{ImageApp, ImageRequest, client_of};
use super::composed::ComposedImage;
use super::credentials::{infra_env_id, infra_env_of_token, of_request};
use super::error::{ErrorResponse, plain};
use super::recipe::ImageKind;
use crate::installer_api::RequestCredentials;
use crate::os_image::{FULL_ISO, MINIMAL_ISO};
use crate::stream_limit::StreamPermit;

/// Content type of images.
pub(super) const ISO: &str = "application/x-cd-image";

/// Path of the short routes.
#[derive(Deserialize)]
pub(super) struct ShortPath {
    /// Id or token.
    #[serde(rename = "image_id")]
    image: String,
    version: String,
    arch: String,
    filename: String,
    /// After the file name: `sha256`.
    of: Option<String>,
}

impl ShortPath {
    async fn answer(
        self,
        app: &ImageApp,
        head: &Parts,
        id: Uuid,
        credentials: RequestCredentials,
    ) -> Result<Response, ErrorResponse> {
        let named = named(&self.filename)?;
        let request = named.requested(id, self.version, self.arch, credentials)?;
        match self.of.as_deref() {
            None => image(app, head, request).await,
            Some("sha256") => checksum(app, head, request).await,
            Some(other) => {
                let reason = format!("unrecognized part {other} of an image; expected sha256");
                Err(ErrorResponse::Path(reason))
            }
        }
    }
}

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

/// A file name or type in a URL.
#[derive(Debug, Clone, Copy)]
enum NamedImage {
    Of(ImageKind),
    Disconnected,
}

impl NamedImage {
    fn of_file(name: &str) -> Option<Self> {
        match name {
            "full.iso" => Some(Self::Of(ImageKind::Full)),
            "minimal.iso" => Some(Self::Of(ImageKind::Minimal)),
            "disconnected.iso" => Some(Self::Disconnected),
            _ => None,
        }
    }

    fn of_type(name: &str) -> Option<Self> {
        match name {
            FULL_ISO => Some(Self::Of(ImageKind::Full)),
            MINIMAL_ISO => Some(Self::Of(ImageKind::Minimal)),
            "disconnected-iso" => Some(Self::Disconnected),
            _ => None,
        }
    }
}

impl NamedImage {
    /// The request for this image.
    fn requested(
        self,
        id: Uuid,
        version: String,
        architecture: String,
        credentials: RequestCredentials,
    ) -> Result<ImageRequest, Error> {
        match self {
            Self::Of(kind) => Ok(ImageRequest {
                id,
                version,
                architecture,
                kind,
                credentials,
            }),
            Self::Disconnected => {
                let id = format!("{version} {architecture}");
                Err(Error::not_found("disconnected image", id))
            }
        }
    }
}

/// Route of an image by the id of its infra-env, with optional credentials.
pub(super) async fn by_id(
    State(app): State<ImageApp>,
    Path(path): Path<ShortPath>,
    Query(query): Query<ImageQuery>,
    head: Parts,
) -> Result<Response, ErrorResponse> {
    let id = infra_env_id(&path.image)?;
    let credentials = of_request(query.api_key, query.image_token, &head.headers);
    path.answer(&app, &head, id, credentials).await
}

/// Route of an image by a token in the path, which is passed on as these credentials. Its query is not read.
pub(super) fn by_token(credentials: fn(String) -> RequestCredentials) -> MethodRouter<ImageApp> {
    get(
        move |State(app): State<ImageApp>, Path(path): Path<ShortPath>, head: Parts| async move {
            let id = infra_env_of_token(&path.image)?;
            let credentials = credentials(path.image.clone());
            path.answer(&app, &head, id, credentials).await
        },
    )
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
    let Some(named) = NamedImage::of_type(&kind) else {
        let text = format!("invalid value '{kind}' for parameter 'type'");
        return Ok(plain(StatusCode::BAD_REQUEST, text));
    };
    let architecture = query.arch.unwrap_or_else(default_architecture);
    let credentials = of_request(query.api_key, query.image_token, &head.headers);
    let request = named.requested(id, version, architecture, credentials)?;
    image(&app, &head, request).await
}

pub(super) fn default_architecture() -> String {
    "x86_64".to_owned()
}

fn named(name: &str) -> Result<NamedImage, ErrorResponse> {
    NamedImage::of_file(name).ok_or_else(|| {
        let reason = format!("unrecognized file name {name}; expected full.iso or minimal.iso");
        ErrorResponse::Path(reason)
    })
}

/// The SHA-256 of an image, in the format of sha256sum(1).
async fn checksum(
    app: &ImageApp,
    head: &Parts,
    request: ImageRequest,
) -> Result<Response, ErrorResponse> {
    let (image, permit) = composed(app, head, &request).await?;
    // Not while it is computed: checksums must not take the places of images.
    drop(permit);
    let checksum = app.checksum(&image, client_of(head)?).await?;
    let text = format!("{checksum}  {}-discovery.iso\n", request.id);
    Ok(plain(StatusCode::OK, text))
}

/// A known image, and the permit to stream it.
async fn composed(
    app: &ImageApp,
    head: &Parts,
    request: &ImageRequest,
) -> Result<(Arc<ComposedImage>, StreamPermit), ErrorResponse> {
    let (version, architecture) = (&request.version, &request.architecture);
    app.look_for(version, architecture).await;
    app.catalog.entry(version, architecture)?;
    let permit = app.stream_permit(head).await?;
    let image = app.composed(request, head).await?;
    Ok((image, permit))
}

async fn image(
    app: &ImageApp,
    head: &Parts,
    request: ImageRequest,
) -> Result<Response, ErrorResponse> {
    let (image, permit) = composed(app, head, &request).await?;
    let file_name = format!("{}-discovery.iso", request.id);
    Ok(image.respond(head, file_name, ISO, permit))
}
