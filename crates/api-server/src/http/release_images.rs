//! Handlers of release images.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::versions::{CpuArchitecture, OfferedRelease, ReleaseImageParams};

use super::error::ApiError;
use super::extract::{JsonBody, OfVersion};
use super::query::Query;
use crate::app::release_images::ReleaseOffer;
use crate::auth::Caller;

pub(crate) async fn list(
    State(images): State<Arc<ReleaseOffer>>,
) -> Result<Json<Vec<OfferedRelease>>, ApiError> {
    Ok(Json(images.list().await?))
}

pub(crate) async fn add(
    State(images): State<Arc<ReleaseOffer>>,
    caller: Caller,
    body: JsonBody,
) -> Result<(StatusCode, Json<OfferedRelease>), ApiError> {
    let params: ReleaseImageParams = body.parse("release-image-params")?;
    let added = images.add(caller.user_name(), params).await?;
    Ok((StatusCode::CREATED, Json(added)))
}

pub(crate) async fn remove(
    State(images): State<Arc<ReleaseOffer>>,
    OfVersion(version): OfVersion,
    query: Query,
) -> Result<StatusCode, ApiError> {
    let architecture = query.some_of::<CpuArchitecture>("cpu_architecture")?;
    let architecture = architecture.first().copied().unwrap_or_default();
    images.remove(&version, architecture).await?;
    Ok(StatusCode::NO_CONTENT)
}
