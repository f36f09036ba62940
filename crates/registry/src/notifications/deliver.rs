//! From the queue into the journal, and from there to the endpoint.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, LOCATION};
use bytes::Bytes;
use metrics::{Counter, Gauge, counter, gauge};
use service::CancellationToken;
use tokio::sync::Notify;
use tokio::sync::mpsc::Receiver;

use super::event::MEDIA_TYPE;
use super::journal::Journal;
use super::metrics::{EVENTS, PENDING, STATUSES};
use crate::settings::Endpoint;

/// Events that are written together.
const BATCH: usize = 128;
/// Between two tries at least: an endpoint that refuses at once would keep a processor busy.
const PAUSE: Duration = Duration::from_millis(20);
/// Between two looks at a journal that cannot be read.
const REPAIR: Duration = Duration::from_secs(5);

/// Delivers events to one endpoint.
pub(super) struct Delivery {
    endpoint: Arc<Endpoint>,
    journal: Arc<Mutex<Journal>>,
    has_more: Notify,
    client: reqwest::Client,
    dropped: Counter,
    pending: Gauge,
}

impl Delivery {
    pub(super) fn new(endpoint: Arc<Endpoint>, journal: Journal, client: reqwest::Client) -> Self {
        let name = endpoint.name.clone();
        Self {
            dropped: counter!(EVENTS, "type" => "Dropped", "endpoint" => name.clone()),
            pending: gauge!(PENDING, "endpoint" => name),
            endpoint,
            journal: Arc::new(Mutex::new(journal)),
            has_more: Notify::new(),
            client,
        }
    }

    /// Runs until `shutdown`; events that arrive within `patience` after it are journaled, and sent after the
    /// next start.
    pub(super) async fn run(
        self,
        mut coming: Receiver<Bytes>,
        shutdown: CancellationToken,
        patience: Duration,
    ) {
        let keep = async {
            let mut events = Vec::with_capacity(BATCH);
            while coming.recv_many(&mut events, BATCH).await > 0 {
                self.keep(std::mem::take(&mut events)).await;
            }
        };
        let end = async {
            shutdown.run_until_cancelled(self.send_all()).await;
            // Requests in flight may still finish, and queue their events.
            shutdown.cancelled().await;
            tokio::time::sleep(patience).await;
        };
        tokio::select! {
            () = keep => {}
            () = end => {}
        }
    }

    async fn keep(&self, events: Vec<Bytes>) {
        let count = events.len();
        let left_out = match self.with(move |journal| journal.add(&events)).await {
            Ok(left_out) => left_out,
            Err(error) => {
                let endpoint = &self.endpoint.name;
                tracing::error!(%error, endpoint, count, "events were lost: the journal failed");
                count
            }
        };
        if left_out > 0 {
            let endpoint = &self.endpoint.name;
            tracing::warn!(endpoint, left_out, "events were lost: too many wait");
            self.dropped.increment(left_out as u64);
        }
        self.has_more.notify_one();
    }

    async fn send_all(&self) {
        loop {
            match self.with(Journal::first).await {
                Ok(None) => self.has_more.notified().await,
                Ok(Some(event)) => {
                    self.send(&event).await;
                    if let Err(error) = self.with(move |journal| journal.took(&event)).await {
                        self.journal_failed(&error).await;
                    }
                }
                Err(error) => self.journal_failed(&error).await,
            }
        }
    }

    async fn journal_failed(&self, error: &io::Error) {
        let endpoint = &self.endpoint.name;
        tracing::error!(%error, endpoint, "the journal of notifications cannot be used");
        tokio::time::sleep(REPAIR).await;
    }

    /// Until the endpoint has taken it.
    async fn send(&self, event: &Bytes) {
        let Endpoint {
            threshold, backoff, ..
        } = *self.endpoint;
        let mut failures = 0_u32;
        while let Err(reason) = self.try_once(event).await {
            failures = failures.saturating_add(1);
            let endpoint = &self.endpoint.name;
            if failures == threshold {
                tracing::warn!(endpoint, reason, "notifications are not taken; they wait");
            }
            let wait = if failures < threshold {
                PAUSE
            } else {
                backoff.max(PAUSE)
            };
            tokio::time::sleep(wait).await;
        }
        if failures >= threshold {
            tracing::info!(
                endpoint = self.endpoint.name,
                "notifications are taken again"
            );
        }
    }

    async fn try_once(&self, event: &Bytes) -> Result<(), String> {
        let Endpoint {
            url,
            headers,
            timeout,
            ..
        } = &*self.endpoint;
        let body = [b"{\"events\":[", event.as_ref(), b"]}"].concat();
        let request = self.client.post(&url.0).header(CONTENT_TYPE, MEDIA_TYPE);
        let request = request.headers(headers.clone()).timeout(*timeout);
        let answer = request.body(body).send().await.map_err(|error| {
            self.count("Errors");
            // Without the URL, which may hold credentials.
            model::error::chain(&error.without_url())
        })?;
        let status = answer.status();
        counter!(STATUSES, "code" => status.to_string(), "endpoint" => self.endpoint.name.clone())
            .increment(1);
        if status.is_success() {
            self.count("Successes");
            return Ok(());
        }
        self.count("Failures");
        Err(match redirect_origin(&answer) {
            Some(origin) => format!(
                "answered {status} to {origin}: events are sent only to the server that the endpoint's URL names"
            ),
            None => format!("answered {status}"),
        })
    }

    fn count(&self, kind: &'static str) {
        let endpoint = self.endpoint.name.clone();
        counter!(EVENTS, "type" => kind, "endpoint" => endpoint).increment(1);
    }

    /// Works on the journal where blocking does no harm.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Journal) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let journal = Arc::clone(&self.journal);
        let done = tokio::task::spawn_blocking(move || {
            let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
            let result = work(&mut journal);
            (result, journal.waiting())
        });
        let (result, waiting) = done.await.map_err(io::Error::other)?;
        #[expect(clippy::cast_precision_loss, reason = "bounded far below 2^53")]
        self.pending.set(waiting as f64);
        result
    }
}

/// The server that a redirect names; the rest of its URL may hold credentials.
fn redirect_origin(answer: &reqwest::Response) -> Option<String> {
    let location = answer.headers().get(LOCATION)?.to_str().ok()?;
    let target = answer.url().join(location).ok()?;
    Some(target.origin().ascii_serialization())
}
