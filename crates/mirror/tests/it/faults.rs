//! Faults of registries at each stage of a run: transient ones are retried, lasting ones reported, and the same run
//! succeeds afterwards.

mod stages;
pub(crate) mod world;

use std::time::Duration;

use futures_util::future::join_all;
use mirror::archive::{FilePlace, Set};
use model::Error;
use oci::Digest;

use self::stages::{ALWAYS, PACKING, PUBLISHING, Stage};
use self::world::{LAYER_BYTES, World, carried, client, impatient, there};
use crate::faulty::{Fault, Faulty, Rule};
use crate::runs::reference;
use crate::server::Server;

/// Problems of a run's end after a lasting fault.
fn wrong<T>(done: Result<T, Error>, to: &Faulty, stage: &Stage, fault: Fault) -> Option<String> {
    let what = format!("{} {fault:?}", stage.name);
    let unmet = to.unmet();
    if !unmet.is_empty() {
        return Some(format!("{what}: not met"));
    }
    match (done, stage.borne.contains(&fault)) {
        (Ok(_), true) => None,
        (Ok(_), false) => Some(format!("{what}: went on")),
        (Err(error), true) => Some(format!("{what}: {}", error.chain())),
        (Err(error), false) => {
            let text = error.chain();
            let names = [to.address.as_str(), stage.repository()];
            let is_named = names.iter().all(|it| text.contains(it));
            (!is_named).then(|| format!("{what}: {text}"))
        }
    }
}

#[tokio::test]
async fn lasting_faults_of_packing_are_reported_and_the_next_run_succeeds() {
    let world = World::start().await;
    let undisturbed = carried(&world.pack(&client(None), "undisturbed").await.unwrap());
    let mut all = Vec::new();
    for (number, stage) in PACKING.iter().enumerate() {
        let name = format!("stage-{number}");
        for (other, fault) in stage.lasting().into_iter().enumerate() {
            world.from.meet(vec![stage.rule(ALWAYS, fault)]);
            // A run that continues is recorded: the next one is another set.
            let name = if stage.borne.contains(&fault) {
                format!("{name}-{other}")
            } else {
                name.clone()
            };
            let packed = world.pack(&impatient(), &name).await;
            all.extend(wrong(packed, &world.from, stage, fault));
        }
        world.from.meet(Vec::new());
        match world.pack(&impatient(), &name).await {
            Ok(archives) if carried(&archives) == undisturbed => {}
            other => all.push(format!("{}: {other:?}", stage.name)),
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[tokio::test]
async fn lasting_faults_of_publishing_are_reported_and_the_next_run_succeeds() {
    let world = World::start().await;
    let archives = world.pack(&client(None), "archives").await.unwrap();
    let undisturbed = Server::start().await;
    let to = Faulty::start(&undisturbed, Vec::new()).await;
    world.publish(&to.client, &archives, &to).await.unwrap();
    let undisturbed = there(&undisturbed).await;
    let mut all = Vec::new();
    for stage in &PUBLISHING {
        let target = Server::start().await;
        let to = Faulty::start(&target, Vec::new()).await;
        for fault in stage.lasting() {
            if stage.borne.contains(&fault) {
                continue;
            }
            to.meet(vec![stage.rule(ALWAYS, fault)]);
            let published = world.publish(&impatient(), &archives, &to).await;
            all.extend(wrong(published, &to, stage, fault));
        }
        to.meet(Vec::new());
        match world.publish(&impatient(), &archives, &to).await {
            Ok(()) if there(&target).await == undisturbed => {}
            other => all.push(format!("{}: {other:?}", stage.name)),
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[tokio::test]
async fn transient_faults_are_retried_at_all_stages() {
    let faults = [
        Fault::Status(500),
        Fault::Busy(0),
        Fault::Reset,
        Fault::Short,
        Fault::Lost,
    ];
    join_all(faults.map(is_borne)).await;
}

/// Asserts that a run survives one fault at each stage.
async fn is_borne(fault: Fault) {
    let world = World::start().await;
    let archives = world.pack(&client(None), "undisturbed").await.unwrap();
    let undisturbed = carried(&archives);
    let meet = |stages: &[Stage]| -> Vec<Rule> {
        let stages = stages.iter().filter(|it| it.passing().contains(&fault));
        stages.map(|stage| stage.rule(1, fault)).collect()
    };
    world.from.meet(meet(&PACKING));
    let packed = world.pack(&client(None), "disturbed").await.unwrap();
    assert_eq!(carried(&packed), undisturbed, "{fault:?}");
    assert_eq!(world.from.unmet(), Vec::<String>::new(), "{fault:?}");

    let target = Server::start().await;
    let to = Faulty::start(&target, meet(&PUBLISHING)).await;
    world.publish(&to.client, &archives, &to).await.unwrap();
    assert_eq!(to.unmet(), Vec::<String>::new(), "{fault:?}");
    let there = there(&target).await;
    for (name, digest) in &undisturbed {
        assert_eq!(there.get(&format!("ns/{name}")), Some(digest), "{fault:?}");
    }
}

#[tokio::test]
async fn lasting_faults_of_copying_are_reported_and_the_next_run_succeeds() {
    let (world, target, other) = (
        World::start().await,
        Server::start().await,
        Server::start().await,
    );
    let undisturbed = Faulty::start(&other, Vec::new()).await;
    world.copy(&client(None), &undisturbed).await.unwrap();
    let to = Faulty::start(&target, Vec::new()).await;
    let at_source = Stage::new("blobs", "GET", "acme/tool/blobs/");
    let at_target = Stage::new("images", "PUT", "ns/acme/tool/manifests/");
    let mut all = Vec::new();
    for (at, stage) in [(&world.from, at_source), (&to, at_target)] {
        for fault in stage.lasting() {
            at.meet(vec![stage.rule(ALWAYS, fault)]);
            let copied = world.copy(&impatient(), &to).await;
            all.extend(wrong(copied, at, &stage, fault));
        }
        at.meet(Vec::new());
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
    // Blobs that arrived before the image was refused are not fetched again.
    let earlier = world.from.requests("acme/tool/blobs/");
    let place = reference(&target, "ns/acme/tool:v1");
    let mut arrived = Vec::new();
    for request in &earlier {
        let digest: Digest = request.rsplit('/').next().unwrap().parse().unwrap();
        if target.client.has_blob(&place, &digest).await.unwrap() {
            arrived.push(request);
        }
    }
    assert!(!arrived.is_empty());
    world.copy(&impatient(), &to).await.unwrap();
    let later = world.from.requests("acme/tool/blobs/");
    let mut later = later.iter().skip(earlier.len());
    assert_eq!(later.find(|request| arrived.contains(request)), None);
    assert_eq!(there(&target).await, there(&other).await);
}

#[tokio::test]
async fn archives_that_could_not_be_remembered_are_not_fetched_again() {
    let world = World::start().await;
    let refused = PACKING.last().unwrap().rule(ALWAYS, Fault::Status(403));
    world.from.meet(vec![refused]);
    let out = world.path("archives").join("out");
    world.pack(&impatient(), "archives").await.unwrap_err();
    assert!(!carried(&out).is_empty(), "they are whole");
    let before = world.from.requests("acme/tool/blobs/").len();
    world.from.meet(Vec::new());
    world.pack(&impatient(), "archives").await.unwrap();
    assert_eq!(world.from.requests("acme/tool/blobs/").len(), before);
    assert!(!out.join(".mirror.part").exists());
}

#[tokio::test]
async fn a_cancelled_run_leaves_nothing_visible_and_resumes() {
    let world = World::start().await;
    let held = Stage::new("blobs", "GET", "acme/tool/blobs/").rule(0, Fault::Held(0));
    world.from.meet(vec![held]);
    let out = world.path("given-up").join("out");
    let client = client(None);
    tokio::select! {
        packed = world.pack(&client, "given-up") => panic!("{packed:?}"),
        () = asked(&world.from, "acme/tool/blobs/") => {}
    }
    assert!(Set::open(&out).is_err());
    world.from.release();
    world.pack(&client, "given-up").await.unwrap();
}

#[tokio::test]
async fn damaged_transfers_are_reported_and_succeed_when_repeated() {
    let world = World::start().await;
    let archives = world.pack(&client(None), "archives").await.unwrap();
    let layer = Digest::sha256(&vec![7; LAYER_BYTES]);
    let tool = reference(&world.source, "acme/tool:v1");
    let tool = world
        .source
        .client
        .manifest_digest(&tool)
        .await
        .unwrap()
        .unwrap();
    let set = Set::open(&archives).unwrap();
    let manifest = format!("v2/acme/tool/manifests/{tool}");
    let mut members = vec![
        ("blob", set.blob(&layer).unwrap()),
        ("manifest", set.place(&manifest).unwrap()),
        ("metadata", set.place("publish/.metadata.json").unwrap()),
    ];
    members.extend(set.below("catalogs/"));
    let target = Server::start().await;
    let to = Faulty::start(&target, Vec::new()).await;
    let mut all = Vec::new();
    for (what, FilePlace { file, offset, size }) in members {
        let file = &*file.local().unwrap().file;
        let whole = std::fs::read(file).unwrap();
        let mut damaged = whole.clone();
        damaged[usize::try_from(offset + size / 2).unwrap()] ^= 1;
        std::fs::write(file, damaged).unwrap();
        let text = match world.publish(&impatient(), &archives, &to).await {
            Ok(()) => "went on".to_owned(),
            Err(error) => error.chain(),
        };
        if !(text.contains(file.to_str().unwrap()) && text.contains("damaged")) {
            all.push(format!("{what}: {text}"));
        }
        std::fs::write(file, whole).unwrap();
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
    world.publish(&impatient(), &archives, &to).await.unwrap();
    let there = there(&target).await;
    for (name, digest) in carried(&archives) {
        assert_eq!(there.get(&format!("ns/{name}")), Some(&digest));
    }
}

/// Waits for a request to a registry.
async fn asked(registry: &Faulty, path: &str) {
    while registry.requests(path).is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
