//! Boot artifacts of a network boot: kernel, initrd, root file system.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use model::Error;
use serde::Deserialize;
use uuid::Uuid;

use super::credentials::{infra_env_id, of_request};
use super::error::{ErrorResponse, plain};
use super::images::default_architecture;
use super::response::{Representation, respond};
use crate::ImageApp;
use crate::catalog::CatalogImage;
use crate::content::ImageContent;
use crate::image::{NetworkArchives, needs_nmstatectl, pxe_initrd as compose};
use crate::installer_api::RequestCredentials;

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
    let what = Representation {
        content,
        file_name: file_name.to_owned(),
        content_type,
        modified: image.modified,
        base_modified: image.modified,
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
    let entry = app.catalog.entry(&version, &architecture);
    let entry = entry.map_err(as_parameter)?;
    let image = app.catalog.image(&version, &architecture)?;
    let credentials = of_request(query.api_key, query.image_token, &head.headers);
    let permit = app.streams.acquire().await?;
    let (ignition, network) = tokio::try_join!(
        app.api.ignition(id, None, &credentials),
        network_archives(&app, entry, id, &credentials),
    )?;
    let base_modified = image.modified;
    let modified = ignition.modified.unwrap_or(base_modified);
    let content = app
        .customising
        .run(move || compose(&image, &ignition.json, network))
        .await?;
    let what = Representation {
        content,
        file_name: format!("{id}-initrd.img"),
        content_type: RAW,
        modified,
        base_modified,
    };
    Ok(respond(&head, what, permit))
}

/// The archives that early boot needs for a static network: none, if the infra-env has neither that nor a proxy.
pub(super) async fn network_archives(
    app: &ImageApp,
    entry: &CatalogImage,
    id: Uuid,
    credentials: &RequestCredentials,
) -> Result<NetworkArchives, Error> {
    let ramdisk = app.api.minimal_initrd(id, credentials).await?;
    let nmstatectl = match &ramdisk {
        Some(ramdisk) if needs_nmstatectl(ramdisk).map_err(unreadable)? => {
            Some(entry.nmstatectl(&app.data_dir).await?)
        }
        _ => None,
    };
    Ok(NetworkArchives {
        ramdisk,
        nmstatectl,
    })
}

fn unreadable(error: ignition::Error) -> Error {
    Error::internal("reading the ramdisk of the installer API", error)
}

/// On these routes an unknown version is an invalid parameter (400). Source: assisted-image-service.
fn as_parameter(error: Error) -> Error {
    match error {
        Error::NotFound { .. } => Error::invalid("version", error.to_string()),
        other => other,
    }
}
