//! Handlers of OS images.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use model::versions::{OfferedOsImage, OsImage};

use super::error::ApiError;
use crate::app::offer::CurrentOffer;
use crate::app::os_images;

pub(crate) async fn list(State(offer): State<Arc<CurrentOffer>>) -> Json<Vec<OfferedOsImage>> {
    Json(os_images::list(&offer))
}

/// For image services, which have no credentials: the addresses have none, and the database is not asked.
pub(crate) async fn held(
    State(offer): State<Arc<CurrentOffer>>,
) -> Result<Json<Vec<OsImage>>, ApiError> {
    Ok(Json(offer.held_os_images()?))
}
