//! Handlers of manifests.

use std::slice;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::manifests::{
    ClusterManifest, CreateManifestParams, ManifestFolder, UpdateManifestParams,
};

use super::download::FileResponse;
use super::error::ApiError;
use super::extract::{InCluster, JsonBody};
use super::query::Query;
use crate::app::manifests::{
    ManifestPath, Manifests, NAME_PATTERN, content, matches_pattern, name_problem,
};

/// Errors: 400 – the name breaks the pattern of the description; 422 – another rule.
fn check_name(member: &str, name: &str) -> Result<(), ApiError> {
    if !matches_pattern(name) {
        let problem = format_args!("should match '{NAME_PATTERN}'");
        return Err(ApiError::parameter(member, "body", problem));
    }
    name_problem(name).map_or(Ok(()), |problem| Err(ApiError::Unprocessable(problem)))
}

fn place(query: &Query) -> Result<ManifestPath, ApiError> {
    let folder = query.one_of("folder")?.unwrap_or_default();
    Ok(ManifestPath {
        folder,
        file_name: query.required("file_name")?.to_owned(),
    })
}

pub(crate) async fn list(
    State(manifests): State<Arc<Manifests>>,
    InCluster(id): InCluster,
    query: Query,
) -> Result<Json<Vec<ClusterManifest>>, ApiError> {
    Ok(Json(
        manifests
            .list(id, query.flag("include_system_generated"))
            .await?,
    ))
}

pub(crate) async fn create(
    State(manifests): State<Arc<Manifests>>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<(StatusCode, Json<ClusterManifest>), ApiError> {
    let params: CreateManifestParams = body.parse("CreateManifestParams")?;
    check_name("file_name", &params.file_name)?;
    let bytes = content(&params.file_name, &params.content)?;
    let place = ManifestPath {
        folder: params.folder.unwrap_or_default(),
        file_name: params.file_name,
    };
    Ok((
        StatusCode::CREATED,
        Json(manifests.create(id, &place, bytes).await?),
    ))
}

pub(crate) async fn update(
    State(manifests): State<Arc<Manifests>>,
    InCluster(id): InCluster,
    body: JsonBody,
) -> Result<Json<ClusterManifest>, ApiError> {
    let params: UpdateManifestParams = body.parse("UpdateManifestParams")?;
    let from = ManifestPath {
        folder: params.folder,
        file_name: params.file_name,
    };
    let to = ManifestPath {
        folder: params.updated_folder.unwrap_or(from.folder),
        file_name: params
            .updated_file_name
            .unwrap_or_else(|| from.file_name.clone()),
    };
    check_name("updated_file_name", &to.file_name)?;
    let bytes = params
        .updated_content
        .map(|text| content(&to.file_name, &text))
        .transpose()?;
    Ok(Json(manifests.update(id, &from, &to, bytes).await?))
}

/// Without a folder, the file is deleted from either: names are unique over both, and aicli names no folder.
pub(crate) async fn delete(
    State(manifests): State<Arc<Manifests>>,
    InCluster(id): InCluster,
    query: Query,
) -> Result<StatusCode, ApiError> {
    let folder: Option<ManifestFolder> = query.one_of("folder")?;
    let folders = folder.as_ref().map_or(ManifestFolder::ALL, slice::from_ref);
    manifests
        .delete(id, folders, query.required("file_name")?)
        .await?;
    Ok(StatusCode::OK)
}

pub(crate) async fn download(
    State(manifests): State<Arc<Manifests>>,
    InCluster(id): InCluster,
    query: Query,
) -> Result<FileResponse, ApiError> {
    let place = place(&query)?;
    let object = manifests.get(id, &place).await?;
    Ok(FileResponse::object(place.file_name, object))
}
