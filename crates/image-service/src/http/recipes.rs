//! Images by their recipes: the same bytes at the same URL, also when the infra-env changes.
//!
//! The digest covers secrets, so that it cannot be guessed: the URL is a permission to read, for some hours after the last
//! request with credentials.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use model::Error;
use model::ipxe::boot_script;

use super::app::ImageApp;
use super::boot_artifacts::{BINARY, RAW, base_file};
use super::composed::ComposedImage;
use super::error::ErrorResponse;
use super::images::ISO;
use super::recipe::{ImageKind, RecipeDigest};

/// `GET /recipes/{sha256}`: the recipe.
pub(super) async fn recipe(
    State(app): State<ImageApp>,
    Path(digest): Path<String>,
) -> Result<Response, ErrorResponse> {
    let image = image(&app, &digest)?;
    let json = HeaderValue::from_static("application/json");
    let tag = HeaderValue::from_str(&format!("\"{}\"", image.name()));
    let tag = tag.map_err(|error| Error::internal("writing the entity tag", error))?;
    let headers = [(header::CONTENT_TYPE, json), (header::ETAG, tag)];
    Ok((headers, image.recipe.clone()).into_response())
}

/// `GET /recipes/{sha256}/{file}`: the image, for CD, USB and HTTP boot; or the files of a network boot.
pub(super) async fn file(
    State(app): State<ImageApp>,
    Path((digest, name)): Path<(String, String)>,
    head: Parts,
) -> Result<Response, ErrorResponse> {
    let image = image(&app, &digest)?;
    let is_iso = image.kind != ImageKind::Initrd;
    let base = Arc::clone(&image.base);
    match (name.as_str(), is_iso) {
        ("discovery.iso", true) => {
            let permit = app.stream_permit(&head).await?;
            Ok(image.respond(&head, name, ISO, permit))
        }
        ("initrd.img", false) => {
            let permit = app.stream_permit(&head).await?;
            Ok(image.respond(&head, name, RAW, permit))
        }
        ("boot.ipxe", false) => {
            let folder = format!("{}/recipes/{}", app.public_url()?, image.name());
            let file = |name: &str| format!("{folder}/{name}");
            let arguments = image.kernel_arguments.iter().map(String::as_str);
            let (kernel, rootfs, initrd) = (file("kernel"), file("rootfs.img"), file("initrd.img"));
            Ok(boot_script(&kernel, &rootfs, &initrd, arguments).into_response())
        }
        ("kernel", _) => base_file(&app, &head, &base, base.kernel(), name, BINARY).await,
        ("rootfs.img", _) => base_file(&app, &head, &base, base.rootfs(), name, RAW).await,
        _ => {
            let files = if is_iso {
                "discovery.iso, kernel, rootfs.img"
            } else {
                "boot.ipxe, initrd.img, kernel, rootfs.img"
            };
            Err(Error::not_found("file of the recipe", format!("{name} (it has {files})")).into())
        }
    }
}

fn image(app: &ImageApp, digest: &str) -> Result<Arc<ComposedImage>, Error> {
    let mut bytes = RecipeDigest::default();
    let is_digest = hex::decode_to_slice(digest, &mut bytes).is_ok();
    let image = app.composed.of_recipe(bytes).filter(|_| is_digest);
    image.ok_or_else(|| {
        let id = format!("{digest} (recipes last for some hours; request the image of the infra-env again, whose ETag it is)");
        Error::not_found("recipe", id)
    })
}
