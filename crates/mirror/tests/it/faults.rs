//! Registries that fail: what passes is borne, what does not is told, and the same run succeeds afterwards.

use std::path::Path;
use std::time::Duration;

use mirror::archive::Set;
use mirror::history::Former;
use mirror::progress::Progress;
use mirror::run::{self, Direct, Outcome, Planned, Setup};
use model::Error;
use serde_json::json;

use crate::faulty::{Fault, Faulty, Rule};
use crate::runs::{additional_at, push, reference, setup};
use crate::server::Server;

/// More than goes into one piece.
const LAYER_BYTES: usize = 300_000;

fn rule(method: &'static str, path: &str, times: usize, fault: Fault) -> Rule {
    Rule {
        method,
        path: path.to_owned(),
        times,
        fault,
    }
}

async fn source() -> Server {
    let source = Server::start().await;
    push(&source, "acme/tool:v1", vec![7; LAYER_BYTES], json!({})).await;
    source
}

/// Copies what `from` has to `to`.
async fn copy(source: &Server, from: &Faulty, to: &Faulty) -> Result<Outcome, Error> {
    let (folder, progress) = (tempfile::tempdir().unwrap(), Progress::default());
    let set = additional_at(&from.address, &["acme/tool:v1"]);
    let setup = Setup {
        client: &from.client,
        ..setup(source, &set, folder.path(), &progress)
    };
    let prepared = run::prepare(setup, &Former::default(), None).await?;
    run::direct(setup, prepared, Direct::default(), &to.target()).await
}

/// Packs what `from` has.
async fn pack(source: &Server, from: &Faulty, folder: &Path) -> Result<Set, Error> {
    let progress = Progress::default();
    let set = additional_at(&from.address, &["acme/tool:v1"]);
    let setup = Setup {
        client: &from.client,
        ..setup(source, &set, folder, &progress)
    };
    let former = Former::default();
    let prepared = run::prepare(setup, &former, None).await?;
    let Planned::Archives(archives) = run::plan(setup, &prepared, &former, None)? else {
        panic!("nothing was carried yet");
    };
    run::pack(setup, *archives, None, &folder.join("out")).await?;
    Set::open(&folder.join("out"))
}

async fn has_image(target: &Server) -> bool {
    let name = reference(target, "ns/acme/tool:v1");
    target
        .client
        .manifest_digest(&name)
        .await
        .unwrap()
        .is_some()
}

/// What passes by itself.
const PASSING: [(usize, Fault); 3] = [
    (2, Fault::Status(500)),
    (1, Fault::Busy(0)),
    (1, Fault::Reset),
];

#[tokio::test]
async fn what_passes_at_the_source_is_borne() {
    let source = source().await;
    let stages = ["/manifests/v1", "/blobs/", "/tags/list", "/referrers/"];
    let faults = PASSING.into_iter().chain([(1, Fault::Short)]);
    for (path, (times, fault)) in stages
        .iter()
        .flat_map(|path| faults.clone().map(move |it| (path, it)))
    {
        if fault == Fault::Short && *path != "/blobs/" {
            continue;
        }
        let target = Server::start().await;
        let from = Faulty::start(&source, vec![rule("GET", path, times, fault)]).await;
        let to = Faulty::start(&target, Vec::new()).await;
        let outcome = copy(&source, &from, &to).await;
        assert!(outcome.is_ok(), "{path} {fault:?}: {:?}", outcome.err());
        assert!(has_image(&target).await, "{path} {fault:?}");
        assert!(
            from.requests(path).len() > times,
            "{path} {fault:?}: the fault was not met"
        );
    }
}

#[tokio::test]
async fn what_passes_at_the_target_is_borne() {
    let source = source().await;
    let stages = [
        ("POST", "/blobs/uploads/"),
        ("PUT", "/blobs/uploads/"),
        ("PUT", "/manifests/v1"),
        ("GET", "/tags/list"),
    ];
    for ((method, path), (times, fault)) in stages
        .iter()
        .flat_map(|stage| PASSING.map(|it| (stage, it)))
    {
        let target = Server::start().await;
        let from = Faulty::start(&source, Vec::new()).await;
        let to = Faulty::start(&target, vec![rule(method, path, times, fault)]).await;
        let outcome = copy(&source, &from, &to).await;
        assert!(
            outcome.is_ok(),
            "{method} {path} {fault:?}: {:?}",
            outcome.err()
        );
        assert!(has_image(&target).await, "{method} {path} {fault:?}");
        assert!(
            to.requests(method).len() > times,
            "{method} {path} {fault:?}: the fault was not met"
        );
    }
}

#[tokio::test]
async fn what_the_source_refuses_is_told_and_does_no_harm() {
    let source = source().await;
    let faults = [
        (Fault::Status(401), "login"),
        (Fault::Status(403), "403"),
        (Fault::Status(404), "not found"),
        (Fault::Wrong, "digest"),
    ];
    for (fault, told) in faults {
        let target = Server::start().await;
        let folder = tempfile::tempdir().unwrap();
        let path = "/blobs/";
        let from = Faulty::start(&source, vec![rule("GET", path, usize::MAX, fault)]).await;
        let to = Faulty::start(&target, Vec::new()).await;
        for refused in [
            copy(&source, &from, &to).await.err(),
            pack(&source, &from, folder.path()).await.err(),
        ] {
            let text = refused.unwrap().chain();
            assert!(text.contains(told), "{fault:?}: {text}");
        }
        assert!(!has_image(&target).await, "{fault:?}");
        assert!(Set::open(&folder.path().join("out")).is_err(), "{fault:?}");
        let sound = Faulty::start(&source, Vec::new()).await;
        copy(&source, &sound, &to).await.unwrap();
        assert!(has_image(&target).await, "{fault:?}");
    }
}

#[tokio::test]
async fn what_the_target_refuses_is_told_and_can_be_done_again() {
    let source = source().await;
    let faults = [
        (Fault::Status(401), ""),
        (Fault::Status(403), "403"),
        (Fault::Status(413), "413"),
    ];
    let stages = [
        ("POST", "/blobs/uploads/"),
        ("PUT", "/blobs/uploads/"),
        ("PUT", "/manifests/v1"),
    ];
    for ((method, path), (fault, told)) in
        stages.iter().flat_map(|stage| faults.map(|it| (stage, it)))
    {
        let target = Server::start().await;
        let from = Faulty::start(&source, Vec::new()).await;
        let to = Faulty::start(&target, vec![rule(method, path, usize::MAX, fault)]).await;
        let text = copy(&source, &from, &to).await.unwrap_err().chain();
        assert!(
            text.contains(told) && text.contains(&to.address),
            "{method} {path} {fault:?}: {text}"
        );
        assert!(!has_image(&target).await, "{method} {path} {fault:?}");
        let sound = Faulty::start(&target, Vec::new()).await;
        copy(&source, &from, &sound).await.unwrap();
        assert!(has_image(&target).await, "{method} {path} {fault:?}");
    }
}

#[tokio::test]
async fn a_target_that_has_a_part_gets_the_rest() {
    let source = source().await;
    let target = Server::start().await;
    let from = Faulty::start(&source, Vec::new()).await;
    let refused = rule("PUT", "/manifests/v1", usize::MAX, Fault::Status(403));
    let to = Faulty::start(&target, vec![refused]).await;
    copy(&source, &from, &to).await.unwrap_err();
    let sound = Faulty::start(&target, Vec::new()).await;
    let before = from.requests("/blobs/").len();
    let outcome = copy(&source, &from, &sound).await.unwrap();
    assert_eq!(outcome.sent.items, 0, "all blobs were there");
    assert_eq!(
        from.requests("/blobs/").len(),
        before,
        "none was fetched again"
    );
    assert!(has_image(&target).await);
}

#[tokio::test]
async fn a_run_that_is_given_up_leaves_nothing_visible_and_goes_on() {
    let source = source().await;
    let from = Faulty::start(&source, vec![rule("GET", "/blobs/", 0, Fault::Held(0))]).await;
    let folder = tempfile::tempdir().unwrap();
    tokio::select! {
        packed = pack(&source, &from, folder.path()) => panic!("{packed:?}"),
        () = asked(&from, "/blobs/") => {}
    }
    assert!(Set::open(&folder.path().join("out")).is_err());
    from.release();
    pack(&source, &from, folder.path()).await.unwrap();
}

/// Until a registry is asked for something.
async fn asked(registry: &Faulty, path: &str) {
    while registry.requests(path).is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
