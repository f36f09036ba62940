//! Archives of another such tool that we publish, and the reverse.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mirror::archive::Set;
use mirror::history::{MetadataStore, PreviousRuns};
use mirror::progress::RunProgress;
use mirror::publish::MirrorTarget;
use mirror::results;
use mirror::run::PlannedArchives;
use oci::Reference;
use serde_json::Value;

use crate::content::reference;
use crate::runs::{bundles_of, configuration, image_set, push_catalog, setup, unpack};
use crate::server::Server;

const CATALOG: &str = "acme/index";
/// Repository of metadata in targets.
const METADATA: &str = "oc-mirror";
const SOURCE_FLAGS: [&str; 2] = ["--source-use-http", "--source-skip-tls"];
const TARGET_FLAGS: [&str; 2] = ["--dest-use-http", "--dest-skip-tls"];

/// The other tool.
struct Peer(Vec<String>);

impl Peer {
    /// Runs it in `folder`; its output.
    fn run(&self, folder: &Path, arguments: &[&str]) -> String {
        fs::create_dir_all(folder).unwrap();
        let mut command = Command::new(&self.0[0]);
        command
            .args(&self.0[1..])
            .args(arguments)
            .current_dir(folder);
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn pack(&self, source: &Server, store: &Path, to: &Path, folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        let file = folder.join("config.yaml");
        fs::write(&file, configuration(source, store.to_str().unwrap())).unwrap();
        let (file, to) = (file.to_str().unwrap(), format!("file://{}", to.display()));
        self.run(
            folder,
            &[&["--config", file, &to][..], &SOURCE_FLAGS].concat(),
        );
    }

    /// Publishes an archive; the mapping.
    fn publish(&self, from: &Path, target: &MirrorTarget, folder: &Path) -> BTreeSet<String> {
        let to = format!("docker://{}/{}", target.registry, target.namespace);
        let from = from.to_str().unwrap();
        self.run(
            folder,
            &[&["--from", from, &to][..], &TARGET_FLAGS].concat(),
        );
        let results = fs::read_dir(folder.join("oc-mirror-workspace")).unwrap();
        let results = results.map(|entry| entry.unwrap().path());
        let mapping: PathBuf = results
            .map(|folder| folder.join("mapping.txt"))
            .find(|it| it.exists())
            .unwrap();
        lines(&fs::read_to_string(mapping).unwrap(), target)
    }
}

/// A mapping without the namespace of its target.
fn lines(mapping: &str, target: &MirrorTarget) -> BTreeSet<String> {
    let above = format!("={}/{}/", target.registry, target.namespace);
    mapping
        .lines()
        .map(|line| line.replace(&above, "="))
        .collect()
}

async fn pack(source: &Server, store: PathBuf, to: &Path, folder: &Path) {
    let (set, progress) = (image_set(source), RunProgress::default());
    let setup = setup(source, &set, folder, &progress);
    let store = MetadataStore::Folder(store);
    let previous = PreviousRuns::new(store.read().await.unwrap());
    let prepared = setup.prepare(&previous, None).await.unwrap();
    let PlannedArchives::Archives(archives) =
        setup.plan_archives(&prepared, &previous, None).unwrap()
    else {
        panic!("there is something new");
    };
    setup
        .write_archives(*archives, Some(&store), to)
        .await
        .unwrap();
}

async fn publish(
    source: &Server,
    from: &Path,
    target: &MirrorTarget,
    folder: &Path,
) -> BTreeSet<String> {
    let (set, progress) = (image_set(source), RunProgress::default());
    let setup = setup(source, &set, folder, &progress);
    let archives = Set::open(from).unwrap();
    let outcome = unpack(setup, archives, target).await.unwrap();
    let outcome = outcome.expect("the target does not have it");
    lines(&results::mapping(&outcome.results), target)
}

/// Content below a namespace: digests by repository and tag. Those of catalogs and metadata are not comparable.
async fn content(server: &Server, namespace: &str) -> BTreeMap<String, String> {
    let mut content = BTreeMap::new();
    for repository in server.client.catalog(&server.address).await.unwrap() {
        let Some(below) = repository.strip_prefix(&format!("{namespace}/")) else {
            continue;
        };
        let named = reference(server, &repository);
        for tag in server.client.tags(&named).await.unwrap() {
            let reference = Reference {
                tag: Some(tag.clone()),
                ..named.clone()
            };
            let digest = server
                .client
                .manifest_digest(&reference)
                .await
                .unwrap()
                .unwrap();
            match below {
                METADATA => content.insert(below.to_owned(), String::new()),
                CATALOG => content.insert(format!("{below}:{tag}"), String::new()),
                _ => content.insert(format!("{below}:{tag}"), digest.to_string()),
            };
        }
    }
    content
}

#[expect(clippy::disallowed_methods, reason = "named for this test alone")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs another mirroring tool: ATOLL_ORACLE_OC_MIRROR=program, with the flags that make it v1 behind it"]
async fn archives_are_read_and_written_as_the_peer_does() {
    let words = std::env::var("ATOLL_ORACLE_OC_MIRROR").unwrap();
    let peer = Peer(words.split_whitespace().map(str::to_owned).collect());
    let (source, server) = (Server::start().await, Server::start().await);
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    let target = |namespace: &str| MirrorTarget {
        namespace: namespace.to_owned(),
        ..server.target()
    };
    // In the second round each continues the other's set.
    for (round, versions) in [(1, 2), (2, 3)] {
        push_catalog(&source, versions).await;
        let (theirs, ours) = (at(&format!("theirs-{round}")), at(&format!("ours-{round}")));
        let mut stores = ["begun-by-them", "begun-by-us"];
        if round == 2 {
            stores.reverse();
        }
        let [their_store, our_store] = stores;
        let work = at(&format!("work-{round}"));
        fs::create_dir(&work).unwrap();
        tokio::task::block_in_place(|| {
            peer.pack(&source, &at(their_store), &theirs, &work.join("pack"));
        });
        pack(&source, at(our_store), &ours, &work).await;
        let mut mappings = Vec::new();
        for (archive, store) in [(&theirs, their_store), (&ours, our_store)] {
            let namespace = format!("by-them/{store}");
            let folder = work.join(&namespace);
            let by_them =
                tokio::task::block_in_place(|| peer.publish(archive, &target(&namespace), &folder));
            mappings.push(by_them);
            let by_us = target(&format!("by-us/{store}"));
            mappings.push(publish(&source, archive, &by_us, &work).await);
            let described = tokio::task::block_in_place(|| {
                peer.run(&work, &["describe", archive.to_str().unwrap()])
            });
            let described: Value = serde_json::from_str(&described).unwrap();
            let stored = Set::open(archive).unwrap().stored_metadata().clone();
            assert_eq!(described, serde_json::from_slice::<Value>(&stored).unwrap());
        }
        let mut contents = Vec::new();
        let mut catalogs = Vec::new();
        for who in ["by-them", "by-us"] {
            for store in stores {
                let namespace = format!("{who}/{store}");
                let catalog = format!("{namespace}/{CATALOG}:v1");
                contents.push(content(&server, &namespace).await);
                catalogs.push(bundles_of(&server, &catalog, scratch.path()).await);
            }
        }
        assert!(mappings[0].len() >= 3, "{mappings:?}");
        assert!(
            mappings.iter().all(|it| *it == mappings[0]),
            "{mappings:#?}"
        );
        assert!(
            contents.iter().all(|it| *it == contents[0]),
            "{contents:#?}"
        );
        assert!(
            catalogs.iter().all(|it| *it == catalogs[0]),
            "{catalogs:#?}"
        );
    }
}
