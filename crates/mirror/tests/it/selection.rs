//! Selection in a catalog.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use catalog::cache::{CatalogCache, prepare};
use mirror::history::PreviousRuns;
use mirror::operators::{self, Choice};
use mirror::progress::RunProgress;
use model::image_set::{IncludeBundle, IncludeChannel, IncludePackage, OperatorSelection};
use oci::Digest;
use serde_json::{Value, json};

use crate::runs::{image_set, push_catalog, setup};
use crate::server::Server;

/// A catalog of the package `p` with these channels of entries; the first one is the default. Bundles are called `v` and
/// their version.
fn catalog_of(folder: &Path, channels: &[(&str, Value)]) -> Arc<CatalogCache> {
    let mut documents =
        vec![json!({"schema": "olm.package", "name": "p", "defaultChannel": channels[0].0})];
    let mut bundles = BTreeMap::new();
    for (name, entries) in channels {
        documents.push(
            json!({"schema": "olm.channel", "package": "p", "name": name, "entries": entries}),
        );
        for entry in entries.as_array().unwrap() {
            let bundle = entry["name"].as_str().unwrap();
            let value = json!({"packageName": "p", "version": bundle.trim_start_matches('v')});
            bundles.insert(
                bundle.to_owned(),
                json!({"schema": "olm.bundle", "package": "p", "name": bundle,
                    "image": format!("bundles:{bundle}"),
                    "properties": [{"type": "olm.package", "value": value}],
                    "relatedImages": [{"name": "tool", "image": "r.io/acme/tool:v1"}]}),
            );
        }
    }
    documents.extend(bundles.into_values());
    let files = folder.join("files");
    fs::create_dir(&files).unwrap();
    let lines: Vec<_> = documents.iter().map(Value::to_string).collect();
    fs::write(files.join("catalog.json"), lines.join("\n")).unwrap();
    let prepared = prepare(&files, &folder.join("cache"), NonZeroUsize::MIN, 0);
    prepared.unwrap().cache
}

/// A channel in which each version replaces the one before.
fn line(versions: &[&str]) -> Value {
    let entry = |index: usize| match index.checked_sub(1) {
        Some(below) => {
            json!({"name": format!("v{}", versions[index]), "replaces": format!("v{}", versions[below])})
        }
        None => json!({"name": format!("v{}", versions[index])}),
    };
    (0..versions.len()).map(entry).collect()
}

fn from(min: &str) -> IncludeBundle {
    IncludeBundle {
        min_version: min.into(),
        ..IncludeBundle::default()
    }
}

fn channel(name: &str, versions: IncludeBundle) -> IncludeChannel {
    IncludeChannel {
        name: name.into(),
        versions,
    }
}

fn package(versions: IncludeBundle, channels: Vec<IncludeChannel>) -> IncludePackage {
    IncludePackage {
        name: "p".into(),
        channels,
        versions,
        ..IncludePackage::default()
    }
}

fn operator(packages: Vec<IncludePackage>) -> OperatorSelection {
    OperatorSelection {
        catalog: "r.io/acme/index:v1".into(),
        packages,
        ..OperatorSelection::default()
    }
}

/// The selection, as `channel: bundles`.
fn summary(choice: &Choice) -> Vec<String> {
    let channels = choice.values().flat_map(|part| &part.channels);
    let line = |(name, bundles): (&String, &BTreeSet<String>)| {
        let bundles: Vec<_> = bundles.iter().map(String::as_str).collect();
        format!("{name}: {}", bundles.join(" "))
    };
    channels.map(line).collect()
}

#[test]
fn a_start_above_all_that_is_left_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let channels = [
        ("stable", line(&["1.0.0", "1.1.0"])),
        ("fast", line(&["1.0.0", "1.1.0"])),
    ];
    let cache = catalog_of(folder.path(), &channels);
    // 1.2.0 was the head, and was withdrawn.
    let started = [package(
        IncludeBundle::default(),
        vec![
            channel("stable", from("1.2.0")),
            channel("fast", from("1.0.0")),
        ],
    )];
    let wanted = operator(vec![package(IncludeBundle::default(), Vec::new())]);
    let choice = operators::choose(&cache, &wanted, &started).unwrap();
    assert_eq!(summary(&choice), ["fast: v1.0.0 v1.1.0", "stable: v1.1.0"]);
    // A configured minimum has to exist.
    let wanted = operator(vec![package(from("1.2.0"), Vec::new())]);
    assert!(operators::choose(&cache, &wanted, &started).is_err());
}

#[test]
fn minimum_versions_have_to_exist_and_their_upgrades_follow() {
    let folder = tempfile::tempdir().unwrap();
    let stable = json!([
        {"name": "v4.12.0-2023"},
        {"name": "v4.13.0", "replaces": "v4.12.0-2023"},
        {"name": "v4.13.5"},
        {"name": "v4.14.0", "replaces": "v4.13.0", "skips": ["v4.13.5"]},
    ]);
    let channels = [
        ("stable", stable),
        ("fast", line(&["4.13.0", "4.14.0", "4.15.0"])),
        ("candidate", line(&["4.15.0", "4.16.0"])),
    ];
    let cache = catalog_of(folder.path(), &channels);
    let chosen = |from_exact: bool, package: IncludePackage, started: &[IncludePackage]| {
        let operator = OperatorSelection {
            from_exact,
            ..operator(vec![package])
        };
        let choice = operators::choose(&cache, &operator, started);
        choice.map_err(|e| e.to_string())
    };
    let of_package = |min: &str| package(from(min), Vec::new());
    let of_stable =
        |min: &str| package(IncludeBundle::default(), vec![channel("stable", from(min))]);
    let whole = "stable: v4.12.0-2023 v4.13.0 v4.14.0";
    for (package, expected) in [
        (of_package("4.12.0"), &[whole][..]),
        (of_stable("4.12.0"), &[whole]),
        (of_stable("4.13.0"), &["stable: v4.13.0 v4.14.0"]),
        (of_stable("4.13.5"), &["stable: v4.13.5 v4.14.0"]),
        (
            of_package("v4.14.0"),
            &["fast: v4.14.0 v4.15.0", "stable: v4.14.0"],
        ),
    ] {
        assert_eq!(summary(&chosen(true, package, &[]).unwrap()), expected);
    }
    for (package, expected) in [
        (
            of_stable("4.12.5"),
            "channel \"stable\" of package \"p\" has no version 4.12.5, which minVersion names; the nearest are 4.12.0-2023 and 4.13.0",
        ),
        (
            of_package("4.17.0"),
            "package \"p\" has no version 4.17.0, which minVersion names; the nearest are 4.16.0",
        ),
    ] {
        let refused = chosen(true, package, &[]).unwrap_err();
        assert!(refused.ends_with(expected), "{refused}");
    }
    // A withdrawn minimum version is replaced by the next one.
    let started = [of_stable("4.12.5")];
    let choice = chosen(true, of_stable(""), &started).unwrap();
    assert_eq!(summary(&choice), ["stable: v4.13.0 v4.14.0"]);
    // The later version of the configuration has ranges.
    let choice = chosen(false, of_stable("4.12.5"), &[]).unwrap();
    assert_eq!(summary(&choice), ["stable: v4.13.0 v4.13.5 v4.14.0"]);
}

#[tokio::test]
async fn two_catalogs_do_not_have_one_place() {
    let (one, other) = (Server::start().await, Server::start().await);
    push_catalog(&one, 1).await;
    push_catalog(&other, 2).await;
    let mut set = image_set(&one);
    set.mirror
        .operators
        .append(&mut image_set(&other).mirror.operators);
    let (folder, progress) = (tempfile::tempdir().unwrap(), RunProgress::default());
    let own = setup(&one, &set, folder.path(), &progress);
    let refused = own.prepare(&PreviousRuns::default(), None).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("acme/index:v1: give one"), "{refused}");
    set.mirror.operators[1].target_tag = "v2".into();
    let own = setup(&one, &set, folder.path(), &progress);
    let prepared = own.prepare(&PreviousRuns::default(), None).await.unwrap();
    assert_eq!(prepared.catalogs.len(), 2);
}

#[test]
fn images_are_pinned_however_the_catalog_writes_them() {
    let folder = tempfile::tempdir().unwrap();
    let cache = catalog_of(folder.path(), &[("stable", line(&["1.0.0"]))]);
    let choice = operators::choose(&cache, &operator(Vec::new()), &[]).unwrap();
    let digest = Digest::sha256(b"");
    let pinned = |name: &str| format!("{name}@{digest}");
    let pins = BTreeMap::from([
        (
            "docker.io/library/bundles:v1.0.0".to_owned(),
            pinned("docker.io/library/bundles"),
        ),
        ("r.io/acme/tool:v1".to_owned(), pinned("r.io/acme/tool")),
    ]);
    let mut index = Vec::new();
    operators::write_index(&cache, &choice, &pins, &mut index).unwrap();
    let documents = serde_json::Deserializer::from_slice(&index).into_iter::<Value>();
    let bundle = documents
        .map(Result::unwrap)
        .find(|it| it["schema"] == "olm.bundle")
        .unwrap();
    assert_eq!(bundle["image"], pinned("docker.io/library/bundles"));
    assert_eq!(
        bundle["relatedImages"][0]["image"],
        pinned("r.io/acme/tool")
    );
}
