//! Notifications of pushes, pulls, deletions and mounts, as distribution sends them.
//!
//! A request only leaves its event in a bounded queue. From there it goes into the endpoint's journal, and leaves
//! that when the endpoint has taken it: at least once, over restarts. Events beyond the queue's bound are counted and dropped.

mod deliver;
mod event;
mod journal;
mod metrics;

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ::metrics::{Counter, counter};
use axum::http::request::Parts;
use bytes::Bytes;
use oci::{Digest, Manifest, Repository, Tag};
use service::{CancellationToken, Error};
use tokio::sync::mpsc::{Sender, channel};

use self::metrics::EVENTS;
use crate::origin::Origins;
use crate::settings::{Endpoint, Settings};
use deliver::Delivery;
pub(crate) use event::Action;
use event::{Event, EventSource, Target};
use journal::Journal;

/// Events on their way to a journal; each takes about a kilobyte.
const INBOX: usize = 1024;
/// Media type of blobs: the protocol does not transmit a better one. Source: distribution.
const BLOB: &str = "application/octet-stream";
/// The deliveries to an endpoint, until the shutdown.
pub(crate) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Queues events for every endpoint; does nothing without one. Clones share the queues.
#[derive(Debug, Clone)]
pub(crate) struct Notifications(Option<Arc<Notifier>>);

#[derive(Debug)]
struct Notifier {
    endpoints: Vec<Line>,
    source: EventSource,
    has_references: bool,
    origins: Arc<Origins>,
}

/// The way to one endpoint.
#[derive(Debug)]
struct Line {
    endpoint: Arc<Endpoint>,
    inbox: Sender<Bytes>,
    events: Counter,
    dropped: Counter,
}

/// The notifications of the settings, and the deliveries to run. Journals are kept in `folder`, or else in memory.
///
/// Errors: a journal that cannot be opened; a client that cannot be built.
pub(crate) fn open(
    settings: &Settings,
    origins: Arc<Origins>,
    folder: Option<&Path>,
    shutdown: &CancellationToken,
) -> Result<(Notifications, Vec<Work>), Error> {
    let endpoints = &settings.registry_notifications_endpoints.0;
    let enabled: Vec<_> = endpoints.iter().filter(|one| !one.is_disabled).collect();
    if let Some(folder) = folder {
        journal::keep_only(
            folder,
            enabled.iter().map(|endpoint| endpoint.name.as_str()),
        );
    }
    if enabled.is_empty() {
        return Ok((Notifications(None), Vec::new()));
    }
    service::metrics::recorder();
    self::metrics::describe();
    // The headers of an endpoint may be secrets, and events name repositories and users.
    let client = service::http_client_with_secrets(None, false)?;
    // Requests that take longer to end lose their events.
    let patience = settings.registry_http_draintimeout + Duration::from_secs(5);
    let (mut lines, mut work) = (Vec::new(), Vec::<Work>::new());
    for endpoint in enabled {
        let endpoint = Arc::new(endpoint.clone());
        let doing = || format!("opening the journal of notifications to {}", endpoint.name);
        let journal = match folder {
            Some(folder) => Journal::open(folder, &endpoint.name),
            None => Ok(Journal::in_memory()),
        };
        let journal = journal.map_err(|error: io::Error| Error::new(doing(), error))?;
        let (inbox, coming) = channel(INBOX);
        let count = |kind| counter!(EVENTS, "type" => kind, "endpoint" => endpoint.name.clone());
        lines.push(Line {
            events: count("Events"),
            dropped: count("Dropped"),
            endpoint: Arc::clone(&endpoint),
            inbox,
        });
        let delivery = Delivery::new(endpoint, journal, client.clone());
        work.push(Box::pin(delivery.run(coming, shutdown.clone(), patience)));
    }
    let notifier = Notifier {
        endpoints: lines,
        source: EventSource::here(settings.registry_http_addr.0.port()),
        has_references: settings.registry_notifications_events_includereferences,
        origins,
    };
    Ok((Notifications(Some(Arc::new(notifier))), work))
}

impl Notifier {
    fn queue(&self, head: &Parts, action: Action, target: Target<'_>) {
        let media_type = target.media_type.unwrap_or_default();
        let wants = |line: &&Line| line.endpoint.wants(action.name(), media_type);
        let mut lines = self.endpoints.iter().filter(wants).peekable();
        if lines.peek().is_none() {
            return;
        }
        let origin = self.origins.of(head);
        let url = match (target.digest, target.is_manifest) {
            // Deleted content has no address.
            _ if action == Action::Delete => None,
            (Some(digest), true) => Some(origin.manifest(target.repository, digest)),
            (Some(digest), false) => Some(origin.blob(target.repository, digest)),
            (None, _) => None,
        };
        let url = url.map(|url| String::from_utf8_lossy(url.as_bytes()).into_owned());
        let event = Event::new(action, target, url, head, &self.source);
        let text = event.text();
        for line in lines {
            line.events.increment(1);
            if line.inbox.try_send(text.clone()).is_err() {
                line.dropped.increment(1);
            }
        }
    }
}

impl Notifications {
    pub(crate) fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// A manifest was pushed under `tags`, or pulled by one of them.
    pub(crate) fn manifest(
        &self,
        head: &Parts,
        action: Action,
        (repository, digest, manifest): (&Repository, &Digest, &Manifest),
        tags: &[Tag],
    ) {
        let Some(notifier) = &self.0 else {
            return;
        };
        let queue = |tag| {
            let target = Target {
                media_type: Some(manifest.media_type),
                digest: Some(digest),
                size: Some(manifest.bytes.len() as u64),
                tag,
                is_manifest: true,
                references: notifier.has_references.then_some(manifest),
                ..Target::of(repository)
            };
            notifier.queue(head, action, target);
        };
        if tags.is_empty() {
            queue(None);
        }
        for tag in tags {
            queue(Some(tag));
        }
    }

    /// A blob of `size` bytes was pushed, pulled or mounted from another repository.
    pub(crate) fn blob(
        &self,
        head: &Parts,
        action: Action,
        (repository, digest, size): (&Repository, &Digest, u64),
        from: Option<&Repository>,
    ) {
        let Some(notifier) = &self.0 else {
            return;
        };
        let target = Target {
            media_type: Some(BLOB),
            digest: Some(digest),
            size: Some(size),
            from,
            ..Target::of(repository)
        };
        notifier.queue(head, action, target);
    }

    /// A tag, or content under a digest, was deleted.
    pub(crate) fn deletion(
        &self,
        head: &Parts,
        repository: &Repository,
        digest: Option<&Digest>,
        tag: Option<&Tag>,
    ) {
        let Some(notifier) = &self.0 else {
            return;
        };
        let target = Target {
            digest,
            tag,
            ..Target::of(repository)
        };
        notifier.queue(head, Action::Delete, target);
    }
}
