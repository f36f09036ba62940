//! Fault campaign of the file store: each file system call fails once.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cluster_files::{FileQuotas, FileStore};
use faults::{Campaign, DONE, FOLDER};
use model::Error;
use model::ids::ClusterId;
use oci::Digest;
use uuid::Uuid;

/// Attempts of each change.
const ATTEMPTS: usize = 5;
/// Larger than the buffer of an upload. Units: bytes.
const LOGS: usize = 200_000;
const ONE: ClusterId = ClusterId(Uuid::from_u128(1));
const OTHER: ClusterId = ClusterId(Uuid::from_u128(2));

/// Retries like a client after 500 or 503.
async fn retry<T>(work: impl AsyncFn() -> Result<T, Error>) -> T {
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        match work().await {
            Ok(done) => return done,
            Err(error @ (Error::Internal { .. } | Error::Unavailable { .. })) => {
                last = error.chain();
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("no recovery: {last}");
}

async fn open(folder: &Path) -> FileStore {
    let quotas = FileQuotas {
        cluster_bytes: 3 * LOGS as u64,
        owner_bytes: u64::MAX,
        total_bytes: 8 * LOGS as u64,
    };
    retry(async || FileStore::open_within(folder.join("deep/work"), quotas).await).await
}

/// Content of an object; none if it does not exist.
async fn read(store: &FileStore, cluster: ClusterId, name: &str) -> Option<Vec<u8>> {
    match store.get(cluster, name).await {
        Ok(object) => Some(object.bytes().await.unwrap()),
        Err(Error::NotFound { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Puts an object; asserts after each attempt that it has the old content or the new one.
async fn put(
    store: &FileStore,
    cluster: ClusterId,
    name: &str,
    content: &[u8],
    how: impl AsyncFn() -> Result<(), Error>,
) {
    let before = read(store, cluster, name).await;
    retry(async || {
        let outcome = how().await;
        let found = read(store, cluster, name).await;
        let is_atomic = found.as_deref() == Some(content) || outcome.is_err() && found == before;
        assert!(is_atomic, "{name} is incomplete");
        outcome
    })
    .await;
}

async fn change(store: &FileStore) {
    for (name, content) in [
        ("kubeconfig", "first"),
        ("kubeconfig", "second"),
        ("discovery.ign", "{}"),
    ] {
        let content = content.as_bytes();
        let how = async || store.put(ONE, name, content).await;
        put(store, ONE, name, content, how).await;
    }
    for name in [
        "manifests/openshift/a.yaml",
        "manifests/openshift/b.yaml",
        "generated/manifests/c.yaml",
    ] {
        let how = async || store.put_within(ONE, name, b"kind: X".to_vec()).await;
        put(store, ONE, name, b"kind: X", how).await;
    }
    for (cluster, byte) in [(ONE, 1), (ONE, 2), (OTHER, 3)] {
        let (name, logs) = ("logs/controller/logs.tar.gz", vec![byte; LOGS]);
        let limit = LOGS as u64;
        let how = async || {
            let length = store.put_stream(cluster, name, &logs[..], limit).await?;
            assert_eq!(length, limit);
            Ok(())
        };
        put(store, cluster, name, &logs, how).await;
    }
    retry(async || store.delete(ONE, "manifests/openshift/b.yaml").await).await;
    retry(async || {
        store
            .delete_cluster_except(ONE, &["manifests", "logs", "kubeconfig"])
            .await
    })
    .await;
    retry(async || store.delete_cluster(OTHER).await).await;
    // The quotas count neither failed nor deleted uploads.
    let logs = vec![4; 2 * LOGS];
    let how = async || {
        let limit = logs.len() as u64;
        let stored = store.put_stream(OTHER, "logs/host/logs.tar.gz", &logs[..], limit);
        stored.await.map(drop)
    };
    put(store, OTHER, "logs/host/logs.tar.gz", &logs, how).await;
}

/// The campaign runs it in its own process; without a folder it is an ordinary test.
#[tokio::test]
async fn driver() {
    let given = std::env::var_os(FOLDER).map(PathBuf::from);
    let own = tempfile::tempdir().unwrap();
    let folder = given.as_deref().unwrap_or(own.path());
    change(&open(folder).await).await;
    if given.is_some() {
        println!("{DONE}");
        // Like a crash.
        std::process::abort();
    }
}

/// Objects after a restart.
fn state(folder: &Path) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = open(folder).await;
        let mut lines = String::new();
        for cluster in [ONE, OTHER] {
            for name in store.list(cluster, "").await.unwrap() {
                let content = read(&store, cluster, name.as_str()).await.unwrap();
                let digest = Digest::sha256(&content);
                writeln!(lines, "{cluster} {} {digest}", name.as_str()).unwrap();
            }
        }
        lines
    })
}

fn campaign(sample: Option<usize>) -> Campaign<impl Fn(&Path) -> String> {
    Campaign {
        driver: "campaign::driver",
        state,
        sample,
        ends_by_abort: true,
    }
}

#[test]
fn no_file_is_lost_in_a_sample_of_faults() {
    assert!(campaign(Some(3)).run().unwrap() > 0);
}

#[test]
#[ignore = "every fault of the files of clusters; the sample runs always"]
fn no_file_is_lost_in_any_fault() {
    let hits = campaign(None).run().unwrap();
    println!("{hits} faults");
    assert!(hits > 100);
}

#[test]
fn folders_are_durable_in_their_parents() {
    let none: [PathBuf; 0] = [];
    assert_eq!(campaign(None).unsynced_folders().unwrap(), none);
}
