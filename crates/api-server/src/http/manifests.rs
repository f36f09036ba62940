//! Handlers about manifests.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::manifests::{CreateManifestParams, Manifest, ManifestFolder};
use serde::Deserialize;

use super::download::Download;
use super::error::Refusal;
use super::extract::{Body, InCluster};
use super::query::Query;
use crate::app::App;
use crate::app::manifests::{Place, content, wrong_name};

/// `update-manifest-params` of the API description.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UpdateParams {
    folder: ManifestFolder,
    file_name: String,
    updated_folder: Option<ManifestFolder>,
    updated_file_name: Option<String>,
    updated_content: Option<String>,
}

fn check_name(name: &str) -> Result<(), Refusal> {
    wrong_name(name).map_or(Ok(()), |problem| Err(Refusal::Unprocessable(problem)))
}

fn place(query: &Query) -> Result<Place, Refusal> {
    let folder = query.one_of("folder")?.unwrap_or_default();
    Ok(Place {
        folder,
        file_name: query.required("file_name")?.to_owned(),
    })
}

pub(crate) async fn list(
    State(app): State<App>,
    InCluster(id): InCluster,
    query: Query,
) -> Result<Json<Vec<Manifest>>, Refusal> {
    Ok(Json(
        app.list_manifests(id, query.flag("include_system_generated"))
            .await?,
    ))
}

pub(crate) async fn create(
    State(app): State<App>,
    InCluster(id): InCluster,
    body: Body,
) -> Result<(StatusCode, Json<Manifest>), Refusal> {
    let params: CreateManifestParams = body.parse("CreateManifestParams")?;
    check_name(&params.file_name)?;
    let bytes = content(&params.file_name, &params.content)?;
    let place = Place {
        folder: params.folder.unwrap_or_default(),
        file_name: params.file_name,
    };
    Ok((
        StatusCode::CREATED,
        Json(app.create_manifest(id, &place, bytes).await?),
    ))
}

pub(crate) async fn update(
    State(app): State<App>,
    InCluster(id): InCluster,
    body: Body,
) -> Result<Json<Manifest>, Refusal> {
    let params: UpdateParams = body.parse("UpdateManifestParams")?;
    let from = Place {
        folder: params.folder,
        file_name: params.file_name,
    };
    let to = Place {
        folder: params.updated_folder.unwrap_or(from.folder),
        file_name: params
            .updated_file_name
            .unwrap_or_else(|| from.file_name.clone()),
    };
    check_name(&to.file_name)?;
    let bytes = params
        .updated_content
        .map(|text| content(&to.file_name, &text))
        .transpose()?;
    Ok(Json(app.update_manifest(id, &from, &to, bytes).await?))
}

pub(crate) async fn delete(
    State(app): State<App>,
    InCluster(id): InCluster,
    query: Query,
) -> Result<StatusCode, Refusal> {
    app.delete_manifest(id, &place(&query)?).await?;
    Ok(StatusCode::OK)
}

pub(crate) async fn download(
    State(app): State<App>,
    InCluster(id): InCluster,
    query: Query,
) -> Result<Download, Refusal> {
    let place = place(&query)?;
    let object = app.manifest(id, &place).await?;
    Ok(Download::object(place.file_name, object))
}
