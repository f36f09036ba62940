//! Scrub: all content is read at intervals and compared with its digest, at a bounded rate.
//!
//! Its position is saved: a restart resumes there. Damaged content is in quarantine before it is reported.

use std::future::pending;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use blob_store::{ContentStore as _, StoreError, StoredContent};
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use model::time::Timestamp;
use oci::{Algorithm, Digest, Hasher, Repository};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::settings::Settings;
use crate::size::Size;
use crate::storage::Store;

/// Contents that are listed at once.
const PAGE: usize = 256;
/// Units: bytes. Cost of opening, so that the rate bounds small contents too.
const OPENING_BYTES: u64 = 16 * 1024;
/// Interval of saving the position: a crash reads as much twice.
const KEEP: Duration = Duration::from_secs(1);
/// Damaged contents that are reported by name; beyond that, they are only counted.
const FINDINGS_LIMIT: usize = 1000;
/// Bound of the credit for idle time.
const LAG: Duration = Duration::from_secs(1);
/// After a failure of the store.
const BREAK: Duration = Duration::from_secs(30);
const RECORD: &str = "scrub";

/// Bytes that were read and compared.
const BYTES_METRIC: &str = "atoll_registry_scrub_bytes_total";
/// Contents that the last scrub found damaged or gone.
const DAMAGED_METRIC: &str = "atoll_registry_scrub_damaged";
/// Contents that the last scrub could not read, for reasons that may pass.
const UNREAD_METRIC: &str = "atoll_registry_scrub_unread";
/// When the last scrub ended. Units: seconds since 1970.
const ENDED_METRIC: &str = "atoll_registry_scrub_last_end_timestamp_seconds";

/// The scrub and its report.
#[derive(Debug, Default)]
pub(crate) struct Scrub {
    report: Mutex<Report>,
    asked: Notify,
}

/// Findings of the last scrub, or of the running one so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) is_running: bool,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    /// Everything up to there was compared: digests are spread evenly, so it is the progress.
    position: Option<Digest>,
    contents: u64,
    /// Units: bytes.
    bytes: u64,
    damaged: u64,
    /// Contents that are linked, and gone or in quarantine.
    missing: u64,
    /// Contents that could not be read, for reasons that may pass.
    unread: u64,
    findings: Vec<Finding>,
}

/// Damaged or missing content: not served until it is pushed again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Finding {
    digest: Digest,
    #[serde(rename = "what")]
    kind: FindingKind,
    repositories: Vec<Repository>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FindingKind {
    Damaged,
    Missing,
}

impl Scrub {
    /// Starts a scrub, unless one runs.
    pub(crate) fn ask(&self) {
        self.report().begin();
        self.asked.notify_one();
    }

    /// Waits until a scrub is asked for or due; one that runs already continues.
    async fn begun(&self, interval: Option<Duration>) {
        while !self.report().is_running {
            let ended_at = self.report().ended_at;
            tokio::select! {
                // It has begun then, unless this is the wake-up of one that has ended since.
                () = self.asked.notified() => {}
                () = due(interval, ended_at) => self.report().begin(),
            }
        }
    }

    /// The report now.
    pub(crate) fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads the saved report, before the first request.
    pub(crate) async fn load(&self, store: &Store) {
        match store.record(RECORD).await {
            // A record that cannot be read was cut by a crash: the scrub starts again.
            Ok(record) => {
                let kept = record.and_then(|record| serde_json::from_slice(&record).ok());
                *self.report() = kept.unwrap_or_default();
            }
            Err(error) => tracing::warn!(%error, "position of the scrub not loaded"),
        }
    }

    async fn keep(&self, store: &Store) {
        let record = serde_json::to_vec(&*self.report()).expect("a report is plain data");
        if let Err(error) = store.put_record(RECORD, Bytes::from(record)).await {
            let error = model::error::chain(&error);
            tracing::warn!(error, "position of the scrub not saved");
        }
    }
}

impl Report {
    fn begin(&mut self) {
        if !self.is_running {
            *self = Self {
                is_running: true,
                started_at: Some(service::clock::now()),
                ..Self::default()
            };
        }
    }

    /// Units: percent.
    pub(crate) fn progress(&self) -> u8 {
        match &self.position {
            _ if !self.is_running => 100,
            None => 0,
            Some(position) => {
                let first = u32::from_str_radix(&position.hex()[..4], 16).unwrap_or_default();
                u8::try_from(first * 100 / 0x1_0000).unwrap_or(100)
            }
        }
    }

    fn find(&mut self, content: &Digest, kind: FindingKind, repositories: Vec<Repository>) {
        match kind {
            FindingKind::Damaged => self.damaged += 1,
            FindingKind::Missing => self.missing += 1,
        }
        if self.findings.len() < FINDINGS_LIMIT {
            let digest = content.clone();
            self.findings.push(Finding {
                digest,
                kind,
                repositories,
            });
        }
    }
}

/// Scrubs after each interval and when asked, for ever.
pub(crate) async fn run(scrub: &Scrub, store: &Store, settings: &Settings) {
    let interval = settings
        .registry_storage_maintenance_scrub_enabled
        .then_some(settings.registry_storage_maintenance_scrub_interval);
    if scrub.report().started_at.is_none() {
        // The first one comes an interval after the first start.
        scrub.report().ended_at = Some(service::clock::now());
        scrub.keep(store).await;
    }
    loop {
        scrub.begun(interval).await;
        let rate = settings.registry_storage_maintenance_scrub_rate;
        if let Err(error) = pass(scrub, store, rate).await {
            let error = model::error::chain(&error);
            tracing::error!(error, "scrub interrupted, resumes after a pause");
            tokio::time::sleep(BREAK).await;
        }
    }
}

/// Until it is time again.
async fn due(interval: Option<Duration>, ended_at: Option<Timestamp>) {
    let Some(interval) = interval else {
        return pending().await;
    };
    let since = ended_at.map_or(interval, |ended_at| {
        let since = service::clock::now() - ended_at;
        // A clock that was set back begins the interval anew.
        since.to_std().unwrap_or_default()
    });
    // Zero would never let anything else run.
    let wait = interval.saturating_sub(since).max(Duration::from_secs(1));
    tokio::time::sleep(wait).await;
}

/// From where it is to the end.
async fn pass(scrub: &Scrub, store: &Store, rate: Size) -> Result<(), StoreError> {
    let mut pace = Pace::new(rate);
    let mut kept = Instant::now();
    loop {
        let after = scrub.report().position.clone();
        let page = store.contents(after.as_ref(), PAGE).await?;
        if page.is_empty() {
            break;
        }
        for content in page {
            examine(scrub, store, &content, &mut pace).await?;
            scrub.report().position = Some(content.digest);
            if kept.elapsed() >= KEEP {
                kept = Instant::now();
                scrub.keep(store).await;
            }
        }
    }
    end(scrub, store).await;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "nobody has so many")]
fn show(report: &Report) {
    metrics::gauge!(DAMAGED_METRIC).set((report.damaged + report.missing) as f64);
    metrics::gauge!(UNREAD_METRIC).set(report.unread as f64);
    if let Some(ended_at) = report.ended_at {
        metrics::gauge!(ENDED_METRIC).set(ended_at.timestamp() as f64);
    }
}

async fn end(scrub: &Scrub, store: &Store) {
    let report = {
        let mut report = scrub.report();
        report.is_running = false;
        report.position = None;
        report.ended_at = Some(service::clock::now());
        report.clone()
    };
    scrub.keep(store).await;
    show(&report);
    let Report {
        contents,
        bytes,
        damaged,
        missing,
        unread,
        ..
    } = report;
    if damaged + missing + unread == 0 {
        tracing::info!(
            contents,
            bytes,
            "scrub ended: everything is as it should be"
        );
    } else {
        tracing::error!(
            contents,
            bytes,
            damaged,
            missing,
            unread,
            "scrub ended: see GET /v2/_atoll/scrub"
        );
    }
}

/// Compares content with its digest. Errors: the store cannot be asked.
async fn examine(
    scrub: &Scrub,
    store: &Store,
    content: &StoredContent,
    pace: &mut Pace,
) -> Result<(), StoreError> {
    let StoredContent { digest, size } = content;
    let (kind, bytes) = match size {
        None => (Some(FindingKind::Missing), 0),
        Some(_) => match hashed(store, digest, pace).await {
            Ok((actual, bytes)) => ((actual != *digest).then_some(FindingKind::Damaged), bytes),
            // Collected meanwhile.
            Err(StoreError::UnknownBlob(_)) => return Ok(()),
            // Unreadable counts as damaged; the store determines the cause.
            Err(StoreError::Io { .. }) => (Some(FindingKind::Damaged), 0),
            Err(error) => return Err(error),
        },
    };
    {
        let mut report = scrub.report();
        report.contents += 1;
        report.bytes += bytes;
    }
    let Some(kind) = kind else {
        return Ok(());
    };
    let is_taken = match store.quarantine(digest).await {
        Ok(is_taken) => is_taken,
        Err(error) => {
            let error = model::error::chain(&error);
            tracing::error!(%digest, error, "content could not be examined");
            scrub.report().unread += 1;
            return Ok(());
        }
    };
    if is_taken || kind == FindingKind::Missing {
        let repositories = store.holders(digest).await?;
        scrub.report().find(digest, kind, repositories);
    }
    Ok(())
}

async fn hashed(
    store: &Store,
    digest: &Digest,
    pace: &mut Pace,
) -> Result<(Digest, u64), StoreError> {
    let failed = |source| StoreError::Io {
        doing: "reading content",
        source,
    };
    pace.pass(OPENING_BYTES).await;
    let mut pieces = store.open_content(digest).await?;
    let (mut hasher, mut bytes) = (Hasher::new(Algorithm::Sha256), 0);
    while let Some(piece) = pieces.try_next().await.map_err(failed)? {
        let length = piece.len() as u64;
        bytes += length;
        metrics::counter!(BYTES_METRIC).increment(length);
        hasher = tokio::task::spawn_blocking(move || {
            hasher.update(&piece);
            hasher
        })
        .await?;
        pace.pass(length).await;
    }
    Ok((hasher.finish(), bytes))
}

/// When bytes may pass, so that no more do than may.
struct Pace {
    /// Units: bytes per second; 0 for as many as there are.
    rate: u64,
    /// When all that has passed would have passed at that rate.
    due: Instant,
}

impl Pace {
    fn new(rate: Size) -> Self {
        Self {
            rate: rate.0,
            due: Instant::now(),
        }
    }

    async fn pass(&mut self, bytes: u64) {
        let due = self.after(bytes, Instant::now());
        tokio::time::sleep_until(due.into()).await;
    }

    fn after(&mut self, bytes: u64, now: Instant) -> Instant {
        let micros = bytes.saturating_mul(1_000_000).checked_div(self.rate);
        if let Some(micros) = micros {
            // It never catches up with more than this.
            self.due = self.due.max(now.checked_sub(LAG).unwrap_or(now));
            self.due += Duration::from_micros(micros);
        }
        self.due
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[test]
    fn no_more_passes_than_may() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let mut pace = Pace {
            rate: 1000,
            due: now,
        };
        assert_eq!(pace.after(500, now), now + second / 2);
        assert_eq!(pace.after(1500, now), now + 2 * second);
        let late = now + 100 * second;
        assert_eq!(
            pace.after(3000, late),
            late + 2 * second,
            "no burst after a break"
        );
        let mut unbounded = Pace { rate: 0, due: now };
        assert_eq!(unbounded.after(u64::MAX, late), now);
    }

    #[tokio::test]
    async fn a_request_at_the_end_of_a_scrub_begins_one_more_only() {
        let scrub = Scrub::default();
        scrub.ask();
        scrub.begun(None).await;
        scrub.report().is_running = false;
        let waiting = pin!(scrub.begun(None));
        assert!(futures_util::poll!(waiting).is_pending());
    }

    #[test]
    fn a_report_has_the_progress() {
        let mut report = Report::default();
        assert_eq!(report.progress(), 100);
        report.begin();
        assert_eq!(report.progress(), 0);
        report.position = format!("sha256:80{}", "0".repeat(62)).parse().ok();
        assert_eq!(report.progress(), 50);
        let kept = serde_json::to_vec(&report).unwrap();
        assert_eq!(serde_json::from_slice::<Report>(&kept).unwrap(), report);
        for n in 0..2 * FINDINGS_LIMIT {
            report.find(
                &Digest::sha256(&n.to_le_bytes()),
                FindingKind::Damaged,
                Vec::new(),
            );
        }
        assert_eq!(report.damaged, 2 * FINDINGS_LIMIT as u64);
        assert_eq!(report.findings.len(), FINDINGS_LIMIT);
    }
}
