//! Handler of the checks of the site.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use doctor::DoctorReport;

use crate::app::ApiServer;

/// Results of the checks that are possible from here, at most a few seconds old.
pub(crate) async fn get(State(app): State<ApiServer>) -> Json<Arc<DoctorReport>> {
    Json(app.site_report().await)
}
