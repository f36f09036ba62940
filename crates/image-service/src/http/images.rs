//! Discovery images.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use model::Error;
use serde::Deserialize;
use uuid::Uuid;

use super::answer::{Representation, answer};
use super::credentials::{infra_env_id, infra_env_of_token, of_request};
use super::error::{Answer, plain};
use crate::App;
use crate::image::full_iso;
use crate::settings::FULL_ISO;
use crate::upstream::Credentials;

/// Path of the three short routes: who or what, version, architecture, file name.
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

/// What is asked for.
struct Asked {
    id: Uuid,
    version: String,
    architecture: String,
    kind: Kind,
    credentials: Credentials,
}

#[derive(Clone, Copy)]
enum Kind {
    Full,
    Minimal,
    Disconnected,
}

impl Kind {
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
            "minimal-iso" => Some(Self::Minimal),
            "disconnected-iso" => Some(Self::Disconnected),
            _ => None,
        }
    }
}

pub(super) async fn by_id(
    State(app): State<App>,
    Path((id, version, architecture, file)): ShortPath,
    Query(query): Query<ImageQuery>,
    head: Parts,
) -> Result<Response, Answer> {
    let id = infra_env_id(&id)?;
    let credentials = of_request(query.api_key, query.image_token, &head.headers);
    let kind = kind_of_file(&file)?;
    let asked = Asked {
        id,
        version,
        architecture,
        kind,
        credentials,
    };
    image(&app, &head, asked).await
}

pub(super) async fn by_api_key(
    State(app): State<App>,
    Path((key, version, architecture, file)): ShortPath,
    head: Parts,
) -> Result<Response, Answer> {
    let id = infra_env_of_token(&key)?;
    let kind = kind_of_file(&file)?;
    let credentials = Credentials::ApiKey(key);
    let asked = Asked {
        id,
        version,
        architecture,
        kind,
        credentials,
    };
    image(&app, &head, asked).await
}

pub(super) async fn by_token(
    State(app): State<App>,
    Path((token, version, architecture, file)): ShortPath,
    head: Parts,
) -> Result<Response, Answer> {
    let id = infra_env_of_token(&token)?;
    let kind = kind_of_file(&file)?;
    let credentials = Credentials::ImageToken(token);
    let asked = Asked {
        id,
        version,
        architecture,
        kind,
        credentials,
    };
    image(&app, &head, asked).await
}

/// The older form, with everything but the id in the query.
pub(super) async fn by_query(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(query): Query<ImageQuery>,
    head: Parts,
) -> Result<Response, Answer> {
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
    let Some(kind) = Kind::of_type(&kind) else {
        let text = format!("invalid value '{kind}' for parameter 'type'");
        return Ok(plain(StatusCode::BAD_REQUEST, text));
    };
    let asked = Asked {
        id,
        version,
        architecture: query.arch.unwrap_or_else(default_architecture),
        kind,
        credentials: of_request(query.api_key, query.image_token, &head.headers),
    };
    image(&app, &head, asked).await
}

pub(super) fn default_architecture() -> String {
    "x86_64".to_owned()
}

fn kind_of_file(name: &str) -> Result<Kind, Error> {
    Kind::of_file(name)
        .ok_or_else(|| Error::not_found("image file", format!("{name} (expected full.iso)")))
}

async fn image(app: &App, head: &Parts, asked: Asked) -> Result<Response, Answer> {
    match asked.kind {
        Kind::Full => full(app, head, asked).await,
        Kind::Minimal => Ok(plain(
            StatusCode::NOT_IMPLEMENTED,
            "minimal images are not offered by this version; ask for full.iso, or boot from the network with the kernel, rootfs and pxe-initrd\n",
        )),
        Kind::Disconnected => Err(Error::not_found(
            "disconnected image",
            format!("{} {}", asked.version, asked.architecture),
        )
        .into()),
    }
}

async fn full(app: &App, head: &Parts, asked: Asked) -> Result<Response, Answer> {
    let image = app.catalog.image(&asked.version, &asked.architecture)?;
    let place = app.admission.enter().await?;
    let (ignition, kargs) = tokio::try_join!(
        app.api
            .ignition(asked.id, Some(FULL_ISO), &asked.credentials),
        app.api.kernel_arguments(asked.id, &asked.credentials),
    )?;
    let base_modified = image.modified;
    let modified = ignition.modified.unwrap_or(base_modified);
    let content = app
        .packing
        .run(move || full_iso(&image, &ignition.json, &kargs))
        .await?;
    let what = Representation {
        content,
        file_name: format!("{}-discovery.iso", asked.id),
        content_type: "application/x-cd-image",
        modified,
        base_modified,
    };
    Ok(answer(head, what, place))
}
