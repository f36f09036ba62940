//! The registry while any one request of each operation to its bucket fails: by an error, a request to slow down, or half
//! an answer.

use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _, stream};
use oci::Digest;
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;

use super::S3;
use crate::server::{OCI_MANIFEST, Server, header, manifest};
use testkit::s3::{FAULTS, Faults, Wire};

/// Units: bytes. The first piece of the large blob has more than a part, so that it goes in parts.
const PIECES: [usize; 2] = [5_300_000, 100_000];
/// A request is sent again this often.
const ATTEMPTS: usize = 50;
const PAUSE: Duration = Duration::from_millis(50);
/// Requests between two faults of a long operation: more than the retries of one take.
const DISTANCE: usize = 25;
/// Runs wait for retries, and for the bucket's clock.
const AT_ONCE: usize = 6;

/// With its size in bytes.
type Layer<'a> = (&'a Digest, usize);

/// The registry, and the wire behind it.
struct World<'a> {
    server: &'a Server,
    wire: &'a Wire,
}

/// The reply to a request.
struct Answer {
    status: StatusCode,
    location: String,
    body: Vec<u8>,
}

/// All of an answer, unless it is the server's failure or half of one.
async fn answer(request: RequestBuilder) -> Result<Answer, String> {
    let response = request.send().await.map_err(|error| format!("{error:?}"))?;
    let (status, location) = (response.status(), header(&response, &LOCATION));
    let body = response.bytes().await;
    let body = body.map_err(|error| format!("{error:?}"))?.to_vec();
    if status.is_server_error() {
        return Err(format!("{status} {}", String::from_utf8_lossy(&body)));
    }
    Ok(Answer {
        status,
        location,
        body,
    })
}

impl World<'_> {
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.server.request(method, path)
    }

    /// One operation, as of a client that retries when it got no answer or one of the server's failure.
    async fn again<T>(&self, work: impl AsyncFn() -> Result<T, String>) -> T {
        self.wire.begin();
        let mut last = String::new();
        for _ in 0..ATTEMPTS {
            match work().await {
                Ok(done) => return done,
                Err(why) => last = why,
            }
            tokio::time::sleep(PAUSE).await;
        }
        panic!("no recovery: {last}");
    }

    async fn get(&self, path: &str) -> Answer {
        self.again(async || answer(self.request(Method::GET, path)).await)
            .await
    }

    /// Ends with one of `expected`.
    async fn send(&self, method: &Method, path: &str, expected: &[u16]) -> Answer {
        let sent = self.again(async || answer(self.request(method.clone(), path)).await);
        let sent = sent.await;
        let status = sent.status.as_u16();
        assert!(expected.contains(&status), "{method} {path}: {status}");
        sent
    }
}

/// An upload from its start to its end. One that the registry does not know any more is begun again.
async fn upload(world: &World<'_>, name: &str, pieces: &[Vec<u8>]) -> Result<Digest, String> {
    let digest = Digest::sha256(&pieces.concat());
    let path = format!("/v2/{name}/blobs/uploads/");
    let mut at = answer(world.request(Method::POST, &path)).await?;
    assert_eq!(at.status, StatusCode::ACCEPTED);
    for piece in pieces {
        let patch = world.request(Method::PATCH, &at.location);
        at = answer(patch.body(piece.clone())).await?;
        if at.status != StatusCode::ACCEPTED {
            return Err(format!("piece: {}", at.status));
        }
    }
    let end = world.request(Method::PUT, &at.location);
    let end = answer(end.query(&[("digest", digest.to_string())])).await?;
    match end.status {
        StatusCode::CREATED => Ok(digest),
        status => Err(format!("end: {status}")),
    }
}

/// Acknowledged content exists.
async fn push(world: &World<'_>, name: &str, pieces: &[Vec<u8>]) -> Digest {
    let digest = world
        .again(async || upload(world, name, pieces).await)
        .await;
    let found = world.get(&format!("/v2/{name}/blobs/{digest}")).await;
    assert_eq!(found.status, StatusCode::OK, "a blob is lost");
    assert!(found.body == pieces.concat(), "a blob is another");
    digest
}

/// A tagged image; its digest.
async fn tag(
    world: &World<'_>,
    name: &str,
    config: &Digest,
    tag: &str,
    layer: Layer<'_>,
) -> Digest {
    let body = manifest(config, &[layer]);
    let path = format!("/v2/{name}/manifests/{tag}");
    let put = world
        .again(async || {
            let put = world.request(Method::PUT, &path);
            answer(put.header(CONTENT_TYPE, OCI_MANIFEST).body(body.clone())).await
        })
        .await;
    assert_eq!(put.status, StatusCode::CREATED, "{path}");
    let found = world.get(&path).await;
    assert_eq!(found.status, StatusCode::OK, "{path} is lost");
    assert!(found.body == body.as_bytes(), "{path} is another");
    Digest::sha256(body.as_bytes())
}

/// Deleted content stays deleted. A retry may get 404.
async fn delete(world: &World<'_>, path: &str) {
    world.send(&Method::DELETE, path, &[202, 204, 404]).await;
    world.send(&Method::GET, path, &[404]).await;
}

/// A collection that fails says so in its body: its head was sent when it began.
async fn collect(world: &World<'_>) -> Result<(), String> {
    let done = answer(world.request(Method::POST, "/v2/_atoll/gc")).await?;
    let done: Value = serde_json::from_slice(&done.body).map_err(|error| error.to_string())?;
    match done["blobs"].as_u64() {
        Some(_) => Ok(()),
        None => Err(done.to_string()),
    }
}

/// Pushes, tags, deletes and collects; asserts that every acknowledged operation is durable despite the fault.
async fn change(world: &World<'_>) {
    let config = push(world, "team/app", &[b"{}".to_vec()]).await;
    let large = PIECES.map(|length| vec![7; length]);
    let large = &push(world, "team/app", &large).await;
    let image = (large, PIECES.iter().sum());
    let layer = push(world, "team/app", &[b"layer".to_vec()]).await;
    let garbage = push(world, "team/app", &[b"garbage".to_vec()]).await;
    tag(world, "team/app", &config, "kept", image).await;
    tag(world, "team/app", &config, "moved", image).await;
    let gone = tag(world, "team/app", &config, "gone", (&layer, 5)).await;
    tag(world, "team/app", &config, "moved", image).await;
    let mount = format!("/v2/other/blobs/uploads/?mount={large}&from=team/app");
    world
        .again(async || {
            let mounted = answer(world.request(Method::POST, &mount)).await?;
            let is_mounted = mounted.status == StatusCode::CREATED;
            is_mounted
                .then_some(())
                .ok_or_else(|| mounted.status.to_string())
        })
        .await;
    let config = push(world, "other", &[b"{}".to_vec()]).await;
    tag(world, "other", &config, "mounted", image).await;
    delete(world, "/v2/team/app/manifests/moved").await;
    delete(world, &format!("/v2/team/app/manifests/{gone}")).await;
    delete(world, &format!("/v2/team/app/blobs/{garbage}")).await;
    let open = world
        .send(&Method::POST, "/v2/team/app/blobs/uploads/", &[202])
        .await;
    world
        .send(&Method::DELETE, &open.location, &[204, 404])
        .await;
    world.again(async || collect(world).await).await;
    let last = push(world, "team/app", &[b"last".to_vec()]).await;
    tag(world, "team/app", &config, "last", (&last, 4)).await;
}

/// Everything that clients can see.
async fn seen(world: &World<'_>) -> String {
    let list = async |path: &str, field: &str| -> Vec<String> {
        let list: Value = serde_json::from_slice(&world.get(path).await.body).unwrap();
        serde_json::from_value(list[field].clone()).unwrap()
    };
    let mut lines = Vec::new();
    for name in list("/v2/_catalog", "repositories").await {
        for tag in list(&format!("/v2/{name}/tags/list"), "tags").await {
            let found = world.get(&format!("/v2/{name}/manifests/{tag}")).await;
            lines.push(format!("{name}:{tag} {}", Digest::sha256(&found.body)));
            let found: Value = serde_json::from_slice(&found.body).unwrap();
            let layers = found["layers"].as_array().unwrap().iter();
            for blob in layers.chain([&found["config"]]) {
                let digest = blob["digest"].as_str().unwrap();
                let found = world.get(&format!("/v2/{name}/blobs/{digest}")).await;
                assert_eq!(Digest::sha256(&found.body).to_string(), digest);
                lines.push(format!("{name} {digest}"));
            }
        }
    }
    lines.join("\n")
}

/// Content of the bucket without uploads: the rest of one is removed by the purge of abandoned uploads.
fn kept(s3: &S3) -> Vec<String> {
    let keys = s3.keys("").into_iter();
    keys.filter(|key| !key.contains("/_uploads/")).collect()
}

#[derive(Debug, PartialEq, Eq)]
struct Found {
    /// By the registry that met the fault.
    seen: String,
    /// By one that is started then.
    seen_afresh: String,
    keys: Vec<String>,
}

/// The content after all changes, and the requests that met a fault.
async fn run(faults: Option<Faults>) -> (Found, Vec<String>) {
    let s3 = S3::start().await;
    let server = s3.registry().await;
    let world = World {
        server: &server,
        wire: &s3.wire,
    };
    if let Some(faults) = faults {
        s3.wire.arm(faults);
    }
    change(&world).await;
    let met = s3.wire.disarm();
    if !met.is_empty() {
        // Content that could not be removed is removed by the next collection.
        world.again(async || collect(&world).await).await;
    }
    let fresh = s3.registry().await;
    let other = World {
        server: &fresh,
        ..world
    };
    let found = Found {
        seen: seen(&world).await,
        seen_afresh: seen(&other).await,
        keys: kept(&s3),
    };
    server.stop().await;
    fresh.stop().await;
    (found, met)
}

/// How many faults were met: the first of each operation's requests meets one, then the second, up to `distance`.
async fn campaign(firsts: Range<usize>, distance: usize) -> usize {
    let (expected, _) = run(None).await;
    assert_eq!(expected.seen, expected.seen_afresh);
    let faults = firsts.flat_map(|first| {
        FAULTS.map(|fault| Faults {
            fault,
            first,
            distance,
        })
    });
    let runs = stream::iter(faults).map(async |faults| {
        let outcome = AssertUnwindSafe(run(Some(faults))).catch_unwind().await;
        (faults, outcome)
    });
    let mut runs = pin!(runs.buffer_unordered(AT_ONCE));
    let (mut count, mut wrong) = (0, Vec::new());
    while let Some((faults, outcome)) = runs.next().await {
        match outcome {
            Ok((found, met)) => {
                count += met.len();
                if found != expected {
                    wrong.push(format!("{faults:?}: {found:#?} after {met:#?}"));
                }
            }
            // Its reason is shown where it panicked.
            Err(_) => wrong.push(format!("{faults:?}: no recovery")),
        }
    }
    assert!(
        wrong.is_empty(),
        "instead of {expected:#?}\n{}",
        wrong.join("\n")
    );
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_whatever_answer_fails_once() {
    assert!(campaign(3..4, usize::MAX).await > 0);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "every request to the bucket: minutes; the sample runs always"]
async fn nothing_acknowledged_is_lost_whichever_answer_fails_once() {
    let met = campaign(0..DISTANCE, DISTANCE).await;
    println!("{met} faults");
    assert!(met > 500);
}
