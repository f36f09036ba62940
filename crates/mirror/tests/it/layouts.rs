//! Image layouts: as the target of runs, and as the source of single images.

use std::fs;
use std::path::{Path, PathBuf};

use mirror::archive::Set;
use mirror::history::{MetadataStore, PreviousRuns};
use mirror::operators::OpenedCatalog;
use mirror::progress::RunProgress;
use mirror::publish::MirrorTarget;
use mirror::results::{self, Forms};
use mirror::run::{CopyPlan, PlannedArchives, PlannedCopy, RunOutcome};
use model::Error;
use model::image_set::{self, ImageSet, Storage};
use oci::{Reference, Registry};
use oci_client::image::{ImageLocation, Layout};
use serde_json::json;

use crate::runs::{additional, copy, image_set, push, push_catalog, reference, setup, unpack};
use crate::server::Server;

/// A source, and a folder for all that is written.
struct Site {
    source: Server,
    folder: tempfile::TempDir,
}

impl Site {
    async fn new() -> Self {
        Self {
            source: Server::start().await,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// That folder as a target.
    fn target(&self, name: &str) -> MirrorTarget {
        MirrorTarget {
            client: self.source.client.clone(),
            registry: Registry::Layout(self.path(name)),
            namespace: String::new(),
            max_components: 0,
        }
    }

    async fn copy(&self, set: &ImageSet, target: &MirrorTarget) -> Result<RunOutcome, Error> {
        let progress = RunProgress::default();
        let setup = setup(&self.source, set, self.folder.path(), &progress);
        let prepared = setup
            .prepare(&PreviousRuns::default(), Some(target))
            .await?;
        setup.copy(prepared, CopyPlan::default(), target).await
    }

    async fn there(&self, target: &MirrorTarget, name: &str) -> Option<oci::Digest> {
        let name = format!("{}:{name}", target.registry);
        let name = Reference::parse_local(&name).unwrap();
        target.client.manifest_digest(&name).await.unwrap()
    }
}

/// Copies an image into a layout below `folder`; its name in configurations.
pub(crate) async fn layout_of(source: &Server, name: &str, folder: &Path) -> String {
    let registry = Registry::Layout(folder.join("layout"));
    let target = MirrorTarget {
        client: source.client.clone(),
        registry: registry.clone(),
        namespace: String::new(),
        max_components: 0,
    };
    let (set, progress) = (additional(source, &[name]), RunProgress::default());
    let setup = setup(source, &set, folder, &progress);
    let prepared = setup.prepare(&PreviousRuns::default(), Some(&target)).await;
    setup
        .copy(prepared.unwrap(), CopyPlan::default(), &target)
        .await
        .unwrap();
    registry.to_string()
}

/// A set of one image in a folder.
fn of_folder(name: &str) -> ImageSet {
    let mut set = ImageSet::default();
    set.mirror
        .additional_images
        .push(image_set::ImageSelection {
            name: name.to_owned(),
            ..image_set::ImageSelection::default()
        });
    set
}

fn layout(folder: &Path, name: &str) -> Layout {
    Layout {
        folder: folder.to_owned(),
        name: Some(name.to_owned()),
    }
}

fn blobs(folder: &Path) -> usize {
    fs::read_dir(folder.join("blobs/sha256")).unwrap().count()
}

#[tokio::test]
async fn a_set_goes_into_a_folder_and_from_there_on() {
    let site = Site::new().await;
    push_catalog(&site.source, 2).await;
    let set = image_set(&site.source);
    let (out, target) = (site.path("out"), site.target("out"));
    let outcome = site.copy(&set, &target).await.unwrap();
    assert!(outcome.sent.items > 0);
    for image in &outcome.results.images {
        let place = ImageLocation::Layout(layout(
            &out,
            image.destination.to_string().rsplit_once("out:").unwrap().1,
        ));
        assert_eq!(
            place.digest().await.ok(),
            image.source.digest,
            "{}",
            image.destination
        );
    }
    // Clusters cannot pull from layouts: there are no policies.
    let forms = Forms {
        mirror_sets: true,
        cluster_catalogs: true,
        registries_conf: true,
        ..Forms::default()
    };
    let files = results::files(&outcome.results, &forms).unwrap();
    let files: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(files, ["mapping.txt"]);
    let catalog = ImageLocation::Layout(layout(&out, "acme/index:v1"));
    let opened = OpenedCatalog::open(catalog, site.folder.path())
        .await
        .unwrap();
    let bundles = opened
        .cache
        .lines()
        .filter(|line| line.schema == "olm.bundle");
    assert_eq!(bundles.count(), 2);

    let again = site.copy(&set, &target).await.unwrap();
    // Only the catalog is made anew.
    assert_eq!(again.sent.items, 0, "{:?}", again.sent);

    // All of the folder goes into a registry, under the same names.
    let registry = Server::start().await;
    let set = of_folder(&format!("oci://{}", out.display()));
    let carried = site.copy(&set, &registry.target()).await.unwrap();
    assert_eq!(
        carried.results.images.len(),
        outcome.results.images.len() + 1
    );
    for name in ["acme/index:v1", "acme/extra:v1"] {
        let there = reference(&registry, &format!("ns/{name}"));
        let there = registry.client.manifest_digest(&there).await.unwrap();
        assert_eq!(there, site.there(&target, name).await, "{name}");
    }
    let files = results::files(&carried.results, &forms).unwrap();
    let policies = files.iter().filter(|file| file.path != "mapping.txt");
    for file in policies {
        let text = String::from_utf8_lossy(&file.content);
        assert!(!text.contains("oci://"), "{}: {text}", file.path);
    }
}

#[tokio::test]
async fn archives_carry_images_of_folders() {
    let site = Site::new().await;
    let digest = push(&site.source, "acme/tool:v1", b"tool".to_vec(), json!({})).await;
    let (set, target) = (
        additional(&site.source, &["acme/tool:v1"]),
        site.target("Tool"),
    );
    site.copy(&set, &target).await.unwrap();
    // As other tools write it: without a repository.
    let index = site.path("Tool").join("index.json");
    let text = fs::read_to_string(&index).unwrap();
    fs::write(&index, text.replace("acme/tool:v1", "v1")).unwrap();

    let set = of_folder(&format!("oci://{}:v1", site.path("Tool").display()));
    let (progress, dest) = (RunProgress::default(), site.path("archives"));
    let setup = setup(&site.source, &set, site.folder.path(), &progress);
    let previous = PreviousRuns::default();
    let prepared = setup.prepare(&previous, None).await.unwrap();
    let PlannedArchives::Archives(archives) =
        setup.plan_archives(&prepared, &previous, None).unwrap()
    else {
        panic!("nothing was carried yet");
    };
    setup.write_archives(*archives, None, &dest).await.unwrap();
    let registry = Server::start().await;
    let published = unpack(setup, Set::open(&dest).unwrap(), &registry.target()).await;
    assert!(published.unwrap().is_some());
    let there = reference(&registry, "ns/tool:v1");
    assert_eq!(
        registry.client.manifest_digest(&there).await.unwrap(),
        Some(digest.clone())
    );
    // From archives into a folder, too.
    let target = site.target("again");
    unpack(setup, Set::open(&dest).unwrap(), &target)
        .await
        .unwrap();
    assert_eq!(site.there(&target, "tool:v1").await, Some(digest));
}

#[tokio::test]
async fn pruned_layouts_free_their_space() {
    let site = Site::new().await;
    for name in ["acme/a:v1", "acme/b:v1"] {
        push(&site.source, name, name.into(), json!({})).await;
    }
    let (target, store) = (
        site.target("out"),
        MetadataStore::Folder(site.path("state")),
    );
    let copy = async |names: &[&str]| {
        let set = ImageSet {
            storage: Some(Storage::Local {
                path: "unused".into(),
            }),
            ..additional(&site.source, names)
        };
        let progress = RunProgress::default();
        let setup = setup(&site.source, &set, site.folder.path(), &progress);
        let previous = PreviousRuns::new(store.read().await.unwrap());
        let prepared = setup.prepare(&previous, Some(&target)).await.unwrap();
        let planned = setup.plan_copy(&prepared, &previous, &target, Some(&store), true);
        match planned.await.unwrap() {
            PlannedCopy::Copy(plan) => copy(setup, prepared, *plan, &target).await.unwrap(),
            PlannedCopy::Nothing(reason) => panic!("{reason}"),
        }
    };
    copy(&["acme/a:v1", "acme/b:v1"]).await;
    // Two images of three blobs each, and the metadata as one more.
    assert_eq!(blobs(&site.path("out")), 9);
    let outcome = copy(&["acme/b:v1"]).await;
    assert_eq!((outcome.pruned, outcome.stayed.len()), (1, 0));
    assert_eq!(site.there(&target, "acme/a:v1").await, None);
    assert!(site.there(&target, "acme/b:v1").await.is_some());
    assert_eq!(blobs(&site.path("out")), 6);
}

#[tokio::test]
async fn leftovers_and_damage_are_found() {
    let site = Site::new().await;
    push(&site.source, "acme/a:v1", vec![7; 3 << 20], json!({})).await;
    let set = additional(&site.source, &["acme/a:v1"]);
    site.copy(&set, &site.target("whole")).await.unwrap();
    let whole = site.path("whole");
    let mut files: Vec<_> = fs::read_dir(whole.join("blobs/sha256"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort_by_key(|path| fs::metadata(path).unwrap().len());
    let layer = files.pop().unwrap();
    let name = layer.file_name().unwrap().to_str().unwrap();

    // A run that was killed has left a part, and another one bytes that never reached the disk.
    for (folder, part) in [("right", vec![7; 1 << 20]), ("wrong", vec![0; 2 << 20])] {
        let blobs = site.path(folder).join("blobs/sha256");
        fs::create_dir_all(&blobs).unwrap();
        fs::write(site.path(folder).join("oci-layout"), "{}").unwrap();
        fs::write(blobs.join(format!("{name}.part")), part).unwrap();
        site.copy(&set, &site.target(folder)).await.unwrap();
        assert_eq!(
            fs::read(blobs.join(name)).unwrap(),
            fs::read(&layer).unwrap(),
            "{folder}"
        );
        assert!(!blobs.join(format!("{name}.part")).exists(), "{folder}");
    }

    let registry = Server::start().await;
    let carry = async || {
        let set = of_folder(&format!("oci://{}", whole.display()));
        site.copy(&set, &registry.target())
            .await
            .unwrap_err()
            .to_string()
    };
    let good = fs::read(&layer).unwrap();
    let mut damaged = good.clone();
    damaged[5] ^= 1;
    for (bytes, expected) in [
        (damaged, "has another digest"),
        (good[..100].to_vec(), "is smaller than its manifest says"),
    ] {
        fs::write(&layer, bytes).unwrap();
        let message = carry().await;
        assert!(
            message.contains(expected) && message.contains(name),
            "{message}"
        );
    }
    fs::remove_file(&layer).unwrap();
    assert!(carry().await.contains(name));
    fs::write(whole.join("index.json"), "{").unwrap();
    assert!(carry().await.contains("index.json"));
    fs::remove_file(whole.join("index.json")).unwrap();
    assert!(carry().await.contains("index.json"));
}

#[tokio::test]
async fn other_folders_stay_as_they_are() {
    let site = Site::new().await;
    push(&site.source, "acme/a:v1", b"a".to_vec(), json!({})).await;
    fs::create_dir(site.path("home")).unwrap();
    fs::write(site.path("home").join("letter"), "dear").unwrap();
    let set = additional(&site.source, &["acme/a:v1"]);
    let refused = site.copy(&set, &site.target("home")).await.unwrap_err();
    assert!(
        refused.to_string().contains("name a new folder"),
        "{refused}"
    );
    assert_eq!(fs::read_dir(site.path("home")).unwrap().count(), 1);

    let several = site.target("several");
    site.copy(&set, &several).await.unwrap();
    push(&site.source, "acme/b:v1", b"b".to_vec(), json!({})).await;
    site.copy(&additional(&site.source, &["acme/b:v1"]), &several)
        .await
        .unwrap();
    let folder = site.path("several");
    for (name, expected) in [
        (format!("oci://{}:v2", folder.display()), "was not found"),
        (
            format!("oci://{}:v1", folder.display()),
            "holds several images",
        ),
        (
            format!("oci://{}", site.path("nowhere").display()),
            "was not found",
        ),
    ] {
        let refused = site
            .copy(&of_folder(&name), &site.target("out"))
            .await
            .unwrap_err();
        assert!(refused.to_string().contains(expected), "{name}: {refused}");
    }
}

#[tokio::test]
async fn hosts_that_are_called_as_layouts_are_registries() {
    let site = Site::new().await;
    for (registry, is_folder) in [
        (Registry::Host("oci:5000".into()), false),
        (Registry::Layout("/srv/out".into()), true),
    ] {
        let target = MirrorTarget {
            registry: registry.clone(),
            ..site.target("out")
        };
        let set = ImageSet::default();
        let outcome = results::MirrorResults::of(&[], &target, &set.mirror).unwrap();
        assert_eq!(outcome.is_folder, is_folder, "{registry}");
    }
    // Nothing is swept where nothing was written.
    let target = site.target("nowhere");
    target.client.sweep(&target.registry).await.unwrap();
    assert!(!site.path("nowhere").exists());
}
