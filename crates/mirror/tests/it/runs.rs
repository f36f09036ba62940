//! Whole runs with a catalog: out of a registry, into archives or straight on, into another registry.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mirror::archive::{Set, Signer};
use mirror::config::{self, Configuration};
use mirror::deletion::{self, DeletionPlan};
use mirror::history::{MetadataStore, PreviousRuns};
use mirror::operators::OpenedCatalog;
use mirror::progress::RunProgress;
use mirror::publish::MirrorTarget;
use mirror::run::{
    self, ArchivesPlan, CopyPlan, PlannedArchives, PlannedCopy, PlannedPublication, PreparedRun,
    RunContext, RunOutcome, Sources,
};
use mirror::select::SelectOptions;
use mirror::updates;
use mirror::verify_target::{self, Expected};
use model::Error;
use model::image_set::{self, ImageSet, MirrorSelection};
use oci_client::image::ImageLocation;

pub(crate) use crate::content::{push, push_catalog, push_catalog_of, reference};
use crate::server::Server;

/// Units: seconds since 1970.
const NOW: i64 = 1_795_241_937;

/// The input of a run.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    pub(crate) sources: Sources<'a>,
    pub(crate) context: RunContext<'a>,
}

impl<'a> Setup<'a> {
    pub(crate) fn with(
        mut self,
        change: impl FnOnce(&mut Sources<'a>, &mut RunContext<'a>),
    ) -> Self {
        change(&mut self.sources, &mut self.context);
        self
    }

    pub(crate) async fn prepare(
        self,
        previous: &PreviousRuns,
        target: Option<&MirrorTarget>,
    ) -> Result<PreparedRun, Error> {
        Box::pin(run::prepare(self.sources, self.context, previous, target)).await
    }

    pub(crate) fn plan_archives(
        self,
        prepared: &PreparedRun,
        previous: &PreviousRuns,
        signer: Option<&Signer>,
    ) -> Result<PlannedArchives, Error> {
        run::plan_archives(self.context, prepared, previous, signer)
    }

    pub(crate) async fn write_archives(
        self,
        plan: ArchivesPlan,
        store: Option<&MetadataStore>,
        dest: &Path,
    ) -> Result<Vec<PathBuf>, Error> {
        run::write_archives(self.sources, self.context, plan, store, dest).await
    }

    pub(crate) async fn plan_copy(
        self,
        prepared: &PreparedRun,
        previous: &PreviousRuns,
        target: &MirrorTarget,
        store: Option<&MetadataStore>,
        is_checked: bool,
    ) -> Result<PlannedCopy, Error> {
        run::plan_copy(self.context, prepared, previous, target, store, is_checked).await
    }

    pub(crate) async fn copy(
        self,
        prepared: PreparedRun,
        plan: CopyPlan,
        target: &MirrorTarget,
    ) -> Result<RunOutcome, Error> {
        Box::pin(run::copy(
            self.sources,
            self.context,
            prepared,
            plan,
            target,
        ))
        .await
    }

    pub(crate) async fn plan_deletion(
        self,
        mirror: &MirrorSelection,
        target: &MirrorTarget,
        with_attached: bool,
    ) -> Result<DeletionPlan, Error> {
        let Sources {
            client, platform, ..
        } = self.sources;
        deletion::plan(
            client,
            platform,
            self.context,
            mirror,
            target,
            with_attached,
        )
        .await
    }

    pub(crate) async fn expected(
        self,
        mirror: &MirrorSelection,
        target: &MirrorTarget,
    ) -> Result<Vec<Expected>, Error> {
        let Sources {
            client, platform, ..
        } = self.sources;
        verify_target::configured(client, platform, self.context, mirror, target).await
    }
}

/// Publishes archives; nothing where the target has them.
pub(crate) async fn unpack(
    setup: Setup<'_>,
    set: Set,
    target: &MirrorTarget,
) -> Result<Option<RunOutcome>, mirror::Error> {
    match run::plan_publication(set, target, true).await? {
        PlannedPublication::Publish(publication) => {
            let mut outcome = run::publish(setup.context, *publication, target).await?;
            outcome.record(target).await?;
            Ok(Some(outcome))
        }
        PlannedPublication::Nothing(_) => Ok(None),
    }
}

/// Copies the planned content, and records the run.
pub(crate) async fn copy(
    setup: Setup<'_>,
    prepared: run::PreparedRun,
    plan: CopyPlan,
    target: &MirrorTarget,
) -> Result<RunOutcome, mirror::Error> {
    let mut outcome = setup.copy(prepared, plan, target).await?;
    outcome.record(target).await?;
    Ok(outcome)
}

/// A set of single images.
pub(crate) fn additional(server: &Server, names: &[&str]) -> ImageSet {
    additional_at(&server.address, names)
}

/// A set of single images of a registry with that address.
pub(crate) fn additional_at(address: &str, names: &[&str]) -> ImageSet {
    let mut set = ImageSet::default();
    let images = names.iter().map(|name| image_set::ImageSelection {
        name: format!("{address}/{name}"),
        ..image_set::ImageSelection::default()
    });
    set.mirror.additional_images = images.collect();
    set
}

/// Configuration of that catalog. The metadata is kept in the folder `storage`.
pub(crate) fn configuration(server: &Server, storage: &str) -> String {
    configuration_of(&server.address, storage)
}

/// As [`configuration`], at another address.
fn configuration_of(address: &str, storage: &str) -> String {
    format!(
        "kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v1alpha2
storageConfig: {{local: {{path: {storage}}}}}
mirror:
  operators:
  - catalog: {address}/acme/index:v1
    packages: [{{name: thing}}]
  additionalImages:
  - name: {address}/acme/extra:v1
"
    )
}

pub(crate) fn image_set(server: &Server) -> ImageSet {
    image_set_of(&server.address)
}

/// As [`image_set`], at another address.
pub(crate) fn image_set_of(address: &str) -> ImageSet {
    match config::parse(configuration_of(address, "unused").as_bytes()).unwrap() {
        Configuration::Mirror(set) => set,
        Configuration::Delete(_) => panic!("it says what is mirrored"),
    }
}

pub(crate) fn setup<'a>(
    source: &'a Server,
    set: &'a ImageSet,
    workspace: &'a Path,
    progress: &'a RunProgress,
) -> Setup<'a> {
    Setup {
        sources: Sources {
            client: &source.client,
            set,
            platform: &source.platform,
            skip_missing: false,
            with_attached: true,
        },
        context: RunContext::new(workspace, NOW, progress),
    }
}

/// The bundles of the pruned catalog in the target.
async fn bundles(target: &Server, scratch: &Path) -> BTreeSet<String> {
    bundles_of(target, "ns/acme/index:v1", scratch).await
}

/// The bundles of a catalog.
pub(crate) async fn bundles_of(server: &Server, name: &str, scratch: &Path) -> BTreeSet<String> {
    let place = ImageLocation::Registry {
        client: server.client.clone(),
        reference: reference(server, name),
    };
    let opened = OpenedCatalog::open(place, scratch).await.unwrap();
    let lines = opened
        .cache
        .lines()
        .filter(|line| line.schema == "olm.bundle");
    lines.map(|line| line.name.to_owned()).collect()
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn a_catalog_is_mirrored_with_its_dependencies() {
    let (source, target) = (Server::start().await, Server::start().await);
    push_catalog(&source, 3).await;
    let (set, progress) = (image_set(&source), RunProgress::default());
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(&source, &set, folder.path(), &progress);
    let prepared = setup.prepare(&PreviousRuns::default(), None).await.unwrap();
    let outcome = setup
        .copy(prepared, CopyPlan::default(), &target.target())
        .await
        .unwrap();
    // The head of the selected channel; of its dependency the newest match, and the upgrade path to the head.
    let expected = ["other.v1.1.0", "other.v1.2.0", "thing.v1.2.0"];
    assert_eq!(bundles(&target, folder.path()).await, names(&expected));
    assert_eq!(
        outcome.results.images.len(),
        5,
        "three bundles, the tool and the extra"
    );
    assert_eq!(outcome.results.catalogs.len(), 1);
    for image in &outcome.results.images {
        let there = target
            .client
            .manifest_digest(&image.destination)
            .await
            .unwrap();
        assert_eq!(there, image.source.digest, "{}", image.destination);
    }
}

#[tokio::test]
async fn archives_are_differential_and_nothing_is_sent_twice() {
    let (source, target) = (Server::start().await, Server::start().await);
    let folder = tempfile::tempdir().unwrap();
    let (set, progress) = (image_set(&source), RunProgress::default());
    let setup = setup(&source, &set, folder.path(), &progress);
    let store = MetadataStore::Folder(folder.path().join("state"));
    let pack = async |dest: &Path| {
        let previous = PreviousRuns::new(store.read().await.unwrap());
        let prepared = setup.prepare(&previous, None).await.unwrap();
        match setup.plan_archives(&prepared, &previous, None).unwrap() {
            PlannedArchives::Nothing(_) => None,
            PlannedArchives::Archives(archives) => {
                let sequence = archives.plan.sequence;
                let packed = setup.write_archives(*archives, Some(&store), dest).await;
                assert!(!packed.unwrap().is_empty());
                Some(sequence)
            }
        }
    };
    let publish = async |from: &Path| {
        let set = Set::open(from).unwrap();
        unpack(setup, set, &target.target()).await
    };
    push_catalog(&source, 2).await;
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    assert_eq!(pack(&first).await, Some(1));
    assert_eq!(pack(&second).await, None);
    push_catalog(&source, 3).await;
    assert_eq!(pack(&second).await, Some(2));
    let early = publish(&second).await.unwrap_err();
    assert!(matches!(early, mirror::Error::Conflict { .. }), "{early}");

    let Some(outcome) = publish(&first).await.unwrap() else {
        panic!("the target has nothing yet");
    };
    assert_eq!(
        outcome.results.images.len(),
        4,
        "two bundles, and single images"
    );
    let expected = ["other.v1.1.0", "thing.v1.1.0"];
    assert_eq!(bundles(&target, folder.path()).await, names(&expected));
    assert!(publish(&first).await.unwrap().is_none());
    let Some(outcome) = publish(&second).await.unwrap() else {
        panic!("the target has the first one only");
    };
    assert_eq!(
        outcome.results.images.len(),
        2,
        "one new bundle of each package"
    );
    assert_eq!(
        outcome.results.previous.len(),
        4,
        "policies name these, too: they take the place of the first ones"
    );
    let results = run::archived_results(&Set::open(&second).unwrap(), &target.target()).unwrap();
    assert_eq!(
        results.images.len(),
        6,
        "of both runs, without sending anything"
    );
    // The head of the first archive's time stays.
    let expected = [
        "other.v1.1.0",
        "other.v1.2.0",
        "thing.v1.1.0",
        "thing.v1.2.0",
    ];
    assert_eq!(bundles(&target, folder.path()).await, names(&expected));
}

#[tokio::test]
async fn missing_images_are_reported_with_their_reason() {
    let source = Server::start().await;
    push_catalog(&source, 2).await;
    let tool = reference(&source, "acme/tool:v1");
    source.client.delete_manifest(&tool).await.unwrap();
    let (set, progress) = (image_set(&source), RunProgress::default());
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(&source, &set, folder.path(), &progress);
    let refused = setup
        .prepare(&PreviousRuns::default(), None)
        .await
        .unwrap_err();
    let text = refused.to_string();
    assert!(matches!(refused, mirror::Error::Invalid { .. }), "{text}");
    let expected = format!("{tool} (needed by bundle other.v1.1.0 of package other in");
    assert!(text.contains(&expected), "{text}");
}

#[tokio::test]
async fn updates_are_bundles_that_no_run_has_carried() {
    let source = Server::start().await;
    let (set, progress) = (image_set(&source), RunProgress::default());
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(&source, &set, folder.path(), &progress);
    let store = MetadataStore::Folder(folder.path().join("state"));
    push_catalog(&source, 2).await;
    let previous = PreviousRuns::default();
    let prepared = setup.prepare(&previous, None).await.unwrap();
    let PlannedArchives::Archives(archives) =
        setup.plan_archives(&prepared, &previous, None).unwrap()
    else {
        panic!("nothing was carried yet");
    };
    let dest = folder.path().join("first");
    setup
        .write_archives(*archives, Some(&store), &dest)
        .await
        .unwrap();
    let metadata = store.read().await.unwrap().unwrap();
    let updates = async || {
        let scratch = tempfile::tempdir().unwrap();
        let options = SelectOptions {
            scratch: scratch.path(),
            platform: &source.platform,
            skip_missing: false,
            continue_on_error: false,
        };
        let updates = updates::operators(&source.client, &set.mirror, &metadata, options).await;
        let bundles = updates.unwrap().remove(0).bundles.into_iter();
        let lines = bundles.map(|it| format!("{} {} {}", it.channel, it.bundle, it.replaces));
        lines.collect::<Vec<_>>()
    };
    assert!(updates().await.is_empty());
    push_catalog(&source, 3).await;
    let expected = [
        "stable other.v1.2.0 other.v1.1.0",
        "stable thing.v1.2.0 thing.v1.1.0",
    ];
    assert_eq!(updates().await, expected);
}
