//! Handler of operator catalogs.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use model::versions::OfferedCatalog;

use crate::app::offer::CurrentOffer;

pub(crate) async fn list(State(offer): State<Arc<CurrentOffer>>) -> Json<Vec<OfferedCatalog>> {
    Json(offer.catalogs())
}
