//! Writes beside a replacement: which were acknowledged, and whether they are there afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use etcd::{EtcdAddress, EtcdCluster};
use futures_util::stream::{self, StreamExt as _};

/// 200 writes a second.
const PACE: Duration = Duration::from_millis(5);
/// A client gives up on a member that hangs.
const PATIENCE: Duration = Duration::from_secs(1);
const READERS: usize = 16;

/// A running load.
pub(crate) struct Load {
    cluster: Arc<EtcdCluster>,
    is_over: Arc<AtomicBool>,
    writer: tokio::task::JoinHandle<LoadReport>,
}

/// Writes of a load.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadReport {
    pub(crate) acknowledged: Vec<u64>,
    /// Longest time without an acknowledged write.
    pub(crate) longest_pause: Duration,
}

impl Load {
    /// Starts writing by any of `addresses`.
    pub(crate) fn start(cluster: EtcdCluster, addresses: Vec<EtcdAddress>) -> Self {
        let (cluster, is_over) = (Arc::new(cluster), Arc::new(AtomicBool::new(false)));
        let writer = tokio::spawn(write(Arc::clone(&cluster), addresses, Arc::clone(&is_over)));
        Self {
            cluster,
            is_over,
            writer,
        }
    }

    /// Ends it, and checks that every acknowledged write is there.
    pub(crate) async fn finish(self) -> LoadReport {
        self.is_over.store(true, Ordering::Relaxed);
        let report = self.writer.await.unwrap();
        let view = self.cluster.observe().await.unwrap();
        let leader = self.cluster.leader(&view).unwrap();
        let lost: Vec<u64> = stream::iter(report.acknowledged.clone())
            .map(|number| {
                let leader = leader.clone();
                async move {
                    let (_, found) = leader.get(key(number).as_bytes()).await.unwrap();
                    let is_there =
                        found.is_some_and(|it| it.value == number.to_string().as_bytes());
                    (!is_there).then_some(number)
                }
            })
            .buffer_unordered(READERS)
            .filter_map(std::future::ready)
            .collect()
            .await;
        assert_eq!(lost, [0; 0], "acknowledged writes are lost");
        report
    }
}

async fn write(
    cluster: Arc<EtcdCluster>,
    addresses: Vec<EtcdAddress>,
    is_over: Arc<AtomicBool>,
) -> LoadReport {
    let mut report = LoadReport::default();
    let mut pace = tokio::time::interval(PACE);
    let (mut number, mut place, mut last) = (0_u64, 0, Instant::now());
    while !is_over.load(Ordering::Relaxed) {
        pace.tick().await;
        let endpoint = cluster
            .endpoint(&addresses[place % addresses.len()])
            .unwrap();
        let (key, value) = (key(number), number.to_string());
        let put = endpoint.put(key.as_bytes(), value.as_bytes());
        match tokio::time::timeout(PATIENCE, put).await {
            Ok(Ok(_)) => {
                report.longest_pause = report.longest_pause.max(last.elapsed());
                last = Instant::now();
                report.acknowledged.push(number);
            }
            // Another member; the write may have been made or not.
            Ok(Err(_)) | Err(_) => place += 1,
        }
        number += 1;
    }
    report
}

fn key(number: u64) -> String {
    format!("/load/{number:08}")
}
