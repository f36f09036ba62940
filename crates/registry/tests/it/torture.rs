//! The program killed again and again under clients that push and delete, while garbage is collected without grace.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use oci::Digest;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use reqwest::header::LOCATION;
use reqwest::{Client, StatusCode};
use testkit::ports::free_port;

use crate::process::{Process, http};
use crate::s3::S3;
use crate::server::{eventually, header, manifest};

const CLIENTS: u64 = 6;
const SETTINGS: &[(&str, &str)] = &[("REGISTRY_STORAGE_MAINTENANCE_GC_GRACE", "0s")];
/// Units: bytes. On both sides of the bound for journalled blobs, and of one batch.
const SIZES: [usize; 4] = [100, 5_000, 40_000, 300_000];

/// Acknowledged content that was not deleted since: repository and tag, manifest, layer.
type Promised = HashMap<(String, String), (String, Digest)>;

#[derive(Default)]
struct Ledger {
    promised: Mutex<Promised>,
    acknowledged: AtomicUsize,
}

/// One image of two blobs, perhaps deleted again. Errors: the server has ended.
async fn push(
    http: &Client,
    base: &str,
    random: &mut StdRng,
    ledger: &Ledger,
) -> reqwest::Result<()> {
    let name = format!("r{}", random.random_range(0..3));
    let tag = format!("t{:016x}", random.random::<u64>());
    let mut layer = vec![0; SIZES[random.random_range(0..SIZES.len())]];
    random.fill(&mut layer[..]);
    let config = push_blob(http, base, &name, b"{}").await?;
    let digest = push_blob(http, base, &name, &layer).await?;
    let body = manifest(&config, &[(&digest, layer.len())]);
    let url = |target: &str| format!("{base}/v2/{name}/manifests/{target}");
    let put = http.put(url(&tag)).body(body.clone()).send().await?;
    if put.status() != StatusCode::CREATED {
        // A blob was collected before its manifest came, as it may without grace; nothing was promised.
        assert_eq!(put.status(), StatusCode::BAD_REQUEST);
        return Ok(());
    }
    ledger.acknowledged.fetch_add(1, Ordering::Relaxed);
    if random.random_bool(0.3) {
        let digest = Digest::sha256(body.as_bytes()).to_string();
        http.delete(url(&digest)).send().await?;
    } else {
        let mut promised = ledger.promised.lock().unwrap();
        promised.insert((name, tag), (body, digest));
    }
    Ok(())
}

async fn push_blob(
    http: &Client,
    base: &str,
    name: &str,
    content: &[u8],
) -> reqwest::Result<Digest> {
    let digest = Digest::sha256(content);
    let start = http.post(format!("{base}/v2/{name}/blobs/uploads/"));
    let location = header(&start.send().await?, &LOCATION);
    let patch = http.patch(&location).body(content.to_vec()).send().await?;
    assert_eq!(patch.status(), StatusCode::ACCEPTED);
    let put = http
        .put(format!("{location}?digest={digest}"))
        .send()
        .await?;
    assert_eq!(put.status(), StatusCode::CREATED);
    Ok(digest)
}

/// Everything that was promised is there, byte for byte.
async fn check(http: &Client, base: &str, ledger: &Ledger) {
    let promised = ledger.promised.lock().unwrap().clone();
    for ((name, tag), (body, layer)) in promised {
        let url = format!("{base}/v2/{name}/manifests/{tag}");
        let found = http.get(url).send().await.unwrap();
        assert_eq!(found.status(), StatusCode::OK, "{name}:{tag}");
        assert_eq!(found.text().await.unwrap(), body);
        let url = format!("{base}/v2/{name}/blobs/{layer}");
        let found = http.get(url).send().await.unwrap();
        assert_eq!(Digest::sha256(&found.bytes().await.unwrap()), layer);
    }
}

/// Until the server at `base` ends. After a kill in the middle of a collection, pushes to a bucket wait longer than the
/// client does.
async fn work(http: Client, base: String, seed: u64, ledger: Arc<Ledger>) {
    let mut random = StdRng::seed_from_u64(seed);
    let is_up = |pushed: reqwest::Result<()>| pushed.err().is_none_or(|error| error.is_timeout());
    while is_up(push(&http, &base, &mut random, &ledger).await) {}
}

async fn collect(http: Client, base: String) {
    let url = format!("{base}/v2/_atoll/gc");
    // The headers come before the collection ends.
    while let Ok(collecting) = http.post(&url).send().await {
        collecting.bytes().await.ok();
    }
}

/// The settings may name a bucket, which is not killed.
async fn torture(rounds: u64, settings: &[(&str, &str)]) {
    let root = tempfile::tempdir().unwrap();
    let http = http();
    let ledger = Arc::new(Ledger::default());
    let seed = rand::random();
    let mut random = StdRng::seed_from_u64(seed);
    for round in 0..rounds {
        let process = Process::start(root.path(), settings).await;
        let base = process.base.clone();
        check(&http, &base, &ledger).await;
        let mut clients = tokio::task::JoinSet::new();
        for client in 0..CLIENTS {
            let seed = seed ^ (round * CLIENTS + client);
            clients.spawn(work(http.clone(), base.clone(), seed, Arc::clone(&ledger)));
        }
        clients.spawn(collect(http.clone(), base.clone()));
        let enough = ledger.acknowledged.load(Ordering::Relaxed) + random.random_range(1..60);
        eventually(async || ledger.acknowledged.load(Ordering::Relaxed) >= enough).await;
        drop(process);
        while let Some(ended) = clients.join_next().await {
            ended.unwrap();
        }
        let index = root.path().join(".atoll/index.redb");
        if index.exists() && random.random_bool(0.2) {
            // Nothing depends on it, also where it is made anew and that is cut off.
            std::fs::remove_file(&index).unwrap();
            let process = Process::spawn(root.path(), free_port().unwrap(), settings);
            eventually(async || index.exists()).await;
            drop(process);
        }
    }
    let process = Process::start(root.path(), settings).await;
    check(&http, &process.base, &ledger).await;
    let promised = ledger.promised.lock().unwrap().len();
    assert!(promised > 0, "nothing was pushed");
}

async fn torture_on_bucket(rounds: u64) {
    let s3 = S3::start().await;
    let settings = s3.variables();
    let settings = settings.iter().map(|(name, value)| (*name, &**value));
    let settings: Vec<_> = settings.chain(SETTINGS.iter().copied()).collect();
    torture(rounds, &settings).await;
}

#[tokio::test]
async fn nothing_is_lost_by_three_kills() {
    torture(3, SETTINGS).await;
}

#[tokio::test]
#[ignore = "forty rounds; run by cargo xtask test --full"]
async fn nothing_is_lost_by_forty_kills() {
    torture(40, SETTINGS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_in_a_bucket_is_lost_by_three_kills() {
    torture_on_bucket(3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "forty rounds; run by cargo xtask test --full"]
async fn nothing_in_a_bucket_is_lost_by_forty_kills() {
    torture_on_bucket(40).await;
}
