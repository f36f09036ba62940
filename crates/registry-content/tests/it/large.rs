//! Readings of a large registry that sends no notifications.

use std::collections::BTreeSet;

use oci::Digest;
use registry_content::{EarlierReadings, HeldRelease, RegistryContent};

use super::FakeRegistry;
use super::live_images::artifact;

const RELEASES: usize = 200;
const LIVE_IMAGES: usize = 100;
const REPOSITORIES: usize = 5_000;
/// Readings until nothing is left that was not asked for.
const ROUND: usize = 48;

fn tag(number: usize) -> String {
    format!("4.18.{number}-x86_64")
}

fn registry() -> FakeRegistry {
    let registry = FakeRegistry::default();
    for number in 0..RELEASES {
        let tag = tag(number);
        registry.put("openshift/release-images", &tag, Some(tag.clone()));
    }
    for number in 0..LIVE_IMAGES {
        let tag = format!("418.94.{number}-0-x86_64");
        registry.put("openshift/boot-images", &tag, Some(artifact(&["a.iso"])));
    }
    for number in 2..REPOSITORIES {
        let name = format!("apps/a{number}");
        registry.put(&name, "1.0", None);
        registry.put(&name, "1.1", None);
    }
    registry
}

#[tokio::test]
async fn an_hour_costs_less_than_a_request_for_each_release() {
    let registry = registry();
    let (reader, address) = registry.serve().await;
    let release = |number: usize| HeldRelease {
        image: format!("{address}/openshift/release-images:{}", tag(number)),
        digest: Digest::sha256(tag(number).as_bytes()).to_string(),
        version: format!("4.18.{number}"),
        architectures: vec!["x86_64".to_owned()],
        ..HeldRelease::default()
    };
    let known = RegistryContent {
        releases: (0..RELEASES).map(release).collect(),
        ..RegistryContent::default()
    };
    let mut earlier = EarlierReadings::default();
    let known = reader.read(&known, &mut earlier).await.unwrap();
    assert_eq!(
        (known.releases.len(), known.live_images.len()),
        (RELEASES, LIVE_IMAGES)
    );
    registry.requests();
    let mut asked = BTreeSet::new();
    for hour in 1..=ROUND {
        let read = reader.read(&known, &mut earlier).await.unwrap();
        assert_eq!(read, known);
        let of_hour = registry.requests();
        assert!(of_hour.len() <= RELEASES, "hour {hour}: {}", of_hour.len());
        asked.extend(of_hour);
    }
    let of = |end: &str| asked.iter().filter(|path| path.contains(end)).count();
    assert_eq!(
        (of("/tags/list"), of("/manifests/")),
        (REPOSITORIES, RELEASES + LIVE_IMAGES)
    );

    // A report is followed at once, also for a repository that had no release.
    let name = "apps/a7".to_owned();
    let changed = BTreeSet::from([name.clone()]);
    earlier.forget(&changed);
    reader.read_changed(&known, &changed).await.unwrap();
    let paths = registry.requests();
    assert!(
        paths.contains(&format!("/v2/{name}/tags/list")),
        "{paths:?}"
    );
    assert_eq!(paths.len(), 3, "{paths:?}");
}
