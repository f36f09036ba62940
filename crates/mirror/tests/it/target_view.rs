//! Releases and charts of a target, read there for verification and deletion.

use std::collections::BTreeMap;
use std::path::Path;

use mirror::deletion::{self, DeletionPlan};
use mirror::history::{MetadataStore, PreviousRuns};
use mirror::progress::RunProgress;
use mirror::publish::MirrorTarget;
use mirror::run::{CopyPlan, PlannedCopy};
use mirror::verify_target::{self, TargetReport};
use model::Error;
use model::image_set::{Chart, Helm, ImageSet, MirrorSelection};
use oci::{Digest, Reference};
use oci_client::{Client, ClientOptions};
use serde_json::json;

use crate::charts;
use crate::graph::add_graph;
use crate::platform::{Platform, image_set};
use crate::runs::{Setup, copy, push, reference, setup};
use crate::server::Server;

const BOTH: &str =
    "{graph: true, channels: [{name: stable-4.14, minVersion: 4.14.1, maxVersion: 4.14.2}]}";
const FIRST: &str = "{channels: [{name: stable-4.14, minVersion: 4.14.1, maxVersion: 4.14.1}]}";

/// Two releases, in a target without metadata, and their source.
async fn released() -> (Platform, Server) {
    let (mut platform, target) = (Platform::start().await, Server::start().await);
    add_graph(&mut platform).await;
    let releases = [
        platform.release("4.14.1").await,
        platform.release("4.14.2").await,
    ];
    platform.channel("stable-4.14", &[&releases[0], &releases[1]]);
    let (set, progress) = (image_set(BOTH), RunProgress::default());
    let setup = platform.setup(&set, &progress);
    let prepared = setup.prepare(&PreviousRuns::default(), None).await.unwrap();
    setup
        .copy(prepared, CopyPlan::default(), &target.target())
        .await
        .unwrap();
    (platform, target)
}

/// Listed images and those that stay, as `type repository`.
fn summary(planned: &DeletionPlan) -> BTreeMap<&'static str, Vec<String>> {
    let listed = planned.list.items.iter();
    let listed = listed.map(|it| format!("{} {}", it.kind, it.image.repository));
    let kept = planned.kept.iter();
    let kept = kept.map(|(image, why)| format!("{}: {why}", image.repository));
    BTreeMap::from([("list", listed.collect()), ("kept", kept.collect())])
}

async fn verified(
    setup: Setup<'_>,
    mirror: &MirrorSelection,
    target: &MirrorTarget,
) -> TargetReport {
    let expected = setup.expected(mirror, target).await.unwrap();
    verify_target::check(target, &expected, true, 4, &RunProgress::default()).await
}

#[tokio::test]
async fn releases_are_verified_and_deleted_without_shared_images() {
    let (platform, target) = released().await;
    let (set, to, progress) = (image_set(BOTH), target.target(), RunProgress::default());
    let setup = platform.setup(&set, &progress);
    let report = verified(setup, &set.mirror, &to).await;
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    assert_eq!(report.images, 7, "two of each, their components, the graph");

    let first = image_set(FIRST).mirror;
    let planned = setup.plan_deletion(&first, &to, false).await.unwrap();
    let expected = BTreeMap::from([
        (
            "list",
            vec![
                "ocpRelease ns/openshift/release-images".to_owned(),
                "ocpReleaseContent ns/openshift/release".to_owned(),
            ],
        ),
        (
            "kept",
            vec!["ns/openshift/release: component pause of release 4.14.2-x86_64".to_owned()],
        ),
    ]);
    assert_eq!(summary(&planned), expected);
    let (deleted, failed) = deletion::delete(&planned.list, &to, 2).await;
    assert_eq!((deleted, failed.len()), (2, 0));
    let second = image_set(&FIRST.replace("4.14.1", "4.14.2")).mirror;
    assert!(verified(setup, &second, &to).await.faults.is_empty());
    // The release is read at its source now.
    let report = verified(setup, &first, &to).await;
    let missing: Vec<_> = report.faults.iter().map(|(_, error)| error).collect();
    assert!(
        matches!(
            missing[..],
            [Error::NotFound { .. }, Error::NotFound { .. }]
        ),
        "{missing:?}"
    );

    let all = image_set(BOTH).mirror;
    let planned = setup.plan_deletion(&all, &to, false).await.unwrap();
    let mut kinds: Vec<_> = planned
        .list
        .items
        .iter()
        .map(|it| it.kind.as_str())
        .collect();
    kinds.sort_unstable();
    let expected = [
        "cincinnatiGraph",
        "ocpRelease",
        "ocpReleaseContent",
        "ocpReleaseContent",
    ];
    assert_eq!(kinds, expected);
    assert_eq!((planned.missing, planned.kept.len()), (2, 0));
}

#[tokio::test]
async fn behind_the_gap_releases_are_read_in_the_target() {
    let (platform, target) = released().await;
    let (to, progress, set) = (target.target(), RunProgress::default(), ImageSet::default());
    let Platform {
        registry,
        site,
        mut sources,
        folder,
        ..
    } = platform;
    drop((registry, site));
    // Servers of other tests may take the ports that became free; no one takes port 1.
    sources.updates = Some("http://127.0.0.1:1/graph".parse().unwrap());
    let release: Reference = "127.0.0.1:1/dev/release:x".parse().unwrap();
    let client = Client::new(ClientOptions {
        plain_http: true,
        attempts: Some(1),
        ..ClientOptions::default()
    });
    let nobody = |platform: &str| image_set(platform).mirror;
    let client = client.unwrap();
    let setup = self::setup(&target, &set, folder.path(), &progress).with(|of_run, _| {
        of_run.client = &client;
        of_run.platform = &sources;
    });
    let planned = setup
        .plan_deletion(&nobody(FIRST), &to, false)
        .await
        .unwrap();
    assert_eq!(planned.list.items.len(), 2, "{:?}", summary(&planned));
    assert!(
        planned.notes[0].contains("minVersion and maxVersion enclose"),
        "{:?}",
        planned.notes
    );
    let newest = nobody("{channels: [{name: stable-4.14}]}");
    let refused = setup.plan_deletion(&newest, &to, false).await.unwrap_err();
    assert!(
        refused.to_string().contains("does not name minVersion"),
        "{refused}"
    );
    let refused = setup.expected(&newest, &to).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");

    let image = |digest: Digest| nobody(&format!("{{release: {}}}", release.with_digest(digest)));
    let there = reference(&target, "ns/openshift/release-images:4.14.2-x86_64");
    let there = to.client.manifest_digest(&there).await.unwrap().unwrap();
    let report = verified(setup, &image(there), &to).await;
    assert_eq!((report.images, report.faults.len()), (3, 0));
    let gone = image(Digest::sha256(b"gone"));
    let refused = setup.expected(&gone, &to).await.unwrap_err().to_string();
    assert!(
        refused.contains("is not there, and its source cannot be read"),
        "{refused}"
    );
    let planned = setup.plan_deletion(&gone, &to, false).await.unwrap();
    assert_eq!((planned.list.items.len(), planned.missing), (0, 1));
    assert!(
        planned.notes[0].contains("its source cannot be read"),
        "{:?}",
        planned.notes
    );
}

#[tokio::test]
async fn artifacts_of_releases_are_deleted_with_them() {
    let (platform, target) = released().await;
    let (set, to, progress) = (image_set(FIRST), target.target(), RunProgress::default());
    let payload = reference(&target, "ns/openshift/release-images:4.14.1-x86_64");
    let payload = to.client.manifest_digest(&payload).await.unwrap().unwrap();
    let signature = format!("ns/openshift/release-images:sha256-{}.sig", payload.hex());
    let signed = push(&target, &signature, b"signature".to_vec(), json!({})).await;
    let attested = format!("ns/openshift/release-images:sha256-{}.att", signed.hex());
    push(&target, &attested, b"attestation".to_vec(), json!({})).await;
    let setup = platform.setup(&set, &progress);
    let planned = setup.plan_deletion(&set.mirror, &to, true).await.unwrap();
    let images: Vec<_> = planned
        .list
        .items
        .iter()
        .map(|it| it.image.to_string())
        .collect();
    for name in [signature, attested] {
        assert!(
            images.contains(&reference(&target, &name).to_string()),
            "{images:?}"
        );
    }
    let report = verified(setup, &set.mirror, &to).await;
    assert_eq!((report.images, report.faults.len()), (5, 0));
}

/// Copies a set to the target, and records it.
pub(crate) async fn copied(setup: Setup<'_>, target: &MirrorTarget, state: &Path) {
    let (previous, store) = (
        PreviousRuns::default(),
        MetadataStore::Folder(state.to_owned()),
    );
    let prepared = setup.prepare(&previous, Some(target)).await.unwrap();
    let plan = setup
        .plan_copy(&prepared, &previous, target, Some(&store), true)
        .await;
    let PlannedCopy::Copy(plan) = plan.unwrap() else {
        panic!("nothing was copied yet");
    };
    copy(setup, prepared, *plan, target).await.unwrap();
}

#[tokio::test]
async fn images_of_charts_are_verified_and_deleted() {
    let (registry, target) = (Server::start().await, Server::start().await);
    let (site, chart) = charts::repository(&registry).await;
    let (set, progress) = (charts::image_set(&site, "web", ""), RunProgress::default());
    let folder = tempfile::tempdir().unwrap();
    let (setup, to) = (
        setup(&registry, &set, folder.path(), &progress),
        target.target(),
    );
    copied(setup, &to, &folder.path().join("state")).await;
    let report = verified(setup, &set.mirror, &to).await;
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    assert_eq!(report.absent, [reference(&target, "ns/acme/gone:v1")]);

    let planned = setup.plan_deletion(&set.mirror, &to, false).await.unwrap();
    let listed = BTreeMap::from([
        ("list", vec!["helmImage ns/acme/web".to_owned()]),
        ("kept", vec![]),
    ]);
    assert_eq!(summary(&planned), listed);
    assert_eq!(planned.missing, 1);

    // The same chart out of the results of that run.
    let path = folder.path().join("web-2.0.0.tgz");
    std::fs::write(&path, chart).unwrap();
    let local = MirrorSelection {
        helm: Helm {
            local: vec![Chart {
                path: path.to_str().unwrap().to_owned(),
                ..Chart::default()
            }],
            ..Helm::default()
        },
        ..MirrorSelection::default()
    };
    let planned = setup.plan_deletion(&local, &to, false).await.unwrap();
    assert_eq!(summary(&planned), listed);

    // The chart stays when only the image is deleted, and the image when only the chart is.
    let single = crate::runs::additional(&registry, &["acme/web:v2"]).mirror;
    let planned = setup.plan_deletion(&single, &to, false).await.unwrap();
    let stays = vec!["ns/acme/web: named by the chart web-2.0.0.tgz".to_owned()];
    assert_eq!(summary(&planned)["kept"], stays);
    drop(site);
    let planned = setup.plan_deletion(&local, &to, false).await.unwrap();
    assert_eq!(summary(&planned), listed);
    assert!(
        planned.notes[0].contains("charts that cannot be read here"),
        "{:?}",
        planned.notes
    );
    let refused = setup
        .plan_deletion(&set.mirror, &to, false)
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("helm.local"), "{refused}");
}
