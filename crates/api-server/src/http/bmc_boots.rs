//! Handlers of boots by BMCs.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::bmc_boot::{BmcBootList, BmcBootParams};

use super::error::ApiError;
use super::extract::{InInfraEnv, JsonBody};
use crate::app::ApiServer;
use crate::auth::Caller;

pub(crate) async fn start(
    State(app): State<ApiServer>,
    caller: Caller,
    InInfraEnv(id): InInfraEnv,
    body: JsonBody,
) -> Result<(StatusCode, Json<BmcBootList>), ApiError> {
    let params: BmcBootParams = body.parse("bmc-boot-params")?;
    let hosts = app.start_bmc_boots(&caller, id, params).await?;
    Ok((StatusCode::ACCEPTED, Json(BmcBootList { hosts })))
}

pub(crate) async fn list(
    State(app): State<ApiServer>,
    InInfraEnv(id): InInfraEnv,
) -> Result<Json<BmcBootList>, ApiError> {
    let hosts = app.list_bmc_boots(id).await?;
    Ok(Json(BmcBootList { hosts }))
}

pub(crate) async fn cancel(
    State(app): State<ApiServer>,
    InInfraEnv(id): InInfraEnv,
) -> Result<(StatusCode, Json<BmcBootList>), ApiError> {
    let hosts = app.cancel_bmc_boots(id).await?;
    Ok((StatusCode::ACCEPTED, Json(BmcBootList { hosts })))
}
