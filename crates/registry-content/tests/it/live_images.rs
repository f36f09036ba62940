//! Live images that are artifacts.

use std::collections::BTreeSet;

use oci::{Digest, live_image};
use registry_content::{
    ContentReader, EarlierReadings, HeldBootImage, HeldRelease, RegistryContent, os_images,
};
use serde_json::json;

use super::FakeRegistry;

const RELEASES: &str = "openshift/release-images";

/// The manifest of an artifact with files of these names.
pub(super) fn artifact(titles: &[&str]) -> String {
    let layers = titles.iter().map(|title| {
        let digest = Digest::sha256(title.as_bytes());
        live_image::layer(digest, 1, (*title).to_owned())
    });
    let layers: Vec<_> = layers.collect();
    let config = json!({
        "mediaType": "application/vnd.oci.empty.v1+json",
        "digest": Digest::sha256(live_image::CONFIG),
        "size": live_image::CONFIG.len(),
    });
    let kind = oci::media_type::OCI_MANIFEST;
    json!({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": layers}).to_string()
}

/// A registry with a release, whose payload has no live images.
struct Site {
    registry: FakeRegistry,
    reader: ContentReader,
    address: String,
    content: RegistryContent,
    earlier: EarlierReadings,
}

impl Site {
    async fn new() -> Self {
        let registry = FakeRegistry::default();
        let (reader, address) = registry.serve().await;
        let tag = "4.18.7-x86_64";
        registry.put(RELEASES, tag, Some(tag.to_owned()));
        let release = HeldRelease {
            image: format!("{address}/{RELEASES}:{tag}"),
            digest: Digest::sha256(tag.as_bytes()).to_string(),
            version: "4.18.7".to_owned(),
            architectures: vec!["x86_64".to_owned()],
            boot_images: vec![HeldBootImage {
                architecture: "x86_64".to_owned(),
                version: "418.94.1-0".to_owned(),
                ..HeldBootImage::default()
            }],
            ..HeldRelease::default()
        };
        Self {
            registry,
            reader,
            address,
            content: RegistryContent {
                releases: vec![release],
                ..RegistryContent::default()
            },
            earlier: EarlierReadings::default(),
        }
    }

    fn put(&self, tag: &str, manifest: Option<String>) {
        self.registry.put(live_image::REPOSITORY, tag, manifest);
    }

    /// Reads everything; the number of requests.
    async fn read(&mut self) -> usize {
        let read = self.reader.read(&self.content, &mut self.earlier).await;
        self.content = read.unwrap();
        assert_eq!(self.content.releases.len(), 1);
        self.registry.requests().len()
    }

    /// Reads after a report of the registry; the number of requests.
    async fn read_changed(&mut self, repository: &str) -> usize {
        let changed = BTreeSet::from([repository.to_owned()]);
        self.earlier.forget(&changed);
        let read = self.reader.read_changed(&self.content, &changed).await;
        self.content = read.unwrap();
        self.registry.requests().len()
    }

    /// The url of the only live image on offer, and its version.
    fn offered(&self) -> Option<(String, String)> {
        let images = os_images(&self.content).into_iter();
        let images: Vec<_> = images.map(|it| (it.url, it.version)).collect();
        assert!(images.len() <= 1, "{images:?}");
        images.into_iter().next()
    }

    fn expected(&self, manifest: &str, version: &str) -> (String, String) {
        let digest = Digest::sha256(manifest.as_bytes());
        let place = format!("oci://{}/{}", self.address, live_image::REPOSITORY);
        (format!("{place}@{digest}"), version.to_owned())
    }
}

#[tokio::test]
async fn live_images_that_arrive_after_their_release_are_on_offer() {
    let mut site = Site::new().await;
    site.read().await;
    assert_eq!(site.offered(), None);

    let mirrored = artifact(&["rhcos-418.94.1-0-live.x86_64.iso"]);
    site.put("418.94.1-0-x86_64", Some(mirrored.clone()));
    // The tags of two repositories, a digest and a manifest.
    assert_eq!(site.read_changed(live_image::REPOSITORY).await, 4);
    assert_eq!(site.offered(), Some(site.expected(&mirrored, "418.94.1-0")));

    let own = artifact(&["rhcos-418.94.2-0.iso"]);
    site.put("4.18-x86_64", Some(own.clone()));
    site.read().await;
    assert_eq!(site.offered(), Some(site.expected(&own, "418.94.2-0")));

    // Known ones cost no request.
    assert_eq!(site.read_changed(RELEASES).await, 3);
    assert_eq!(site.offered(), Some(site.expected(&own, "418.94.2-0")));
    site.registry.remove(live_image::REPOSITORY, "4.18-x86_64");
    site.read_changed(live_image::REPOSITORY).await;
    assert_eq!(site.offered(), Some(site.expected(&mirrored, "418.94.1-0")));
}

#[tokio::test]
async fn broken_live_images_are_named_and_change_nothing_else() {
    let mut site = Site::new().await;
    let own = artifact(&["own.iso"]);
    site.put("4.18-x86_64", Some(own.clone()));
    site.put("4.18-sparc", None);
    site.put("4.19-x86_64", Some(artifact(&["a.iso", "b.iso"])));
    site.put("4.20-x86_64", None);
    site.put("4.21-x86_64", Some("[]".to_owned()));
    site.read().await;
    assert_eq!(site.offered(), Some(site.expected(&own, "own")));
    let rejected = site.content.rejected.iter();
    let named: Vec<_> = rejected
        .map(|it| it.image.rsplit(':').next().unwrap())
        .collect();
    assert_eq!(named, ["4.19-x86_64", "4.21-x86_64"]);
}
