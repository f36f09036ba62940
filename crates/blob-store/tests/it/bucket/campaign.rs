//! Fault campaign of the bucket store: any one request fails, before it has an effect or after.

use std::sync::Arc;
use std::sync::Mutex;

use blob_store::BucketStore;
use futures_util::{FutureExt as _, StreamExt as _, stream};

use super::memory::{Fault, Memory};
use crate::campaign::{again, change, seen};

/// Small enough that a large blob is a multipart upload. Units: bytes.
const PART_BYTES: u64 = 40_000;
/// Concurrent campaigns, which mostly wait: for retries of clients, and for marks of collections.
const AT_ONCE: usize = 64;

async fn open(memory: &Arc<Memory>) -> BucketStore {
    again(async || BucketStore::open(Arc::clone(memory) as _, "", PART_BYTES).await).await
}

/// The visible content after all changes, by the store that met the fault and by a new one; and the number of requests
/// of the changes.
async fn run(memory: &Arc<Memory>) -> ([String; 2], usize) {
    let store = open(memory).await;
    change(&store).await;
    memory.heal();
    let requests = memory.requests();
    let found = [seen(&store).await, seen(&open(memory).await).await];
    (found, requests)
}

/// Returns the number of met faults.
async fn campaign(step: usize) -> usize {
    let calm = Memory::with_fault(None);
    let ([expected, again], requests) = run(&calm).await;
    assert_eq!(expected, again);
    let (met, wrong) = (Mutex::new(0), Mutex::new(Vec::new()));
    let faults = (0..requests)
        .step_by(step)
        .flat_map(|request| [false, true].map(|is_done| Fault { request, is_done }));
    let runs = stream::iter(faults).map(async |fault| {
        let memory = Memory::with_fault(Some(fault));
        let outcome = std::panic::AssertUnwindSafe(run(&memory)).catch_unwind();
        let outcome = outcome.await;
        let Some(request) = memory.met.lock().unwrap().take() else {
            return;
        };
        *met.lock().unwrap() += 1;
        match outcome {
            Ok((found, _)) if found.iter().all(|it| *it == expected) => {}
            found => wrong
                .lock()
                .unwrap()
                .push(format!("{fault:?}, {request}: {found:?}")),
        }
    });
    runs.buffer_unordered(AT_ONCE).collect::<()>().await;
    let wrong = wrong.into_inner().unwrap();
    assert!(
        wrong.is_empty(),
        "instead of {expected}\n{}",
        wrong.join("\n")
    );
    met.into_inner().unwrap()
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_after_any_failed_request() {
    assert!(campaign(200).await > 0);
}

#[tokio::test]
#[ignore = "every request of the bucket store; the sample runs always"]
async fn nothing_acknowledged_is_lost_whichever_request_fails_once() {
    let met = campaign(1).await;
    println!("{met} faults");
    assert!(met > 100);
}
