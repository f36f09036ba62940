//! State of the handlers: each takes the part that it needs.

use std::sync::Arc;

use axum::extract::FromRef;
use axum::http::HeaderMap;

use super::blobs::BlobState;
use super::enforcement::Enforcement;
use super::lists::ListState;
use super::manifests::ManifestState;
use super::uploads::UploadState;
use crate::gc::Collector;
use crate::notifications::Notifications;
use crate::observe::StorageCount;
use crate::origin::Origins;
use crate::policy::{Policies, Pulls};
use crate::scrub::Scrub;
use crate::settings::Settings;
use crate::storage::Store;
use crate::upstream::Upstreams;
use crate::validation::Validation;

/// The parts of the registry that handlers use. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) upstreams: Upstreams,
    pub(crate) origins: Arc<Origins>,
    pub(crate) policies: Arc<Policies>,
    pub(crate) pulls: Arc<Pulls>,
    pub(crate) notifications: Notifications,
    pub(crate) collector: Arc<Collector>,
    pub(crate) scrub: Arc<Scrub>,
    pub(crate) count: Arc<StorageCount>,
    /// Reason why every write is refused; None when writes are allowed.
    pub(crate) read_only: Option<String>,
}

/// State of the router; clones are cheap.
#[derive(Debug, Clone)]
pub(crate) struct App {
    pub(super) store: Store,
    pub(super) upstreams: Upstreams,
    pub(super) origins: Arc<Origins>,
    pub(super) collector: Arc<Collector>,
    pub(super) scrub: Arc<Scrub>,
    pub(super) count: Arc<StorageCount>,
    pub(super) blobs: Arc<BlobState>,
    pub(super) lists: Arc<ListState>,
    pub(super) manifests: Arc<ManifestState>,
    pub(super) uploads: Arc<UploadState>,
    pub(super) enforcement: Arc<Enforcement>,
    pub(super) read_only: Option<Arc<str>>,
    pub(super) is_delete_enabled: bool,
    headers: ExtraHeaders,
}

/// Headers of every answer.
#[derive(Debug, Clone)]
pub(super) struct ExtraHeaders(pub(super) Arc<HeaderMap>);

impl App {
    pub(crate) fn new(parts: Parts, settings: &Settings) -> Self {
        let Parts {
            store,
            upstreams,
            origins,
            policies,
            pulls,
            notifications,
            collector,
            scrub,
            count,
            read_only,
        } = parts;
        let enforcement = Arc::new(Enforcement::new(store.clone(), policies));
        Self {
            collector,
            scrub,
            count,
            blobs: Arc::new(BlobState {
                store: store.clone(),
                upstreams: upstreams.clone(),
                notifications: notifications.clone(),
            }),
            lists: Arc::new(ListState {
                store: store.clone(),
                upstreams: upstreams.clone(),
                origins: Arc::clone(&origins),
                catalog_limit: settings.registry_catalog_maxentries.max(1),
                tags_limit: settings.registry_tags_maxtags.max(1),
            }),
            manifests: Arc::new(ManifestState {
                store: store.clone(),
                upstreams: upstreams.clone(),
                origins: Arc::clone(&origins),
                enforcement: Arc::clone(&enforcement),
                notifications: notifications.clone(),
                pulls,
                validation: Arc::new(Validation::new(settings)),
                takes_schema1: settings.registry_compatibility_schema1_enabled,
            }),
            uploads: Arc::new(UploadState {
                store: store.clone(),
                origins: Arc::clone(&origins),
                enforcement: Arc::clone(&enforcement),
                notifications,
            }),
            enforcement,
            read_only: read_only.map(Into::into),
            is_delete_enabled: settings.registry_storage_delete_enabled,
            headers: ExtraHeaders(Arc::new(settings.registry_http_headers.0.clone())),
            store,
            upstreams,
            origins,
        }
    }
}

impl FromRef<App> for Arc<Origins> {
    fn from_ref(app: &App) -> Self {
        Arc::clone(&app.origins)
    }
}

impl FromRef<App> for ExtraHeaders {
    fn from_ref(app: &App) -> Self {
        app.headers.clone()
    }
}
