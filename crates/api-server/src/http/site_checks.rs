//! Handler of the checks of the site.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use doctor::DoctorReport;

use crate::app::site_checks::SiteChecks;

/// Results of the checks that are possible from here, at most a few seconds old.
pub(crate) async fn get(State(checks): State<Arc<SiteChecks>>) -> Json<Arc<DoctorReport>> {
    Json(checks.report().await)
}
