//! The progress of a run, published in the cluster for the web UI and other readers.

use std::convert::Infallible;
use std::future;
use std::time::Duration;

use kubernetes::KubernetesCluster;
use model::Error;
use model::node_replacement::ReplacementReport;
use replacement::{OpenReplacement, ReplacementNews, ReplacementReporter};
use service::clock;
use tokio::sync::watch;

use crate::terminal;

/// Shortest pause between two reports.
const INTERVAL: Duration = Duration::from_secs(1);
/// Longest time of the last report: the API may be away.
const LAST: Duration = Duration::from_secs(10);

/// Makes reports of news.
pub(super) struct ProgressPublisher {
    reporter: ReplacementReporter,
    reports: watch::Sender<ReplacementReport>,
}

impl ProgressPublisher {
    pub(super) fn new(replacement: &OpenReplacement) -> Self {
        let reporter = ReplacementReporter::new(&replacement.id, replacement.progress());
        let (reports, _) = watch::channel(reporter.report(clock::now()));
        Self { reporter, reports }
    }

    pub(super) fn hear(&mut self, news: ReplacementNews<'_>) {
        let now = clock::now();
        if self.reporter.hear(news, now) {
            self.reports.send_replace(self.reporter.report(now));
        }
    }

    pub(super) fn reports(&self) -> watch::Receiver<ReplacementReport> {
        self.reports.subscribe()
    }
}

/// Publishes the newest report again and again, as long as it is polled. A failure harms no run: the next report is on
/// its way.
pub(super) async fn publish_changes(
    cluster: &KubernetesCluster,
    mut reports: watch::Receiver<ReplacementReport>,
) -> Infallible {
    loop {
        let report = reports.borrow_and_update().clone();
        if cluster.publish_replacement(&report).await.is_err() {
            reports.mark_changed();
        }
        tokio::time::sleep(INTERVAL).await;
        if reports.changed().await.is_err() {
            return future::pending().await;
        }
    }
}

/// Publishes the report of a run's end.
pub(super) async fn publish_last(
    cluster: &KubernetesCluster,
    reports: &watch::Receiver<ReplacementReport>,
) {
    let report = reports.borrow().clone();
    let published = tokio::time::timeout(LAST, cluster.publish_replacement(&report));
    let published = published.await.unwrap_or_else(|_| {
        let reason = format!("no answer within {} s", LAST.as_secs());
        Err(Error::unavailable(
            "the cluster's API",
            std::io::Error::other(reason),
        ))
    });
    if let Err(error) = published {
        terminal::notice(&format!(
            "the cluster shows an earlier progress of the replacement: {error}"
        ));
    }
}
