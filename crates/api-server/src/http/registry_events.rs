//! Handler of notifications of the registry.
//!
//! Source: distribution, `notifications/event.go`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use oci::Repository;
use serde::Deserialize;

use super::error::ApiError;
use super::extract::{BODY_LIMIT, JSON, check_media_type, media_type, read};
use crate::app::registry_content::SiteContent;

/// Media types of events, as registries send them: distribution's versions 2 and 3.
const EVENTS: [&str; 2] = [
    "application/vnd.docker.distribution.events.v1+json",
    "application/vnd.docker.distribution.events.v2+json",
];
/// Action of reads, which change nothing.
const PULL: &str = "pull";

/// Events of a registry; other members are ignored.
#[derive(Deserialize)]
struct RegistryEvents {
    #[serde(default)]
    events: Vec<RegistryEvent>,
}

#[derive(Deserialize)]
struct RegistryEvent {
    #[serde(default)]
    action: String,
    #[serde(default)]
    target: ChangedRepository,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChangedRepository {
    repository: String,
}

/// Its registry has no credentials here: an event only names a repository to read, with the login of this server.
pub(crate) async fn receive(
    State(content): State<Arc<SiteContent>>,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let kind = media_type(request.headers());
    check_media_type(kind.as_deref(), &[EVENTS[0], EVENTS[1], JSON])?;
    let body = read(request, &(), BODY_LIMIT).await?;
    let events: RegistryEvents = serde_json::from_slice(&body)
        .map_err(|error| ApiError::Request(format!("no events of a registry: {error}")))?;
    let changes = events.events.into_iter();
    let changes = changes.filter(|event| event.action != PULL);
    let names = changes.map(|event| event.target.repository);
    content.have_changed(names.filter(|name| name.parse::<Repository>().is_ok()));
    Ok(StatusCode::OK)
}
