//! Handlers of OS images.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::versions::{AddedOsImage, CpuArchitecture, OfferedOsImage, OsImageParams};

use super::error::ApiError;
use super::extract::{JsonBody, OfVersion};
use super::query::Query;
use crate::app::ApiServer;
use crate::auth::Caller;

pub(crate) async fn list(
    State(app): State<ApiServer>,
) -> Result<Json<Vec<OfferedOsImage>>, ApiError> {
    Ok(Json(app.os_images().await?))
}

/// For image services, which have no credentials: the addresses have none, and the database is not asked.
pub(crate) async fn added(
    State(app): State<ApiServer>,
) -> Result<Json<Vec<AddedOsImage>>, ApiError> {
    Ok(Json(app.current_offer.added_os_images()?))
}

pub(crate) async fn add(
    State(app): State<ApiServer>,
    caller: Caller,
    body: JsonBody,
) -> Result<(StatusCode, Json<OfferedOsImage>), ApiError> {
    let params: OsImageParams = body.parse("os-image-params")?;
    let added = app.add_os_image(caller.user_name(), params).await?;
    Ok((StatusCode::CREATED, Json(added)))
}

pub(crate) async fn remove(
    State(app): State<ApiServer>,
    OfVersion(version): OfVersion,
    query: Query,
) -> Result<StatusCode, ApiError> {
    let architecture = query.some_of::<CpuArchitecture>("cpu_architecture")?;
    let architecture = architecture.first().copied().unwrap_or_default();
    app.remove_os_image(&version, architecture).await?;
    Ok(StatusCode::NO_CONTENT)
}
