//! Handlers of OS images.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::versions::{AddedOsImage, CpuArchitecture, OfferedOsImage, OsImageParams};

use super::error::ApiError;
use super::extract::{JsonBody, OfVersion};
use super::query::Query;
use crate::app::offer::CurrentOffer;
use crate::app::os_images::OsImageOffer;
use crate::auth::Caller;

pub(crate) async fn list(
    State(images): State<Arc<OsImageOffer>>,
) -> Result<Json<Vec<OfferedOsImage>>, ApiError> {
    Ok(Json(images.list().await?))
}

/// For image services, which have no credentials: the addresses have none, and the database is not asked.
pub(crate) async fn added(
    State(offer): State<Arc<CurrentOffer>>,
) -> Result<Json<Vec<AddedOsImage>>, ApiError> {
    Ok(Json(offer.other_os_images()?))
}

pub(crate) async fn add(
    State(images): State<Arc<OsImageOffer>>,
    caller: Caller,
    body: JsonBody,
) -> Result<(StatusCode, Json<OfferedOsImage>), ApiError> {
    let params: OsImageParams = body.parse("os-image-params")?;
    let added = images.add(caller.user_name(), params).await?;
    Ok((StatusCode::CREATED, Json(added)))
}

pub(crate) async fn remove(
    State(images): State<Arc<OsImageOffer>>,
    OfVersion(version): OfVersion,
    query: Query,
) -> Result<StatusCode, ApiError> {
    let architecture = query.some_of::<CpuArchitecture>("cpu_architecture")?;
    let architecture = architecture.first().copied().unwrap_or_default();
    images.remove(&version, architecture).await?;
    Ok(StatusCode::NO_CONTENT)
}
