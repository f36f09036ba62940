//! Boot artifacts of a network boot: kernel, initrd, root file system.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use model::Error;
use serde::Deserialize;
use uuid::Uuid;

use super::app::{ImageApp, ImageRequest};
use super::credentials::{infra_env_id, of_request};
use super::error::{ErrorResponse, plain};
use super::images::default_architecture;
use super::recipe::ImageKind;
use super::response::{ImageRepresentation, identity, respond};
use crate::content::{ContentPieces, Piece};
use crate::image::BaseImage;
use crate::os_image::S390X;

pub(super) const RAW: &str = "application/x-raw-disk-image";
pub(super) const BINARY: &str = "application/octet-stream";

#[derive(Deserialize)]
pub(super) struct ArtifactQuery {
    version: Option<String>,
    arch: Option<String>,
    api_key: Option<String>,
    image_token: Option<String>,
}

/// A file out of the base image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BootArtifact {
    Kernel,
    Rootfs,
    InsFile,
}

impl BootArtifact {
    fn of(name: &str) -> Option<Self> {
        match name {
            "kernel" => Some(Self::Kernel),
            "rootfs" => Some(Self::Rootfs),
            "ins-file" => Some(Self::InsFile),
            _ => None,
        }
    }
}

/// Kernel and root file system, streamed out of the base image. Source: assisted-image-service, its error texts included.
pub(super) async fn boot_artifact(
    State(app): State<ImageApp>,
    Path(name): Path<String>,
    Query(query): Query<ArtifactQuery>,
    head: Parts,
) -> Result<Response, ErrorResponse> {
    let Some(artifact) = BootArtifact::of(&name) else {
        let id = format!("{name} (expected kernel, rootfs or ins-file)");
        return Err(Error::not_found("boot artifact", id).into());
    };
    let Some(version) = query.version else {
        let text = "Failed to parse query parameters: 'version' parameter required\n";
        return Ok(plain(StatusCode::BAD_REQUEST, text));
    };
    let architecture = query.arch.unwrap_or_else(default_architecture);
    if artifact == BootArtifact::InsFile && architecture != S390X {
        let text = format!("the ins-file is only of {S390X}, not of {architecture}");
        return Err(ErrorResponse::Path(text));
    }
    let image = app
        .catalog
        .image(&version, &architecture)
        .map_err(as_parameter)?;
    let (file_name, content_type, piece) = match artifact {
        BootArtifact::Kernel => ("vmlinuz", BINARY, image.kernel()),
        BootArtifact::Rootfs => ("rootfs.img", RAW, image.rootfs()),
        BootArtifact::InsFile => {
            let piece = image.ins_file();
            let missing = || Error::not_found("file of the OS image", "generic.ins");
            ("generic.ins", BINARY, piece.ok_or_else(missing)?)
        }
    };
    let file_name = file_name.to_owned();
    base_file(&app, &head, &image, piece, file_name, content_type).await
}

/// A file of a base image.
pub(super) async fn base_file(
    app: &ImageApp,
    head: &Parts,
    image: &BaseImage,
    piece: Piece,
    file_name: String,
    content_type: &'static str,
) -> Result<Response, ErrorResponse> {
    let permit = app.stream_permit(head).await?;
    let mut content = ContentPieces::new();
    content.push(piece);
    let image = ImageRepresentation {
        identity: identity(&content, image),
        content,
        file_name,
        content_type,
        modified: image.modified,
    };
    Ok(respond(head, image, permit))
}

/// The initrd with the archives of the ignition and of static networks appended.
pub(super) async fn pxe_initrd(
    State(app): State<ImageApp>,
    Path(id): Path<String>,
    Query(query): Query<ArtifactQuery>,
    head: Parts,
) -> Result<Response, ErrorResponse> {
    let id = infra_env_id(&id)?;
    let architecture = query.arch.clone().unwrap_or_else(default_architecture);
    let Some(request) = initrd_request(&app, id, architecture, query, &head)? else {
        return Ok(version_required());
    };
    let permit = app.stream_permit(&head).await?;
    let image = app.composed(&request, &head).await?;
    Ok(image.respond(&head, format!("{id}-initrd.img"), RAW, permit))
}

/// Address and length of that initrd, which the boot loader of s390x reads from a file of its own. Source:
/// assisted-image-service.
pub(super) async fn initrd_addrsize(
    State(app): State<ImageApp>,
    Path(id): Path<String>,
    Query(query): Query<ArtifactQuery>,
    head: Parts,
) -> Result<Response, ErrorResponse> {
    let id = infra_env_id(&id)?;
    let Some(request) = initrd_request(&app, id, S390X.to_owned(), query, &head)? else {
        return Ok(version_required());
    };
    let permit = app.stream_permit(&head).await?;
    let base = app.catalog.image(&request.version, S390X)?;
    let initrd = app.composed(&request, &head).await?;
    let addrsize = base.addrsize(initrd.content.length());
    let missing = || Error::not_found("file of the OS image", "images/initrd.addrsize");
    let bytes = Bytes::copy_from_slice(&addrsize.ok_or_else(missing)?);
    let mut content = ContentPieces::new();
    content.push(Piece::Memory(bytes));
    let identity = identity(&content, &base);
    let image = ImageRepresentation {
        content,
        file_name: format!("{id}-initrd.addrsize"),
        content_type: BINARY,
        modified: initrd.modified,
        identity,
    };
    Ok(respond(&head, image, permit))
}

/// The request for an initrd; none without a version.
fn initrd_request(
    app: &ImageApp,
    id: Uuid,
    architecture: String,
    query: ArtifactQuery,
    head: &Parts,
) -> Result<Option<ImageRequest>, Error> {
    let Some(version) = query.version else {
        return Ok(None);
    };
    app.catalog
        .entry(&version, &architecture)
        .map_err(as_parameter)?;
    Ok(Some(ImageRequest {
        id,
        version,
        architecture,
        kind: ImageKind::Initrd,
        credentials: of_request(query.api_key, query.image_token, &head.headers),
    }))
}

fn version_required() -> Response {
    let text = "'version' parameter required for initrd download\n";
    plain(StatusCode::BAD_REQUEST, text)
}

/// On these routes an unknown version is an invalid parameter (400). Source: assisted-image-service.
fn as_parameter(error: Error) -> Error {
    match error {
        Error::NotFound { .. } => Error::invalid("version", error.to_string()),
        other => other,
    }
}
