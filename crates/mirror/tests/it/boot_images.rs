//! Boot images of releases: from web servers into archives and registries, as artifacts.

use bytes::Bytes;
use mirror::archive::Set;
use mirror::history::PreviousRuns;
use mirror::progress::RunProgress;
use mirror::results::{self, Forms};
use mirror::run::{self, CopyPlan, RunOutcome};
use mirror::verify_target;
use model::Error;
use oci::{Digest, Kind, Manifest, Reference, live_image};
use serde_json::{Value, json};

use crate::platform::{Platform, image_set_of};
use crate::runs::Setup;
use crate::server::Server;

const SET: &str = "{platform: {channels: [{name: stable-4.18}]}, bootImages: {}}";
const FILE: &str = "/os/rhcos-live.x86_64.iso";
const OS_VERSION: &str = "418.94.202501221327-0";
/// Units: bytes.
const SIZE: usize = 300_000;
/// Of the bytes before a response breaks off. Units: bytes.
const CUT: usize = 1000;

/// A live image, with other bytes everywhere.
fn live_image() -> Bytes {
    (0..SIZE / 4)
        .flat_map(|it| u32::try_from(it).unwrap().to_le_bytes())
        .collect()
}

/// Stream metadata with the live image of the site, for one architecture.
fn stream(platform: &Platform, sha256: &Digest) -> Value {
    let url = platform.site.url(FILE);
    let disk = json!({"location": url, "sha256": sha256.hex(), "signature": format!("{url}.sig")});
    let metal = json!({"release": OS_VERSION, "formats": {"iso": {"disk": disk}}});
    json!({"stream": "rhcos-4.18", "architectures": {"x86_64": {"artifacts": {"metal": metal}}}})
}

/// A platform with one release and its boot image.
async fn platform() -> Platform {
    let platform = Platform::start().await;
    platform.site.put(FILE, live_image());
    let stream = stream(&platform, &Digest::sha256(&live_image()));
    let release = platform.release_with("4.18.1", Some(stream)).await;
    platform.channel("stable-4.18", &[&release]);
    platform
}

fn place(target: &Server) -> Reference {
    let name = format!("ns/openshift/boot-images:{OS_VERSION}-x86_64");
    format!("{}/{name}", target.address).parse().unwrap()
}

/// Compares the artifact in the target with the live image.
async fn is_there(target: &Server) {
    let place = place(target);
    let manifest = target.client.pull_manifest(&place).await.unwrap();
    let digest = Digest::sha256(&live_image());
    let layer = live_image::layer(digest, SIZE as u64, "rhcos-live.x86_64.iso".to_owned());
    assert_eq!(manifest.bytes, live_image::manifest(&layer).unwrap().bytes);
    let bytes = target.client.pull_blob_bytes(&place, &layer, SIZE as u64);
    assert!(bytes.await.unwrap() == live_image());
}

fn os_images(outcome: &RunOutcome) -> Value {
    let files = results::files(&outcome.results, &Forms::default()).unwrap();
    let file = files
        .iter()
        .find(|it| it.path == "boot-images/os-images.json");
    serde_json::from_slice(&file.unwrap().content).unwrap()
}

fn expected_os_images(target: &Server) -> Value {
    json!([{
        "openshift_version": "4.18",
        "cpu_architecture": "x86_64",
        "url": format!("oci://{}", place(target)),
        "version": OS_VERSION,
        "sha256": Digest::sha256(&live_image()).hex(),
    }])
}

async fn copy(platform: &Platform, target: &Server) -> Result<RunOutcome, Error> {
    let (set, progress) = (image_set_of(SET), RunProgress::default());
    let setup = platform.setup(&set, &progress);
    let previous = PreviousRuns::default();
    let target = target.target();
    let prepared = setup.prepare(&previous, Some(&target)).await?;
    setup.copy(prepared, CopyPlan::default(), &target).await
}

#[tokio::test]
async fn boot_images_cross_in_archives_once() {
    let (platform, target) = (platform().await, Server::start().await);
    let [one, two] = ["1", "2"].map(|it| platform.folder.path().join(it));
    platform.site.cut(FILE, CUT);
    assert!(platform.pack(&image_set_of(SET), &one).await.unwrap());
    let rest = Some(format!("bytes={CUT}-"));
    assert_eq!(
        platform.site.ranges(FILE),
        [None, None, rest],
        "its size, the broken download, the rest"
    );
    let archives = Set::open(&one).unwrap();
    let blob = format!("blobs/{}", Digest::sha256(&live_image()));
    assert!(archives.place(&blob).is_some());
    let metadata = String::from_utf8(archives.stored_metadata().to_vec()).unwrap();
    assert!(!metadata.contains("bootImages"), "the peer would refuse it");

    let outcome = platform.publish(&one, &target).await;
    is_there(&target).await;
    assert_eq!(os_images(&outcome), expected_os_images(&target));
    let files = results::files(&outcome.results, &Forms::default()).unwrap();
    for policy in files.iter().filter(|it| it.path.contains(".yaml")) {
        let policy = String::from_utf8(policy.content.to_vec()).unwrap();
        assert!(!policy.contains("boot-images"), "{policy}");
    }

    assert!(!platform.pack(&image_set_of(SET), &two).await.unwrap());
    let stream = stream(&platform, &Digest::sha256(&live_image()));
    let later = platform.release_with("4.18.2", Some(stream)).await;
    platform.channel("stable-4.18", &[&later]);
    // A new workspace has the same history.
    let mut moved = platform;
    let _history = std::mem::replace(&mut moved.folder, tempfile::tempdir().unwrap());
    let two = moved.folder.path().join("2");
    assert!(moved.pack(&image_set_of(SET), &two).await.unwrap());
    assert_eq!(
        moved.site.ranges(FILE).len(),
        3,
        "it is not requested again"
    );
    assert!(Set::open(&two).unwrap().place(&blob).is_none());
    let outcome = moved.publish(&two, &target).await;
    assert_eq!(outcome.pruned, 2, "the first release and its own component");
    is_there(&target).await;
    assert_eq!(os_images(&outcome), expected_os_images(&target));
    let set = Set::open(&two).unwrap();
    let again = run::archived_results(&set, &target.target()).unwrap();
    assert_eq!(again.boot_images, outcome.results.boot_images);
}

#[tokio::test]
async fn boot_images_go_straight_to_registries() {
    let (platform, target) = (platform().await, Server::start().await);
    let (set, progress) = (image_set_of(SET), RunProgress::default());
    let setup = platform.setup(&set, &progress);
    let prepared = setup.prepare(&PreviousRuns::default(), None).await.unwrap();
    let mapping = run::mapping(&prepared, &target.target()).unwrap();
    assert!(
        mapping.contains(&format!("={}\n", place(&target))),
        "{mapping}"
    );
    let reasons = run::reasons(&prepared, "boot-images").join("\n");
    let url = platform.site.url(FILE);
    let reason = format!(": boot image of release 4.18.1-x86_64, from {url}");
    assert!(reasons.ends_with(&reason), "{reasons}");
    assert_eq!(
        platform.site.ranges(FILE).len(),
        1,
        "a dry run needs its size"
    );

    platform.site.cut(FILE, CUT);
    let outcome = copy(&platform, &target).await.unwrap();
    is_there(&target).await;
    assert_eq!(os_images(&outcome), expected_os_images(&target));
    assert_eq!(platform.site.ranges(FILE).len(), 4);

    let to = target.target();
    let expected = setup.expected(&set.mirror, &to).await.unwrap();
    let check = async || verify_target::check(&to, &expected, true, 4, &progress).await;
    assert_eq!(check().await.faults.len(), 0);
    let digest = target
        .client
        .manifest_digest(&place(&target))
        .await
        .unwrap();
    let artifact = place(&target).with_digest(digest.unwrap());
    target.client.delete_manifest(&artifact).await.unwrap();
    let faults = check().await.faults;
    let faults: Vec<_> = faults.iter().map(|(image, _)| image).collect();
    assert_eq!(faults, [&place(&target)]);
}

#[tokio::test]
async fn other_bytes_are_refused() {
    let (platform, target) = (platform().await, Server::start().await);
    let mut damaged = live_image().to_vec();
    damaged[SIZE / 2] ^= 1;
    platform.site.put(FILE, damaged);
    let refused = copy(&platform, &target).await.unwrap_err();
    let refused = model::error::chain(&refused);
    let expected = format!(
        "{}@{}: the received content has another digest",
        platform.site.url(FILE),
        Digest::sha256(&live_image())
    );
    assert!(refused.contains(&expected), "{refused}");
    let there = target.client.manifest_digest(&place(&target)).await;
    assert_eq!(there.unwrap(), None);

    let dest = platform.folder.path().join("1");
    let set = image_set_of(SET);
    let refused = platform.pack(&set, &dest).await.unwrap_err();
    let refused = model::error::chain(&refused);
    assert!(refused.contains(&expected), "{refused}");
    assert!(Set::open(&dest).is_err(), "no archive has its name");
    platform.site.put(FILE, live_image());
    assert!(platform.pack(&set, &dest).await.unwrap());
    platform.publish(&dest, &target).await;
    is_there(&target).await;
}

#[tokio::test]
async fn missing_boot_images_are_reported_or_skipped() {
    let platform = Platform::start().await;
    let stream = stream(&platform, &Digest::sha256(&live_image()));
    let with = platform.release_with("4.18.1", Some(stream)).await;
    let without = platform.release_with("4.18.2", None).await;
    platform.channel("stable-4.18", &[&with, &without]);
    let set = image_set_of(
        "{platform: {channels: [{name: stable-4.18, full: true}]}, bootImages: {architectures: [amd64, s390x]}}",
    );
    let progress = RunProgress::default();
    let setup = platform.setup(&set, &progress);
    let prepare = async |setup: Setup<'_>| setup.prepare(&PreviousRuns::default(), None).await;
    let refused = model::error::chain(&prepare(setup).await.unwrap_err());
    for missing in [
        "for s390x of release 4.18.1-x86_64",
        "for x86_64 of release 4.18.2-x86_64",
        "for s390x of release 4.18.2-x86_64",
    ] {
        assert!(refused.contains(missing), "{refused}");
    }
    assert!(
        !refused.contains("for x86_64 of release 4.18.1"),
        "{refused}"
    );

    let skipping = setup.with(|sources, _| {
        sources.skip_missing = true;
    });
    // Its server does not have the file yet.
    let refused = model::error::chain(&prepare(skipping).await.unwrap_err());
    let url = platform.site.url(FILE);
    assert!(
        refused.contains(&format!("{url} was not found")),
        "{refused}"
    );
    let mut continuing = skipping;
    continuing.context.limits.continue_on_error = true;
    let prepared = prepare(continuing).await.unwrap();
    let failed: Vec<_> = prepared
        .failed
        .iter()
        .map(|(it, _)| it.tag.as_str())
        .collect();
    assert_eq!(failed, [format!("{OS_VERSION}-x86_64")]);
    assert!(
        prepared.content.images.len() > 2,
        "the releases are mirrored"
    );
    platform.site.put(FILE, live_image());
    let prepared = prepare(skipping).await.unwrap();
    assert_eq!(prepared.notes.len(), 3, "{:?}", prepared.notes);
    let images = prepared.content.images.iter();
    let boot = images.filter(|it| it.wanted.repository.as_str() == "openshift/boot-images");
    let manifests: Vec<&Manifest> = boot
        .flat_map(|it| prepared.content.manifests_of(&it.digest))
        .collect();
    let [manifest] = manifests.as_slice() else {
        panic!("one is left: {manifests:?}");
    };
    assert!(matches!(&manifest.kind, Kind::Image { layers, .. } if layers.len() == 1));
}
