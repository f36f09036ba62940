//! Handlers of boots by BMCs.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::bmc_boot::{BmcBootList, BmcBootParams};

use super::error::ApiError;
use super::extract::{InInfraEnv, JsonBody};
use crate::app::bmc_boots::BmcBoots;
use crate::auth::Caller;

pub(crate) async fn start(
    State(boots): State<Arc<BmcBoots>>,
    caller: Caller,
    InInfraEnv(id): InInfraEnv,
    body: JsonBody,
) -> Result<(StatusCode, Json<BmcBootList>), ApiError> {
    let params: BmcBootParams = body.parse("bmc-boot-params")?;
    let hosts = boots.start(&caller, id, params).await?;
    Ok((StatusCode::ACCEPTED, Json(BmcBootList { hosts })))
}

pub(crate) async fn list(
    State(boots): State<Arc<BmcBoots>>,
    InInfraEnv(id): InInfraEnv,
) -> Result<Json<BmcBootList>, ApiError> {
    let hosts = boots.list(id).await?;
    Ok(Json(BmcBootList { hosts }))
}

pub(crate) async fn cancel(
    State(boots): State<Arc<BmcBoots>>,
    InInfraEnv(id): InInfraEnv,
) -> Result<(StatusCode, Json<BmcBootList>), ApiError> {
    let hosts = boots.cancel(id).await?;
    Ok((StatusCode::ACCEPTED, Json(BmcBootList { hosts })))
}
