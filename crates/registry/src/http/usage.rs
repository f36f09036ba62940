//! Usage of the quotas, and of the storage: our own.

use axum::Json;
use axum::response::IntoResponse as _;
use serde::Serialize;
use serde_json::json;

use super::headers::Answer;
use super::state::App;
use crate::observe::Totals;
use crate::storage::Store;

#[derive(Debug, Serialize)]
struct StorageUsage {
    /// None while the first count takes long.
    #[serde(flatten)]
    totals: Option<Totals>,
    #[serde(flatten)]
    room: Option<FileSystem>,
}

/// The file system of the storage folder. Units: bytes.
#[derive(Debug, Serialize)]
struct FileSystem {
    capacity: u64,
    /// Bytes that may still be written.
    free: u64,
}

pub(super) async fn answer(app: &App) -> Answer {
    let quotas = app.enforcement.usage().await?;
    let storage = StorageUsage {
        totals: app.count.fresh().await,
        room: room(&app.store),
    };
    Ok(Json(json!({ "quotas": quotas, "storage": storage })).into_response())
}

/// None for a bucket, which does not say.
fn room(store: &Store) -> Option<FileSystem> {
    let Store::Disk(store) = store else {
        return None;
    };
    match store.room() {
        Ok(room) => Some(FileSystem {
            capacity: room.capacity,
            free: room.free,
        }),
        Err(error) => {
            let error = model::error::chain(&error);
            tracing::warn!(error, "the free room is not known");
            None
        }
    }
}
