//! Boot artifacts of a network boot: kernel, initrd, root file system.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use model::Error;
use serde::Deserialize;

use super::composed::{ImageKind, ImageRequest};
use super::credentials::{infra_env_id, of_request};
use super::error::{ErrorResponse, plain};
use super::images::default_architecture;
use super::response::{Representation, identity, respond};
use crate::ImageApp;
use crate::content::ImageContent;

const RAW: &str = "application/x-raw-disk-image";
const BINARY: &str = "application/octet-stream";

#[derive(Deserialize)]
pub(super) struct ArtifactQuery {
    version: Option<String>,
    arch: Option<String>,
    api_key: Option<String>,
    image_token: Option<String>,
}

/// Kernel and root file system, streamed out of the base image. Source: assisted-image-service, its error texts included.
pub(super) async fn boot_artifact(
    State(app): State<ImageApp>,
    Path(name): Path<String>,
    Query(query): Query<ArtifactQuery>,
    head: Parts,
) -> Result<Response, ErrorResponse> {
    let (file_name, content_type) = match name.as_str() {
        "kernel" => ("vmlinuz", BINARY),
        "rootfs" => ("rootfs.img", RAW),
        _ => {
            let id = format!("{name} (expected kernel or rootfs)");
            return Err(Error::not_found("boot artifact", id).into());
        }
    };
    let Some(version) = query.version else {
        let text = "Failed to parse query parameters: 'version' parameter required\n";
        return Ok(plain(StatusCode::BAD_REQUEST, text));
    };
    let architecture = query.arch.unwrap_or_else(default_architecture);
    let image = app
        .catalog
        .image(&version, &architecture)
        .map_err(as_parameter)?;
    let permit = app.streams.acquire().await?;
    let mut content = ImageContent::new();
    content.push(if name == "kernel" {
        image.kernel()
    } else {
        image.rootfs()
    });
    let identity = identity(&content, image.modified);
    let what = Representation {
        content,
        file_name: file_name.to_owned(),
        content_type,
        modified: image.modified,
        identity,
    };
    Ok(respond(&head, what, permit))
}

/// The initrd with the archives of the ignition and of static networks appended.
pub(super) async fn pxe_initrd(
    State(app): State<ImageApp>,
    Path(id): Path<String>,
    Query(query): Query<ArtifactQuery>,
    head: Parts,
) -> Result<Response, ErrorResponse> {
    let id = infra_env_id(&id)?;
    let Some(version) = query.version else {
        let text = "'version' parameter required for initrd download\n";
        return Ok(plain(StatusCode::BAD_REQUEST, text));
    };
    let architecture = query.arch.unwrap_or_else(default_architecture);
    app.catalog
        .entry(&version, &architecture)
        .map_err(as_parameter)?;
    let permit = app.streams.acquire().await?;
    let request = ImageRequest {
        id,
        version,
        architecture,
        kind: ImageKind::Initrd,
        credentials: of_request(query.api_key, query.image_token, &head.headers),
    };
    let image = app.composed(&request, &head).await?;
    let what = Representation {
        content: image.content.clone(),
        file_name: format!("{id}-initrd.img"),
        content_type: RAW,
        modified: image.modified,
        identity: image.identity.clone(),
    };
    Ok(respond(&head, what, permit))
}

/// On these routes an unknown version is an invalid parameter (400). Source: assisted-image-service.
fn as_parameter(error: Error) -> Error {
    match error {
        Error::NotFound { .. } => Error::invalid("version", error.to_string()),
        other => other,
    }
}
