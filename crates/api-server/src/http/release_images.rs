//! Handlers of release images.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::versions::{CpuArchitecture, OfferedRelease, ReleaseImageParams};

use super::error::ApiError;
use super::extract::{JsonBody, OfVersion};
use super::query::Query;
use crate::app::ApiServer;
use crate::auth::Caller;

pub(crate) async fn list(
    State(app): State<ApiServer>,
) -> Result<Json<Vec<OfferedRelease>>, ApiError> {
    Ok(Json(app.release_images().await?))
}

pub(crate) async fn add(
    State(app): State<ApiServer>,
    caller: Caller,
    body: JsonBody,
) -> Result<(StatusCode, Json<OfferedRelease>), ApiError> {
    let params: ReleaseImageParams = body.parse("release-image-params")?;
    let added = app.add_release_image(caller.user_name(), params).await?;
    Ok((StatusCode::CREATED, Json(added)))
}

pub(crate) async fn remove(
    State(app): State<ApiServer>,
    OfVersion(version): OfVersion,
    query: Query,
) -> Result<StatusCode, ApiError> {
    let architecture = query.some_of::<CpuArchitecture>("cpu_architecture")?;
    let architecture = architecture.first().copied().unwrap_or_default();
    app.remove_release_image(&version, architecture).await?;
    Ok(StatusCode::NO_CONTENT)
}
