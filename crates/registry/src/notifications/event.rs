//! Events. Source: distribution's events, version 2.

use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use axum::http::header::{HOST, HeaderName, USER_AGENT};
use axum::http::request::Parts;
use bytes::Bytes;
use oci::{Descriptor, Digest, Kind, Manifest, Repository, Tag};
use serde::Serialize;
use service::layers::RequestId;
use uuid::Uuid;

use crate::auth::Access;

/// The media type of a delivery.
pub(super) const MEDIA_TYPE: &str = "application/vnd.docker.distribution.events.v2+json";

/// Action and target.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) repository: &'a Repository,
    pub(super) media_type: Option<&'a str>,
    pub(super) digest: Option<&'a Digest>,
    /// Units: bytes.
    pub(super) size: Option<u64>,
    pub(super) tag: Option<&'a Tag>,
    /// Where a mounted blob was before.
    pub(super) from: Option<&'a Repository>,
    /// Content of the manifest, listed in the event too.
    pub(super) references: Option<&'a Manifest>,
    pub(super) is_manifest: bool,
}

impl<'a> Target<'a> {
    pub(super) fn of(repository: &'a Repository) -> Self {
        Self {
            repository,
            media_type: None,
            digest: None,
            size: None,
            tag: None,
            from: None,
            references: None,
            is_manifest: false,
        }
    }
}

/// This process.
#[derive(Debug, Clone, Serialize)]
pub(super) struct EventSource {
    addr: String,
    #[serde(rename = "instanceID")]
    instance_id: String,
}

impl EventSource {
    /// The process that listens on `port` of this machine.
    pub(super) fn here(port: u16) -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Self {
            addr: format!("{}:{port}", host.trim()),
            instance_id: new_id(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Event<'a> {
    id: String,
    timestamp: String,
    action: &'static str,
    target: Described<'a>,
    request: Request<'a>,
    actor: Actor<'a>,
    source: &'a EventSource,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Described<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// The same; older receivers look here.
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
    repository: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_repository: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    references: Vec<&'a Descriptor>,
}

#[derive(Serialize)]
struct Request<'a> {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    addr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    method: &'a str,
    useragent: &'a str,
}

#[derive(Serialize)]
struct Actor<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

impl<'a> Event<'a> {
    pub(super) fn new(
        action: Action,
        target: Target<'a>,
        url: Option<String>,
        head: &'a Parts,
        source: &'a EventSource,
    ) -> Self {
        let text = |name: &HeaderName| head.headers.get(name)?.to_str().ok();
        let host = text(&HOST).or_else(|| Some(head.uri.authority()?.as_str()));
        let id = head.extensions.get::<RequestId>();
        let peer = head.extensions.get::<ConnectInfo<SocketAddr>>();
        let access = head.extensions.get::<Access>();
        Self {
            id: new_id(),
            timestamp: service::clock::now().to_rfc3339(),
            action: action.name(),
            target: Described {
                media_type: target.media_type,
                digest: target.digest,
                size: target.size,
                length: target.size,
                repository: target.repository.as_str(),
                from_repository: target.from.map(Repository::as_str),
                url,
                tag: target.tag.map(Tag::as_str),
                references: target.references.map(references).unwrap_or_default(),
            },
            request: Request {
                id: id.map_or_else(new_id, |id| id.0.to_string()),
                addr: peer.map(|peer| peer.0.to_string()),
                host,
                method: head.method.as_str(),
                useragent: text(&USER_AGENT).unwrap_or_default(),
            },
            actor: Actor {
                name: access.and_then(Access::user),
            },
            source,
        }
    }

    /// One line of JSON.
    pub(super) fn text(&self) -> Bytes {
        serde_json::to_vec(self)
            .expect("texts and numbers can always be written")
            .into()
    }
}

fn references(manifest: &Manifest) -> Vec<&Descriptor> {
    let manifests = match &manifest.kind {
        Kind::Index { manifests } => manifests.as_slice(),
        _ => &[],
    };
    manifest.blobs().chain(manifests).collect()
}

/// Action of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Pull,
    Push,
    Mount,
    Delete,
}

impl Action {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Push => "push",
            Self::Mount => "mount",
            Self::Delete => "delete",
        }
    }
}

/// A new event id.
fn new_id() -> String {
    Uuid::new_v4().to_string()
}
