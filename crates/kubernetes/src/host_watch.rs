//! The watch of hosts: names of records that are new, changed or deleted.

use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use kube::api::{WatchEvent, WatchParams};
use kube::core::DynamicObject;
use model::Error;
use tokio::sync::mpsc::Sender;
use tokio::time::Instant;

use super::connect::{KubernetesCluster, refused};
use super::resources::HOSTS;

/// Duration of one request, below the timeout of a read: a connection that is dead is noticed within that time.
const WATCH: Duration = Duration::from_secs(25);
/// Pause after a failure, and least duration of a request.
const PAUSE: Duration = Duration::from_secs(2);
/// Status of a version that the server has forgotten.
const EXPIRED: u16 = 410;

/// A host with a changed record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedHost {
    pub name: String,
    /// Version of the record at the API.
    pub version: String,
}

/// The end of one request.
enum WatchEnd {
    /// Its time is over.
    Ended,
    /// The version is not known any more.
    Expired,
    /// The receiver was dropped.
    Closed,
}

impl KubernetesCluster {
    /// Sends all hosts, their changes from then on, and all again after each `resync`, until the receiver is dropped.
    /// Failures are logged, and the watch continues.
    pub async fn watch_hosts(&self, sender: Sender<WatchedHost>, resync: Duration) {
        // The empty version: all records first.
        let mut version = String::new();
        let mut listed = Instant::now();
        let mut is_failing = false;
        loop {
            let begun = Instant::now();
            if listed.elapsed() >= resync {
                version.clear();
            }
            if version.is_empty() {
                listed = Instant::now();
            }
            match self.watch_once(&mut version, &sender).await {
                Ok(WatchEnd::Closed) => return,
                Ok(WatchEnd::Expired) => version.clear(),
                // A server that stops ends all of them.
                Ok(WatchEnd::Ended) => tokio::time::sleep_until(begun + PAUSE).await,
                Err(error) => {
                    if !is_failing {
                        tracing::warn!(error = %error.chain(), "the watch of hosts failed, retrying");
                    }
                    is_failing = true;
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            }
            if is_failing {
                tracing::info!("the watch of hosts works again");
            }
            is_failing = false;
        }
    }

    async fn watch_once(
        &self,
        version: &mut String,
        sender: &Sender<WatchedHost>,
    ) -> Result<WatchEnd, Error> {
        let params = WatchParams {
            timeout: u32::try_from(WATCH.as_secs()).ok(),
            bookmarks: true,
            ..WatchParams::default()
        };
        let events = match self.api(&HOSTS).watch(&params, version).await {
            Ok(events) => events,
            Err(error) if is_expired(&error) => return Ok(WatchEnd::Expired),
            Err(error) => return Err(refused(&HOSTS, error)),
        };
        let mut events = pin!(events);
        while let Some(event) = events.next().await {
            let record = match event {
                Ok(WatchEvent::Bookmark(bookmark)) => {
                    *version = bookmark.metadata.resource_version;
                    continue;
                }
                Ok(
                    WatchEvent::Added(record)
                    | WatchEvent::Modified(record)
                    | WatchEvent::Deleted(record),
                ) => record,
                Ok(WatchEvent::Error(status)) if status.code == EXPIRED => {
                    return Ok(WatchEnd::Expired);
                }
                Ok(WatchEvent::Error(status)) => {
                    return Err(refused(&HOSTS, kube::Error::Api(status)));
                }
                Err(error) => return Err(refused(&HOSTS, error)),
            };
            let Some(host) = watched(record) else {
                continue;
            };
            host.version.clone_into(version);
            if sender.send(host).await.is_err() {
                return Ok(WatchEnd::Closed);
            }
        }
        Ok(WatchEnd::Ended)
    }
}

fn is_expired(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == EXPIRED)
}

fn watched(record: DynamicObject) -> Option<WatchedHost> {
    Some(WatchedHost {
        name: record.metadata.name?,
        version: record.metadata.resource_version?,
    })
}
