//! Handler of log-in links, for the web UI's server.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};

use super::error::ApiError;
use super::extract::JsonBody;
use crate::app::log_in_codes::LogInLinks;

/// The code of a link.
#[derive(Deserialize)]
pub(crate) struct LogInCode {
    code: String,
}

/// The token for it.
#[derive(Serialize)]
pub(crate) struct IssuedToken {
    token: String,
}

pub(crate) async fn redeem(
    State(links): State<Arc<LogInLinks>>,
    body: JsonBody,
) -> Result<Json<IssuedToken>, ApiError> {
    let LogInCode { code } = body.parse("log-in-code")?;
    let token = links.redeem(&code).await?;
    Ok(Json(IssuedToken { token }))
}
