//! Archives of the peer's v2, which are published here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use mirror::archive::{self, Set};
use mirror::progress::RunProgress;
use mirror::results::{self, Forms};
use mirror::run::{self, RunOutcome};
use model::image_set::ImageSet;
use oci::{Digest, media_type};
use serde_json::{Value, json};

use crate::content::reference;
use crate::runs::{setup, unpack};
use crate::server::Server;

/// Tag of the filtered catalog in the cache.
const FILTER: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
/// Digest of the catalog at its source, without the algorithm.
const ORIGINAL: &str = "aa11111111111111111111111111111111111111111111111111111111111111";

/// An archive in the making.
#[derive(Default)]
struct Archive {
    members: Vec<(String, Vec<u8>)>,
}

impl Archive {
    fn add(&mut self, path: impl Into<String>, content: impl Into<Vec<u8>>) {
        self.members.push((path.into(), content.into()));
    }

    fn blob(&mut self, content: &[u8]) -> Digest {
        let digest = Digest::sha256(content);
        let hex = digest.hex().to_owned();
        let path = format!("docker/registry/v2/blobs/sha256/{}/{hex}/data", &hex[..2]);
        if !self.members.iter().any(|(other, _)| *other == path) {
            self.add(path, content);
        }
        digest
    }

    /// Adds an image without a tag.
    fn image(&mut self, repository: &str, text: &str) -> Digest {
        let mut described = Vec::new();
        for (content, kind) in [
            (format!("layer of {text}"), media_type::OCI_LAYER),
            (json!({"author": text}).to_string(), media_type::OCI_CONFIG),
        ] {
            let digest = self.blob(content.as_bytes());
            self.link(repository, "_layers", &digest);
            described.push(json!({"mediaType": kind, "digest": digest, "size": content.len()}));
        }
        let [layer, config] = described.try_into().unwrap();
        let manifest = json!({
            "schemaVersion": 2, "mediaType": media_type::OCI_MANIFEST,
            "config": config, "layers": [layer],
        });
        self.manifest(repository, &manifest)
    }

    fn manifest(&mut self, repository: &str, manifest: &Value) -> Digest {
        let digest = self.blob(manifest.to_string().as_bytes());
        self.link(repository, "_manifests/revisions", &digest);
        digest
    }

    fn link(&mut self, repository: &str, folder: &str, digest: &Digest) {
        let below = format!("docker/registry/v2/repositories/{repository}/{folder}");
        self.add(
            format!("{below}/sha256/{}/link", digest.hex()),
            digest.to_string(),
        );
    }

    fn tag(&mut self, repository: &str, tag: &str, digest: &Digest) {
        let below = format!("docker/registry/v2/repositories/{repository}/_manifests/tags/{tag}");
        self.add(format!("{below}/current/link"), digest.to_string());
        let previous = format!("{below}/index/sha256/{}/link", digest.hex());
        self.add(previous, digest.to_string());
    }

    /// Leaves out a blob: a previous archive has it.
    fn forget(&mut self, digest: &Digest) {
        let hex = digest.hex();
        self.members
            .retain(|(path, _)| !path.contains(&format!("/{hex}/data")));
    }

    /// Writes it as so many files.
    fn write(mut self, folder: &Path, configuration: &str, files: usize) {
        self.add("isc_2026-11-20T10:00:00Z", configuration);
        fs::create_dir_all(folder).unwrap();
        let each = self.members.len().div_ceil(files);
        for (number, members) in self.members.chunks(each).enumerate() {
            let mut tar = tar::Builder::new(Vec::new());
            for (path, content) in members {
                let mut header = tar::Header::new_gnu();
                header.set_size(content.len() as u64);
                header.set_mode(0o644);
                tar.append_data(&mut header, path, &content[..]).unwrap();
            }
            let path = folder.join(format!("mirror_{:06}.tar", number + 1));
            fs::write(path, tar.into_inner().unwrap()).unwrap();
        }
    }
}

const CONFIGURATION: &str = "
apiVersion: mirror.openshift.io/v2alpha1
kind: ImageSetConfiguration
mirror:
  platform: {graph: true, channels: [{name: stable-4.14}]}
  operators:
  - catalog: registry.example/redhat/redhat-operator-index:v4.14
    packages: [{name: thing}]
  additionalImages:
  - name: quay.example/misc/tool:1.0
  - name: quay.example/misc/pinned@PINNED
  - name: quay.example/misc/moved:2.0
    targetRepo: other/place
    targetTag: v2
  - name: quay.example/misc/failed:1.0
";

/// An archive of all kinds of images, and the digests of some.
fn archive() -> (Archive, String) {
    let mut archive = Archive::default();
    let tool = archive.image("misc/tool", "tool");
    archive.tag("misc/tool", "1.0", &tool);
    let signature = archive.image("misc/tool", "signature");
    archive.tag(
        "misc/tool",
        &format!("sha256-{}.sig", tool.hex()),
        &signature,
    );
    let pinned = archive.image("misc/pinned", "pinned");
    archive.tag("misc/pinned", &format!("sha256-{}", pinned.hex()), &pinned);
    let moved = archive.image("other/place", "moved");
    archive.tag("other/place", "v2", &moved);
    // The cache of another configuration is in the same tree.
    let foreign = archive.image("misc/foreign", "foreign");
    archive.tag("misc/foreign", "1.0", &foreign);
    // A catalog, as it was filtered for this configuration and for another one.
    let index = "redhat/redhat-operator-index";
    let original = format!("sha256:{ORIGINAL}").parse().unwrap();
    archive.tag(index, "v4.14", &original);
    let other = archive.image(index, "filtered for another");
    archive.tag(index, "ff000000000000000000000000000000", &other);
    let part = archive.image(index, "filtered");
    let entry = json!({"mediaType": media_type::OCI_MANIFEST, "digest": part, "size": 400,
        "platform": {"os": "linux", "architecture": "amd64"}});
    let list =
        json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": [entry]});
    let filtered = archive.manifest(index, &list);
    archive.tag(index, FILTER, &filtered);
    let bundle = archive.image("acme/thing-bundle", "bundle");
    archive.tag(
        "acme/thing-bundle",
        &format!("sha256-{}", bundle.hex()),
        &bundle,
    );
    let related = archive.image("acme/related", "related");
    archive.tag("acme/related", "v3", &related);
    let below =
        format!("working-dir/operator-catalogs/redhat-operator-index/{ORIGINAL}/filtered-catalogs");
    for (filter, package) in [
        (FILTER, "thing"),
        ("ff000000000000000000000000000000", "zebra"),
    ] {
        let document = json!({
            "schema": "olm.bundle", "package": package, "name": "thing.v1",
            "image": format!("registry.example/acme/thing-bundle@{bundle}"),
            "relatedImages": [
                {"name": "a", "image": "registry.example/acme/related:v3"},
                {"name": "empty", "image": ""},
            ],
        });
        let folder = format!("{below}/{filter}");
        archive.add(format!("{folder}/digest"), filtered.hex());
        archive.add(
            format!("{folder}/catalog-config/{package}/catalog.json"),
            document.to_string(),
        );
    }
    // A release.
    let (release, component) = (
        archive.image("openshift/release-images", "release"),
        archive.image("openshift/release", "component"),
    );
    archive.tag("openshift/release-images", "4.14.1-x86_64", &release);
    archive.tag("openshift/release", "4.14.1-x86_64-etcd", &component);
    let references = json!({"kind": "ImageStream", "spec": {"tags": [
        {"name": "etcd", "from": {"kind": "DockerImage", "name": format!("quay.example/openshift-release-dev/ocp-v4.0-art-dev@{component}")}},
    ]}});
    archive.add(
        "working-dir/hold-release/ocp-release/4.14.1-x86_64/release-manifests/image-references",
        references.to_string(),
    );
    let signature = format!(
        "working-dir/signatures/4.14.1-x86_64-sha256-{}",
        release.hex()
    );
    archive.add(signature, "signed");
    let graph = archive.image("openshift/graph-image", "graph");
    archive.tag("openshift/graph-image", "latest", &graph);
    archive.add("working-dir/helm/charts/podinfo-6.5.4.tgz", "chart");
    archive.add("working-dir/logs/oc-mirror.log", "log");
    let configuration = CONFIGURATION.replace("PINNED", &pinned.to_string());
    (archive, configuration)
}

async fn publish(folder: &Path, server: &Server) -> Result<RunOutcome, mirror::Error> {
    let (set, progress) = (ImageSet::default(), RunProgress::default());
    let scratch = tempfile::tempdir().unwrap();
    let setup = setup(server, &set, scratch.path(), &progress);
    let opened = Set::open(folder)?;
    let outcome = unpack(setup, opened, &server.target()).await?;
    Ok(outcome.unwrap())
}

/// All tags of the target, each with its repository.
async fn tags(server: &Server) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for repository in server.client.catalog(&server.address).await.unwrap() {
        let tags = server
            .client
            .tags(&reference(server, &repository))
            .await
            .unwrap();
        all.extend(tags.iter().map(|tag| format!("{repository}:{tag}")));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn archives_are_published_under_the_names_of_the_peer() {
    let (server, dir) = (Server::start().await, tempfile::tempdir().unwrap());
    let (archive, configuration) = archive();
    archive.write(dir.path(), &configuration, 3);
    let outcome = publish(dir.path(), &server).await.unwrap();
    let tags: Vec<String> = tags(&server).await.into_iter().collect();
    insta::assert_snapshot!(tags.join("\n"));
    let mut all = Vec::new();
    let forms = Forms {
        mirror_sets: true,
        cluster_catalogs: true,
        ..Forms::default()
    };
    let ignored = [
        "mapping.txt",
        "imageContentSourcePolicy.yaml",
        "install-config/imageContentSources.yaml",
    ];
    for file in results::files(&outcome.results, &forms).unwrap() {
        if !ignored.contains(&file.path.as_str()) {
            let text = String::from_utf8_lossy(&file.content);
            all.push(format!("# {}\n{}", file.path, text.trim_end()));
        }
    }
    let all = all.join("\n").replace(&server.address, "target:5000");
    insta::assert_snapshot!(all);
    let charts: Vec<_> = outcome
        .results
        .charts
        .iter()
        .map(|it| it.path.as_str())
        .collect();
    assert_eq!(charts, ["charts/podinfo-6.5.4.tgz"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn later_archives_complete_what_earlier_ones_brought() {
    let (server, dir) = (Server::start().await, tempfile::tempdir().unwrap());
    let configuration = "
kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror: {additionalImages: [{name: 'q.example/a/old:1'}, {name: 'q.example/b/new:1'}]}
";
    let mut first = Archive::default();
    let old = first.image("a/old", "old");
    first.tag("a/old", "1", &old);
    first.write(&dir.path().join("1"), configuration, 1);
    // The new image has the old one's layer.
    let mut second = Archive::default();
    let old = second.image("a/old", "old");
    second.tag("a/old", "1", &old);
    let layer = Digest::sha256(b"layer of old");
    let config = second.blob(b"{}");
    second.link("b/new", "_layers", &layer);
    second.link("b/new", "_layers", &config);
    let manifest = json!({
        "schemaVersion": 2, "mediaType": media_type::OCI_MANIFEST,
        "config": {"mediaType": media_type::OCI_CONFIG, "digest": config, "size": 2},
        "layers": [{"mediaType": media_type::OCI_LAYER, "digest": layer, "size": 12}],
    });
    let new = second.manifest("b/new", &manifest);
    second.tag("b/new", "1", &new);
    let of_old = [old.clone(), layer, Digest::sha256(br#"{"author":"old"}"#)];
    for digest in &of_old {
        second.forget(digest);
    }
    let lines: Vec<_> = of_old.iter().map(Digest::to_string).collect();
    second.add(
        "working-dir/.history/.history-2026-11-20T10:00:00Z",
        lines.join("\n"),
    );
    second.write(&dir.path().join("2"), configuration, 1);

    let error = publish(&dir.path().join("2"), &server).await.unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("publish the archives before it first"),
        "{error}"
    );
    publish(&dir.path().join("1"), &server).await.unwrap();
    let outcome = publish(&dir.path().join("2"), &server).await.unwrap();
    assert_eq!(outcome.results.images.len(), 1);
    let tags: Vec<String> = tags(&server).await.into_iter().collect();
    assert_eq!(tags, ["ns/a/old:1", "ns/b/new:1"]);
    // Policies lead to the images of both.
    let all = run::archived_results(&Set::open(&dir.path().join("2")).unwrap(), &server.target());
    assert_eq!(all.unwrap().images.len(), 2);
}

#[test]
fn incomplete_archives_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (archive, configuration) = archive();
    archive.write(dir.path(), &configuration, 3);
    let refused = |set: Result<Set, mirror::Error>| set.unwrap_err().to_string();
    let verified = archive::verify(dir.path(), None, &RunProgress::default()).unwrap();
    assert!(verified.faults.is_empty(), "{:?}", verified.faults);
    let third = dir.path().join("mirror_000003.tar");
    let kept = fs::read(&third).unwrap();
    fs::remove_file(&third).unwrap();
    let error = refused(Set::open(dir.path()));
    assert!(
        error.contains("isc_<time>") && error.contains("a file of it is missing"),
        "{error}"
    );
    fs::write(&third, kept).unwrap();
    fs::remove_file(dir.path().join("mirror_000002.tar")).unwrap();
    let error = refused(Set::open(&third));
    assert!(error.contains("mirror_000002.tar"), "{error}");
}

#[test]
fn damaged_blobs_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let (mut archive, configuration) = archive();
    let layer = Digest::sha256(b"layer of tool");
    let members = archive.members.iter_mut();
    for (_, content) in
        members.filter(|(path, _)| path.contains(layer.hex()) && path.ends_with("data"))
    {
        content[0] ^= 1;
    }
    archive.write(dir.path(), &configuration, 1);
    let verified = archive::verify(dir.path(), None, &RunProgress::default()).unwrap();
    let faults: Vec<_> = verified.faults.iter().map(ToString::to_string).collect();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].contains("is damaged"), "{faults:?}");
}

/// A packed chart with one file.
fn chart(values: &str) -> Vec<u8> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let mut tar = tar::Builder::new(gzip);
    let mut header = tar::Header::new_gnu();
    header.set_size(values.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, "op/values.yaml", values.as_bytes())
        .unwrap();
    tar.into_inner().unwrap().finish().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn images_of_charts_are_published() {
    let (server, dir) = (Server::start().await, tempfile::tempdir().unwrap());
    let configuration = "
kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  helm: {repositories: [{name: own, url: 'https://charts.example', charts: [{name: op, version: 1.0.0}]}]}
  additionalImages: [{name: 'q.example/a/extra:1'}]
";
    let mut archive = Archive::default();
    for (repository, tag) in [("a/extra", "1"), ("b/charted", "v2"), ("c/kept", "v3")] {
        let image = archive.image(repository, repository);
        archive.tag(repository, tag, &image);
    }
    // Images of other configurations are in the tree of links, without their bytes.
    let foreign = archive.image("d/foreign", "foreign");
    archive.tag("d/foreign", "1", &foreign);
    archive.forget(&foreign);
    let values =
        "image: {repository: charts.example/b/charted, tag: v2}\nother: quay.example/c/kept:v3\n";
    archive.add("working-dir/helm/charts/op-1.0.0.tgz", chart(values));
    archive.write(dir.path(), configuration, 1);
    let outcome = publish(dir.path(), &server).await.unwrap();
    let there: Vec<String> = tags(&server).await.into_iter().collect();
    assert_eq!(there, ["ns/a/extra:1", "ns/b/charted:v2", "ns/c/kept:v3"]);
    let images = outcome.results.images.iter();
    let sources: BTreeSet<_> = images.map(|it| it.source.registry.to_string()).collect();
    let expected = ["charts.example", "q.example", "quay.example"].map(str::to_owned);
    assert_eq!(sources, expected.into());
    // Clusters reach them by their tags.
    assert!(outcome.results.images.iter().all(|it| it.is_tagged));
}
