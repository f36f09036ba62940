//! Catalogs with packages that break rules, and sets with several mistakes.

use mirror::history::PreviousRuns;
use mirror::progress::RunProgress;
use mirror::run::{self, PreparedRun};
use model::image_set::{ImageSet, IncludeChannel, IncludePackage, OperatorSelection};
use serde_json::{Value, json};

use crate::content::{push, push_documents};
use crate::runs::{image_set, setup};
use crate::server::Server;

/// The documents of a package whose bundles have these entries, and need `required`.
fn package(address: &str, name: &str, entries: &Value, required: Option<&str>) -> Vec<Value> {
    let mut documents = vec![
        json!({"schema": "olm.package", "name": name, "defaultChannel": "stable"}),
        json!({"schema": "olm.channel", "package": name, "name": "stable", "entries": entries}),
    ];
    for entry in entries.as_array().unwrap() {
        let bundle = entry["name"].as_str().unwrap();
        let version = format!("{}.0.0", bundle.rsplit('v').next().unwrap());
        let mut properties = vec![
            json!({"type": "olm.package", "value": {"packageName": name, "version": version}}),
        ];
        properties.extend(required.map(
            |it| json!({"type": "olm.package.required", "value": {"packageName": it, "versionRange": ">=1.0.0"}}),
        ));
        documents.push(
            json!({"schema": "olm.bundle", "package": name, "name": bundle,
            "image": format!("{address}/acme/bundle:v1"), "properties": properties}),
        );
    }
    documents
}

/// A catalog of which `older` is served by older versions of opm alone, and `broken` by none.
async fn source() -> Server {
    let source = Server::start().await;
    push(&source, "acme/bundle:v1", b"bundle".to_vec(), json!({})).await;
    let address = source.address.clone();
    let older = json!([
        {"name": "older.v1"},
        {"name": "older.v2", "replaces": "older.v1"},
        {"name": "older.v3", "replaces": "older.v2", "skips": ["older.v2"]},
    ]);
    let broken = json!([{"name": "broken.v1"}, {"name": "broken.v2"}]);
    let documents = [
        package(&address, "sound", &json!([{"name": "sound.v1"}]), None),
        package(&address, "older", &older, None),
        package(&address, "broken", &broken, None),
        package(
            &address,
            "needy",
            &json!([{"name": "needy.v1"}]),
            Some("broken"),
        ),
    ];
    push_documents(&source, &documents.concat()).await;
    source
}

async fn prepared(
    source: &Server,
    change: impl FnOnce(&mut OperatorSelection),
) -> Result<PreparedRun, mirror::Error> {
    let mut set: ImageSet = image_set(source);
    set.mirror.additional_images.clear();
    change(&mut set.mirror.operators[0]);
    let (folder, progress) = (tempfile::tempdir().unwrap(), RunProgress::default());
    let setup = setup(source, &set, folder.path(), &progress);
    setup.prepare(&PreviousRuns::default(), None).await
}

fn named(names: &[&str]) -> Vec<IncludePackage> {
    let named = names.iter().map(|name| IncludePackage {
        name: (*name).to_owned(),
        ..IncludePackage::default()
    });
    named.collect()
}

#[tokio::test]
async fn packages_that_are_not_selected_are_not_judged() {
    let source = source().await;
    let prepared = prepared(&source, |it| it.packages = named(&["sound"])).await;
    let prepared = prepared.unwrap();
    let notes = prepared.notes.join("\n");
    assert!(
        notes.contains("skipped") && notes.ends_with(": broken"),
        "{notes}"
    );
    assert!(!notes.contains("older"), "{notes}");
    let breaches = prepared.rule_violations.join("\n");
    for part in [
        "package broken cannot be mirrored",
        "broken.v1, broken.v2 [channel-head]",
        "package older is mirrored with a warning",
        "stranded bundles: older.v1 [stranded]",
        "remedy: ",
    ] {
        assert!(breaches.contains(part), "{part}: {breaches}");
    }
}

#[tokio::test]
async fn packages_that_older_opm_serves_are_mirrored_with_a_warning() {
    let source = source().await;
    let prepared = prepared(&source, |it| {
        it.packages = named(&["older"]);
        it.full = true;
    });
    let prepared = prepared.await.unwrap();
    let notes = prepared.notes.join("\n");
    assert!(
        notes.contains("package older has entries that opm from"),
        "{notes}"
    );
    let part = &prepared.catalogs[0].catalog.choice["older"];
    let bundles: Vec<_> = part.channels["stable"].iter().map(String::as_str).collect();
    assert_eq!(bundles, ["older.v1", "older.v2", "older.v3"]);
}

#[tokio::test]
async fn selected_and_required_packages_that_no_opm_serves_end_the_run() {
    let source = source().await;
    for (packages, parts) in [
        (
            named(&["broken"]),
            vec![
                "package broken cannot be mirrored",
                "[channel-head]",
                "remedy: ",
            ],
        ),
        (
            Vec::new(),
            vec!["package broken cannot be mirrored", "[channel-head]"],
        ),
        (
            named(&["needy"]),
            vec!["package broken is required by needy.v1 and cannot be mirrored"],
        ),
    ] {
        let refused = prepared(&source, |it| it.packages = packages).await;
        let message = refused.unwrap_err().to_string();
        for part in parts {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    let alone = prepared(&source, |it| {
        it.packages = named(&["needy"]);
        it.skip_dependencies = true;
    });
    alone.await.unwrap();
}

/// A catalog of `kuad`, with malformed old bundles and a sound head, and of a sound and a broken package.
async fn kuad() -> Server {
    let source = Server::start().await;
    push(&source, "acme/bundle:v1", b"bundle".to_vec(), json!({})).await;
    let address = source.address.clone();
    let entries = json!([
        {"name": "kuad.v1"},
        {"name": "kuad.v2", "replaces": "kuad.v1", "skipRange": "~1"},
        {"name": "kuad.v3", "replaces": "kuad.v2"},
    ]);
    let mut kuad = package(&address, "kuad", &entries, None);
    // A version that is none, and references that are none.
    kuad[2]["properties"][0]["value"]["version"] = json!("one");
    let related = |image: &str| json!({"name": "x", "image": image});
    kuad[3]["relatedImages"] = json!([related("oci://r/x:1"), related("r/x@sha256:00")]);
    let broken = json!([{"name": "broken.v1"}, {"name": "broken.v2"}]);
    let documents = [
        kuad,
        package(&address, "sound", &json!([{"name": "sound.v1"}]), None),
        package(&address, "broken", &broken, None),
    ];
    push_documents(&source, &documents.concat()).await;
    source
}

async fn continued(
    source: &Server,
    change: impl FnOnce(&mut OperatorSelection),
) -> Result<PreparedRun, mirror::Error> {
    let mut set: ImageSet = image_set(source);
    set.mirror.additional_images.clear();
    change(&mut set.mirror.operators[0]);
    let (folder, progress) = (tempfile::tempdir().unwrap(), RunProgress::default());
    let mut setup = setup(source, &set, folder.path(), &progress);
    setup.context.limits.continue_on_error = true;
    setup.prepare(&PreviousRuns::default(), None).await
}

fn since(version: &str) -> IncludePackage {
    let mut package = named(&["kuad"]).remove(0);
    version.clone_into(&mut package.versions.min_version);
    package
}

#[tokio::test]
async fn bundles_that_are_not_selected_block_nothing() {
    let source = kuad().await;
    let heads = prepared(&source, |it| it.packages = named(&["kuad"])).await;
    let heads = heads.unwrap();
    assert!(heads.left_out.is_empty(), "{:?}", heads.left_out);
    let bundles = &heads.catalogs[0].catalog.choice["kuad"].channels["stable"];
    assert_eq!(bundles.iter().collect::<Vec<_>>(), ["kuad.v3"]);
    let notes = heads.notes.join("\n");
    assert!(
        notes.contains("package kuad has entries that opm from 1.64 on refuses"),
        "{notes}"
    );
    assert!(
        notes.contains("kuad is mirrored without bundles"),
        "{notes}"
    );
}

#[tokio::test]
async fn malformed_images_of_selected_bundles_are_left_out_and_named() {
    let source = kuad().await;
    let prepared = prepared(&source, |it| it.packages = vec![since("2.0.0")]).await;
    let prepared = prepared.unwrap();
    let left_out: Vec<_> = prepared
        .left_out
        .iter()
        .map(|it| it.error().chain())
        .collect();
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    for (named, reference) in left_out.iter().zip(["oci://r/x:1", "r/x@sha256:00"]) {
        assert!(
            named.contains(reference) && named.contains("kuad.v2"),
            "{named}"
        );
    }
    assert_eq!(prepared.content.images.len(), 1);
}

#[tokio::test]
async fn selected_bundles_that_no_opm_serves_are_named() {
    let source = kuad().await;
    let whole = |it: &mut OperatorSelection| {
        it.packages = named(&["kuad"]);
        it.full = true;
    };
    let message = prepared(&source, whole).await.unwrap_err().to_string();
    for part in ["kuad.v1", "[version]", "remedy: "] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[tokio::test]
async fn runs_that_continue_leave_out_what_no_opm_serves() {
    let source = kuad().await;
    let packages = |it: &mut OperatorSelection| it.packages = named(&["broken", "sound"]);
    let all = |it: &mut OperatorSelection| it.packages = Vec::new();
    for (number, change) in [&packages as &dyn Fn(&mut OperatorSelection), &all]
        .into_iter()
        .enumerate()
    {
        let run = continued(&source, change).await.unwrap();
        let choice = &run.catalogs[0].catalog.choice;
        assert!(choice.contains_key("sound") && !choice.contains_key("broken"));
        let left_out = run.left_out[0].error().chain();
        assert!(
            left_out.contains("package broken cannot be mirrored"),
            "{number}: {left_out}"
        );
        assert_eq!(run.left_out.len(), 1, "{number}");
    }
    let alone = continued(&source, |it| it.packages = named(&["broken"])).await;
    assert!(alone.unwrap_err().to_string().contains("[channel-head]"));
}

#[tokio::test]
async fn all_mistakes_of_a_set_are_reported_at_once() {
    let source = source().await;
    let refused = prepared(&source, |it| {
        it.packages = named(&["sond", "sound", "oldr"]);
        it.packages[1].channels = vec![IncludeChannel {
            name: "stabel".to_owned(),
            ..IncludeChannel::default()
        }];
    });
    let message = refused.await.unwrap_err().to_string();
    for part in [
        "it has 3 mistakes:",
        "- Package \"sond\" of ",
        "perhaps \"sound\"?",
        "\"stabel\"",
        "- Package \"oldr\" of ",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(
        message
            .lines()
            .skip(1)
            .all(|line| line.ends_with(['.', '?'])),
        "{message}"
    );
}

#[tokio::test]
async fn packages_that_vanish_from_a_served_catalog_are_named() {
    let (source, target) = (kuad().await, Server::start().await);
    let target = target.target();
    let mut notes = Vec::new();
    for packages in [&["kuad", "sound"][..], &["sound"]] {
        let mut set: ImageSet = image_set(&source);
        set.storage = None;
        set.mirror.additional_images.clear();
        set.mirror.operators[0].packages = named(packages);
        let (folder, progress) = (tempfile::tempdir().unwrap(), RunProgress::default());
        let setup = setup(&source, &set, folder.path(), &progress);
        let previous = PreviousRuns::default();
        let prepared = setup.prepare(&previous, Some(&target)).await.unwrap();
        let planned = setup.plan_copy(&prepared, &previous, &target, None, true);
        let run::PlannedCopy::Copy(plan) = planned.await.unwrap() else {
            panic!("nothing to copy")
        };
        let before = run::vanishing_by_copy(setup.context, &prepared, &target).await;
        let outcome = setup.copy(prepared, *plan, &target).await.unwrap();
        assert_eq!(before.unwrap(), outcome.notes, "dry runs name them, too");
        notes.push(outcome.notes);
    }
    assert!(notes[0].is_empty(), "{:?}", notes[0]);
    assert!(
        notes[1].len() == 1 && notes[1][0].ends_with(": kuad"),
        "{:?}",
        notes[1]
    );
}
