//! Archives in the manner of the peer's v2, as this tool writes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use mirror::archive::{self, Set};
use mirror::config::{self, Configuration};
use mirror::history::{MetadataStore, PreviousRuns};
use mirror::names::Naming;
use mirror::progress::RunProgress;
use mirror::run::{CatalogForm, PlannedArchives, V2Archives};
use model::image_set::ImageSet;
use oci::Digest;

use crate::content::{push, push_catalog, reference};
use crate::runs::{setup, unpack};
use crate::server::Server;

/// A workspace of v2, and the configuration of its runs.
struct Workspace<'a> {
    source: &'a Server,
    folder: &'a Path,
    images: Vec<String>,
    /// Further catalogs of the configuration.
    catalogs: String,
}

impl Workspace<'_> {
    fn configuration(&self) -> String {
        let address = &self.source.address;
        let images = self.images.iter();
        let images = images.map(|image| format!("  - name: {address}/{image}\n"));
        format!(
            "kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
  - catalog: {address}/acme/index:v1
    packages: [{{name: thing}}]
  - catalog: {address}/acme/index:v1
    targetTag: whole
    full: true
{}  additionalImages:
{}",
            self.catalogs,
            images.collect::<String>()
        )
    }

    /// Packs, and returns the paths of the archives; none where nothing is new.
    async fn pack(&self, now: i64, is_strict: bool) -> Result<Vec<PathBuf>, mirror::Error> {
        let text = self.configuration();
        let set = match config::parse(text.as_bytes()).unwrap() {
            Configuration::Mirror(set) => set,
            Configuration::Delete(_) => panic!("it says what is mirrored"),
        };
        let (progress, history) = (RunProgress::default(), self.folder.join("history"));
        let setup = setup(self.source, &set, self.folder, &progress).with(|_, context| {
            context.naming = Naming::V2;
            context.catalogs = CatalogForm::Tagged;
            context.v2_archives = Some(V2Archives {
                configuration: &text,
                history: &history,
                is_strict,
            });
            context.now = now;
        });
        let store = MetadataStore::Runs(history.clone());
        let previous = match store.read().await? {
            None => PreviousRuns::of_peer(&history, None)?,
            last => PreviousRuns::new(last),
        };
        let prepared = setup.prepare(&previous, None).await?;
        match setup.plan_archives(&prepared, &previous, None)? {
            PlannedArchives::Nothing(_) => Ok(Vec::new()),
            PlannedArchives::Archives(archives) => {
                setup
                    .write_archives(*archives, Some(&store), self.folder)
                    .await
            }
        }
    }
}

/// The members of an archive with their content.
fn members(file: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(File::open(file).unwrap());
    let mut members = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = String::from_utf8(entry.path_bytes().to_vec()).unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        members.insert(path, content);
    }
    members
}

/// The same archive without the members of this tool: as the peer reads it.
fn peers_part(file: &Path, folder: &Path) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    let mut tar = tar::Builder::new(Vec::new());
    for (path, content) in members(file) {
        let is_peers = ["docker/", "working-dir/", "isc_"]
            .iter()
            .any(|start| path.starts_with(start));
        if is_peers && !path.ends_with('/') {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, &path, &content[..]).unwrap();
        }
    }
    let path = folder.join("mirror_000001.tar");
    fs::write(&path, tar.into_inner().unwrap()).unwrap();
    path
}

async fn digest_of(server: &Server, name: &str) -> Digest {
    let reference = reference(server, name);
    let digest = server.client.manifest_digest(&reference).await;
    digest.unwrap().unwrap()
}

/// Publishes the archives of a folder; all tags of the target with their digests.
async fn publish(folder: &Path, target: &Server) -> BTreeMap<String, Digest> {
    let (set, progress) = (ImageSet::default(), RunProgress::default());
    let scratch = tempfile::tempdir().unwrap();
    let setup = setup(target, &set, scratch.path(), &progress).with(|_, context| {
        context.catalogs = CatalogForm::Tagged;
        context.naming = Naming::V2;
    });
    unpack(setup, Set::open(folder).unwrap(), &target.target())
        .await
        .unwrap();
    let mut found = BTreeMap::new();
    for repository in target.client.catalog(&target.address).await.unwrap() {
        let place = reference(target, &repository);
        for tag in target.client.tags(&place).await.unwrap() {
            let name = format!("{repository}:{tag}");
            let digest = digest_of(target, &name).await;
            found.insert(name, digest);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn both_readers_publish_the_same() {
    let (source, dir) = (Server::start().await, tempfile::tempdir().unwrap());
    push_catalog(&source, 3).await;
    let original = digest_of(&source, "acme/index:v1").await;
    let index = format!("{}/acme/index@{original}", source.address);
    let workspace = Workspace {
        source: &source,
        folder: dir.path(),
        images: vec!["acme/extra:v1".into()],
        // It has the digest of its part as its tag.
        catalogs: format!(
            "  - catalog: {index}\n    targetCatalog: by/digest\n    packages: [{{name: other}}]\n"
        ),
    };
    let written = workspace.pack(1_795_241_937, false).await.unwrap();
    assert_eq!(written, [dir.path().join("mirror_000001.tar")]);
    let verified = archive::verify(dir.path(), None, &RunProgress::default()).unwrap();
    assert!(verified.faults.is_empty(), "{:?}", verified.faults);
    assert!(verified.has_index);

    let (own, peers) = (Server::start().await, Server::start().await);
    let there = publish(dir.path(), &own).await;
    let part = dir.path().join("peer");
    let configuration = {
        let archive = peers_part(&written[0], &part);
        let all = members(&archive);
        let of_time = "isc_2026-11-21T06:18:57Z";
        String::from_utf8(all[of_time].clone()).unwrap()
    };
    assert_eq!(configuration, workspace.configuration());
    assert_eq!(publish(&part, &peers).await, there);
    for name in [
        "ns/acme/extra:v1",
        "ns/acme/index:v1",
        "ns/acme/index:whole",
    ] {
        assert!(there.contains_key(name), "{name}: {there:?}");
    }
    assert_eq!(there["ns/acme/index:whole"], original);
    let mut by_digest = there
        .iter()
        .filter(|(name, _)| name.starts_with("ns/by/digest:"));
    let (name, digest) = by_digest.next().unwrap();
    assert_eq!(*name, format!("ns/by/digest:sha256-{}", digest.hex()));
    assert_ne!(*digest, original);
}

/// The peer finds a catalog by the digest that its tag has in the cache, and its part by the digest of the configuration.
#[tokio::test(flavor = "multi_thread")]
async fn catalogs_are_where_the_peer_looks_for_them() {
    let (source, dir) = (Server::start().await, tempfile::tempdir().unwrap());
    push_catalog(&source, 2).await;
    let workspace = Workspace {
        source: &source,
        folder: dir.path(),
        images: vec!["acme/extra:v1".into()],
        catalogs: String::new(),
    };
    let written = workspace.pack(1_795_241_937, false).await.unwrap();
    let members = members(&written[0]);
    let tags = "docker/registry/v2/repositories/acme/index/_manifests/tags";
    let current = |tag: &str| {
        let link = &members[&format!("{tags}/{tag}/current/link")];
        String::from_utf8(link.clone()).unwrap()
    };
    let original = digest_of(&source, "acme/index:v1").await;
    for tag in ["v1", "whole"] {
        assert_eq!(current(tag), original.to_string());
    }
    let below = format!(
        "working-dir/operator-catalogs/index/{}/filtered-catalogs/",
        original.hex()
    );
    let mut packages = BTreeSet::new();
    let digests = members.iter().filter_map(|(path, content)| {
        let tag = path.strip_prefix(&below)?.strip_suffix("/digest")?;
        Some((tag, String::from_utf8(content.clone()).unwrap()))
    });
    for (tag, digest) in digests {
        assert_eq!(current(tag), format!("sha256:{digest}"));
        let files = format!("{below}{tag}/catalog-config/");
        let of_tag = members.keys().filter_map(|path| path.strip_prefix(&files));
        let of_tag: Vec<_> = of_tag
            .filter(|path| !path.is_empty() && !path.ends_with('/'))
            .collect();
        packages.insert(of_tag);
    }
    let expected = [vec!["other/catalog.json", "thing/catalog.json"]];
    assert_eq!(packages.into_iter().collect::<Vec<_>>(), expected);
    // Every link has its content.
    for (path, link) in &members {
        if path.ends_with("/link") {
            let link = String::from_utf8(link.clone()).unwrap();
            let hex = link.strip_prefix("sha256:").unwrap();
            let data = format!("docker/registry/v2/blobs/sha256/{}/{hex}/data", &hex[..2]);
            assert!(members.contains_key(&data), "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn later_archives_replace_earlier_ones_and_have_what_is_new() {
    let (source, dir) = (Server::start().await, tempfile::tempdir().unwrap());
    push_catalog(&source, 1).await;
    push(
        &source,
        "acme/new:v1",
        b"new".to_vec(),
        serde_json::json!({}),
    )
    .await;
    let mut workspace = Workspace {
        source: &source,
        folder: dir.path(),
        images: vec!["acme/extra:v1".into()],
        catalogs: String::new(),
    };
    let first = workspace.pack(1_795_241_937, false).await.unwrap();
    let earlier = dir.path().join("earlier");
    fs::create_dir(&earlier).unwrap();
    fs::copy(&first[0], earlier.join("mirror_000001.tar")).unwrap();
    workspace.images.push("acme/new:v1".into());
    let second = workspace.pack(1_795_241_999, false).await.unwrap();
    assert_eq!(first, second);
    let has = |file: &Path, content: &[u8]| {
        let hex = Digest::sha256(content).hex().to_owned();
        let data = format!("docker/registry/v2/blobs/sha256/{}/{hex}/data", &hex[..2]);
        members(file).contains_key(&data)
    };
    assert!(has(&second[0], b"new") && !has(&second[0], b"extra"));
    assert!(has(&earlier.join("mirror_000001.tar"), b"extra"));
    let lists = |folder: &str| {
        let files = members(&second[0]).into_iter();
        let lists = files.filter(|(path, _)| path.starts_with(folder) && !path.ends_with('/'));
        lists.collect::<Vec<_>>()
    };
    let [(name, list)] = &lists("working-dir/.history/")[..] else {
        panic!("one list of the blobs before");
    };
    assert!(name.ends_with("/.history-2026-11-21T06:18:57Z"), "{name}");
    let extra = Digest::sha256(b"extra").to_string();
    assert!(String::from_utf8_lossy(list).contains(&extra));
    let kept = dir.path().join("history/.history-2026-11-21T06:19:59Z");
    let kept = fs::read_to_string(kept).unwrap();
    assert!(kept.contains(&extra) && kept.contains(&Digest::sha256(b"new").to_string()));
    assert_eq!(workspace.pack(1_795_242_000, false).await.unwrap().len(), 0);

    let target = Server::start().await;
    publish(&earlier, &target).await;
    let second_alone = dir.path().join("second");
    fs::create_dir(&second_alone).unwrap();
    fs::copy(&second[0], second_alone.join("mirror_000001.tar")).unwrap();
    let there = publish(&second_alone, &target).await;
    assert!(there.contains_key("ns/acme/new:v1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_of_the_peer_is_continued() {
    let (source, dir) = (Server::start().await, tempfile::tempdir().unwrap());
    push_catalog(&source, 1).await;
    let workspace = Workspace {
        source: &source,
        folder: dir.path(),
        images: vec!["acme/extra:v1".into()],
        catalogs: String::new(),
    };
    let first = workspace.pack(1_795_241_937, false).await.unwrap();
    let (target, earlier) = (Server::start().await, dir.path().join("earlier"));
    peers_part(&first[0], &earlier);
    publish(&earlier, &target).await;
    // The peer's workspace has lists alone.
    fs::remove_file(dir.path().join("history/run-000001.json")).unwrap();
    let second = workspace.pack(1_795_241_999, false).await.unwrap();
    let extra = Digest::sha256(b"extra").hex().to_owned();
    let data = format!(
        "docker/registry/v2/blobs/sha256/{}/{extra}/data",
        &extra[..2]
    );
    assert!(!members(&second[0]).contains_key(&data));
    fs::remove_dir_all(&earlier).unwrap();
    fs::create_dir(&earlier).unwrap();
    fs::copy(&second[0], earlier.join("mirror_000001.tar")).unwrap();
    let there = publish(&earlier, &target).await;
    assert!(there.contains_key("ns/acme/extra:v1"));
}
