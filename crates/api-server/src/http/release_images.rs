//! Handler of release images.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use model::versions::OfferedRelease;

use crate::app::offer::CurrentOffer;
use crate::app::release_images;

pub(crate) async fn list(State(offer): State<Arc<CurrentOffer>>) -> Json<Vec<OfferedRelease>> {
    Json(release_images::list(&offer))
}
