//! Registries that fail, at each stage of a run: what passes is borne, what does not is told, and the same run succeeds
//! afterwards as if nothing had been.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use mirror::archive::{self, Place, Set};
use mirror::history::{Former, Store};
use mirror::progress::Progress;
use mirror::run::{self, Direct, Planned, Setup};
use model::Error;
use model::image_set::{Image, ImageSet};
use oci::{Client, ClientOptions, Digest};
use serde_json::json;
use tempfile::TempDir;

use crate::faulty::{Fault, Faulty, Rule};
use crate::runs::{image_set_of, push, push_catalog_of, reference, setup, unpack};
use crate::server::Server;

/// More than goes into one piece.
const LAYER_BYTES: usize = 300_000;
/// How often what does not pass is met.
const ALWAYS: usize = usize::MAX;

/// Requests of one kind.
#[derive(Debug, Clone, Copy)]
struct Stage {
    name: &'static str,
    method: &'static str,
    path: &'static str,
    /// What a run goes on with, although it never passes.
    borne: &'static [Fault],
}

impl Stage {
    const fn new(name: &'static str, method: &'static str, path: &'static str) -> Self {
        let borne = &[];
        Self {
            name,
            method,
            path,
            borne,
        }
    }

    const fn bears(self, borne: &'static [Fault]) -> Self {
        Self { borne, ..self }
    }

    fn rule(&self, times: usize, fault: Fault) -> Rule {
        Rule {
            method: self.method,
            path: self.path.to_owned(),
            times,
            fault,
        }
    }

    /// The repository that is asked.
    fn repository(&self) -> &'static str {
        let known = [
            "acme/index",
            "acme/tool",
            "acme/twin",
            "own/state",
            "ns/oc-mirror",
        ];
        known.into_iter().find(|it| self.path.contains(it)).unwrap()
    }

    /// What may never pass there.
    fn lasting(&self) -> Vec<Fault> {
        let mut faults = vec![
            Fault::Status(401),
            Fault::Status(403),
            Fault::Status(404),
            Fault::Busy(3600),
            Fault::Status(500),
            Fault::Reset,
        ];
        if self.method == "GET" {
            faults.extend([Fault::Short, Fault::Wrong]);
        }
        faults
    }

    /// What passes there by itself.
    fn passing(&self) -> Vec<Fault> {
        let mut faults = vec![Fault::Status(500), Fault::Busy(0), Fault::Reset];
        if self.path.ends_with("/blobs/") {
            faults.push(Fault::Short);
        }
        if self.method != "GET" {
            faults.push(Fault::Lost);
        }
        faults
    }
}

/// What registries do not have to give: what is attached to images.
const REFUSALS: &[Fault] = &[Fault::Status(401), Fault::Status(403), Fault::Status(404)];

/// On the way into archives.
const PACKING: [Stage; 11] = [
    Stage::new("former run", "HEAD", "own/state/manifests/").bears(&[Fault::Status(404)]),
    Stage::new("name of the catalog", "HEAD", "acme/index/manifests/v1"),
    Stage::new("catalog", "GET", "acme/index/manifests/sha256:"),
    Stage::new("files of the catalog", "GET", "acme/index/blobs/"),
    Stage::new("survey", "GET", "acme/tool/manifests/v1"),
    Stage::new("tags of what is attached", "GET", "acme/tool/tags/list").bears(&[
        Fault::Status(401),
        Fault::Status(403),
        Fault::Status(404),
        Fault::Status(500),
        Fault::Busy(3600),
        Fault::Reset,
        Fault::Short,
        Fault::Wrong,
    ]),
    Stage::new("lists of what is attached", "GET", "acme/tool/referrers/").bears(REFUSALS),
    Stage::new("what is attached", "GET", "acme/tool/manifests/sha256-").bears(REFUSALS),
    Stage::new("blobs", "GET", "acme/tool/blobs/"),
    Stage::new("metadata", "PUT", "own/state/blobs/uploads/"),
    Stage::new("image of the metadata", "PUT", "own/state/manifests/"),
];

/// On the way out of them.
const PUBLISHING: [Stage; 10] = [
    Stage::new("former run", "HEAD", "ns/oc-mirror/manifests/").bears(&[Fault::Status(404)]),
    // That there are none is the right answer, and cannot be damaged.
    Stage::new("tags", "GET", "ns/acme/tool/tags/list").bears(&[
        Fault::Status(404),
        Fault::Short,
        Fault::Wrong,
    ]),
    Stage::new("blobs that are there", "HEAD", "ns/acme/tool/blobs/").bears(&[Fault::Status(404)]),
    Stage::new("uploads", "POST", "ns/acme/tool/blobs/uploads/"),
    Stage::new("mounts", "POST", "ns/acme/twin/blobs/uploads/"),
    Stage::new("blobs", "PUT", "ns/acme/tool/blobs/uploads/"),
    Stage::new("images", "PUT", "ns/acme/tool/manifests/"),
    Stage::new("catalog", "PUT", "ns/acme/index/manifests/"),
    Stage::new("metadata", "PUT", "ns/oc-mirror/blobs/uploads/"),
    Stage::new("image of the metadata", "PUT", "ns/oc-mirror/manifests/"),
];

/// A source with a catalog, what it names, something attached, and an image of the same layer.
struct World {
    source: Server,
    from: Faulty,
    folder: TempDir,
}

impl World {
    async fn start() -> Self {
        let source = Server::start().await;
        let from = Faulty::start(&source, Vec::new()).await;
        push_catalog_of(&source, &from.address, 1).await;
        let layer = || vec![7; LAYER_BYTES];
        let tool = push(&source, "acme/tool:v1", layer(), json!({})).await;
        push(&source, "acme/twin:v1", layer(), json!({"Env": ["A=b"]})).await;
        let signature = format!("acme/tool:sha256-{}.sig", tool.hex());
        push(&source, &signature, b"signature".to_vec(), json!({})).await;
        let folder = tempfile::tempdir().unwrap();
        Self {
            source,
            from,
            folder,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn set(&self) -> ImageSet {
        let mut set = image_set_of(&self.from.address);
        set.mirror.additional_images.push(Image {
            name: format!("{}/acme/twin:v1", self.from.address),
            ..Image::default()
        });
        set
    }

    /// Packs into a folder of that name. The metadata is kept at the source.
    async fn pack(&self, client: &Client, name: &str) -> Result<PathBuf, Error> {
        let (set, progress, folder) = (self.set(), Progress::default(), self.path(name));
        let setup = Setup {
            client,
            ..setup(&self.source, &set, &folder, &progress)
        };
        let store = Store::Image {
            client: client.clone(),
            reference: format!("{}/own/state:{name}", self.from.address)
                .parse()
                .unwrap(),
        };
        let former = Former::new(store.read().await?);
        let prepared = run::prepare(setup, &former, None).await?;
        let Planned::Archives(archives) = run::plan(setup, &prepared, &former, None)? else {
            return Err(Error::conflict(format!("{name} is remembered already")));
        };
        let out = folder.join("out");
        run::pack(setup, *archives, Some(&store), &out).await?;
        Ok(out)
    }

    async fn publish(&self, client: &Client, archives: &Path, to: &Faulty) -> Result<(), Error> {
        let (set, progress) = (ImageSet::default(), Progress::default());
        let workspace = self.path("publishing");
        let setup = setup(&self.source, &set, &workspace, &progress);
        let mut target = to.target();
        target.client = client.clone();
        match unpack(setup, Set::open(archives)?, &target).await? {
            Some(_) => Ok(()),
            None => Err(Error::conflict("the target remembers it already")),
        }
    }

    /// Copies from registry to registry.
    async fn copy(&self, client: &Client, to: &Faulty) -> Result<(), Error> {
        let (set, progress) = (self.set(), Progress::default());
        let workspace = self.path("copying");
        let setup = Setup {
            client,
            ..setup(&self.source, &set, &workspace, &progress)
        };
        let mut target = to.target();
        target.client = client.clone();
        let prepared = run::prepare(setup, &Former::default(), None).await?;
        let copied = run::direct(setup, prepared, Direct::default(), &target).await;
        copied.map(drop)
    }
}

/// One that does not try anything twice.
fn impatient() -> Client {
    client(Some(1))
}

fn client(attempts: Option<u32>) -> Client {
    let options = ClientOptions {
        plain_http: true,
        attempts,
        ..ClientOptions::default()
    };
    Client::new(options).unwrap()
}

/// What a set of archives has, but for its metadata.
fn carried(archives: &Path) -> BTreeMap<String, Digest> {
    let report = archive::verify(archives, None, &Progress::default()).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    let images = Set::open(archives).unwrap().content().unwrap().images;
    let images = images.into_iter();
    images
        .map(|it| {
            (
                format!("{}:{}", it.wanted.repository, it.wanted.tag),
                it.digest,
            )
        })
        .collect()
}

/// What a registry has below a namespace: names and digests. Metadata has times in it.
async fn there(target: &Server) -> BTreeMap<String, Digest> {
    let mut found = BTreeMap::new();
    for repository in target.client.catalog(&target.address).await.unwrap() {
        let name = repository.parse().unwrap();
        for tag in target.client.tags(&target.address, &name).await.unwrap() {
            let image = reference(target, &format!("{repository}:{tag}"));
            let digest = target.client.manifest_digest(&image).await.unwrap();
            found.insert(format!("{repository}:{tag}"), digest.unwrap());
        }
    }
    found
}

/// What is wrong with how a run ended that met a fault which does not pass.
fn wrong<T>(done: Result<T, Error>, to: &Faulty, stage: &Stage, fault: Fault) -> Option<String> {
    let what = format!("{} {fault:?}", stage.name);
    let unmet = to.unmet();
    if !unmet.is_empty() {
        return Some(format!("{what}: not met"));
    }
    match (done, stage.borne.contains(&fault)) {
        (Ok(_), true) => None,
        (Ok(_), false) => Some(format!("{what}: went on")),
        (Err(error), true) => Some(format!("{what}: {}", error.chain())),
        (Err(error), false) => {
            let text = error.chain();
            let told = [to.address.as_str(), stage.repository()];
            let is_told = told.iter().all(|it| text.contains(it));
            (!is_told).then(|| format!("{what}: {text}"))
        }
    }
}

#[tokio::test]
async fn what_does_not_pass_on_the_way_into_archives_is_told_and_passes_later() {
    let world = World::start().await;
    let undisturbed = carried(&world.pack(&client(None), "undisturbed").await.unwrap());
    let mut all = Vec::new();
    for (number, stage) in PACKING.iter().enumerate() {
        let name = format!("stage-{number}");
        for (other, fault) in stage.lasting().into_iter().enumerate() {
            world.from.meet(vec![stage.rule(ALWAYS, fault)]);
            // What goes on is remembered: the next one is another set.
            let name = match stage.borne.contains(&fault) {
                true => format!("{name}-{other}"),
                false => name.clone(),
            };
            let packed = world.pack(&impatient(), &name).await;
            all.extend(wrong(packed, &world.from, stage, fault));
        }
        world.from.meet(Vec::new());
        match world.pack(&impatient(), &name).await {
            Ok(archives) if carried(&archives) == undisturbed => {}
            other => all.push(format!("{}: {other:?}", stage.name)),
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[tokio::test]
async fn what_does_not_pass_on_the_way_into_a_target_is_told_and_passes_later() {
    let world = World::start().await;
    let archives = world.pack(&client(None), "archives").await.unwrap();
    let undisturbed = Server::start().await;
    let to = Faulty::start(&undisturbed, Vec::new()).await;
    world.publish(&to.client, &archives, &to).await.unwrap();
    let undisturbed = there(&undisturbed).await;
    let mut all = Vec::new();
    for stage in &PUBLISHING {
        let target = Server::start().await;
        let to = Faulty::start(&target, Vec::new()).await;
        for fault in stage.lasting() {
            if stage.borne.contains(&fault) {
                continue;
            }
            to.meet(vec![stage.rule(ALWAYS, fault)]);
            let published = world.publish(&impatient(), &archives, &to).await;
            all.extend(wrong(published, &to, stage, fault));
        }
        to.meet(Vec::new());
        match world.publish(&impatient(), &archives, &to).await {
            Ok(()) if there(&target).await == undisturbed => {}
            other => all.push(format!("{}: {other:?}", stage.name)),
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[tokio::test]
async fn what_passes_is_borne_at_all_stages() {
    let faults = [
        Fault::Status(500),
        Fault::Busy(0),
        Fault::Reset,
        Fault::Short,
        Fault::Lost,
    ];
    join_all(faults.map(is_borne)).await;
}

/// That a run goes on as if nothing had been, which meets a fault once at each stage.
async fn is_borne(fault: Fault) {
    let world = World::start().await;
    let archives = world.pack(&client(None), "undisturbed").await.unwrap();
    let undisturbed = carried(&archives);
    let meet = |stages: &[Stage]| -> Vec<Rule> {
        let stages = stages.iter().filter(|it| it.passing().contains(&fault));
        stages.map(|stage| stage.rule(1, fault)).collect()
    };
    world.from.meet(meet(&PACKING));
    let packed = world.pack(&client(None), "disturbed").await.unwrap();
    assert_eq!(carried(&packed), undisturbed, "{fault:?}");
    assert_eq!(world.from.unmet(), Vec::<String>::new(), "{fault:?}");

    let target = Server::start().await;
    let to = Faulty::start(&target, meet(&PUBLISHING)).await;
    world.publish(&to.client, &archives, &to).await.unwrap();
    assert_eq!(to.unmet(), Vec::<String>::new(), "{fault:?}");
    let there = there(&target).await;
    for (name, digest) in &undisturbed {
        assert_eq!(there.get(&format!("ns/{name}")), Some(digest), "{fault:?}");
    }
}

#[tokio::test]
async fn what_does_not_pass_from_registry_to_registry_is_told_and_passes_later() {
    let (world, target, other) = (
        World::start().await,
        Server::start().await,
        Server::start().await,
    );
    let undisturbed = Faulty::start(&other, Vec::new()).await;
    world.copy(&client(None), &undisturbed).await.unwrap();
    let to = Faulty::start(&target, Vec::new()).await;
    let at_source = Stage::new("blobs", "GET", "acme/tool/blobs/");
    let at_target = Stage::new("images", "PUT", "ns/acme/tool/manifests/");
    let mut all = Vec::new();
    for (at, stage) in [(&world.from, at_source), (&to, at_target)] {
        for fault in stage.lasting() {
            at.meet(vec![stage.rule(ALWAYS, fault)]);
            let copied = world.copy(&impatient(), &to).await;
            all.extend(wrong(copied, at, &stage, fault));
        }
        at.meet(Vec::new());
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
    // All blobs have come before the image was refused.
    let before = world.from.requests("acme/tool/blobs/").len();
    world.copy(&impatient(), &to).await.unwrap();
    assert_eq!(world.from.requests("acme/tool/blobs/").len(), before);
    assert_eq!(there(&target).await, there(&other).await);
}

#[tokio::test]
async fn a_run_that_is_given_up_leaves_nothing_visible_and_goes_on() {
    let world = World::start().await;
    let held = Stage::new("blobs", "GET", "acme/tool/blobs/").rule(0, Fault::Held(0));
    world.from.meet(vec![held]);
    let out = world.path("given-up").join("out");
    let client = client(None);
    tokio::select! {
        packed = world.pack(&client, "given-up") => panic!("{packed:?}"),
        () = asked(&world.from, "acme/tool/blobs/") => {}
    }
    assert!(Set::open(&out).is_err());
    world.from.release();
    world.pack(&client, "given-up").await.unwrap();
}

#[tokio::test]
async fn what_was_damaged_on_the_way_is_told_and_passes_when_it_comes_again() {
    let world = World::start().await;
    let archives = world.pack(&client(None), "archives").await.unwrap();
    let layer = Digest::sha256(&vec![7; LAYER_BYTES]);
    let tool = reference(&world.source, "acme/tool:v1");
    let tool = world
        .source
        .client
        .manifest_digest(&tool)
        .await
        .unwrap()
        .unwrap();
    let set = Set::open(&archives).unwrap();
    let in_catalog = |part: &str| {
        let mut files = set.below("catalogs/");
        files.find(|(path, _)| path.contains(part)).unwrap().1
    };
    let members = [
        ("blob", set.blob(&layer).unwrap()),
        (
            "manifest",
            set.place(&format!("v2/acme/tool/manifests/{tool}"))
                .unwrap(),
        ),
        ("smaller catalog", in_catalog("/index/index.json")),
        ("whole catalog", in_catalog("/layout/blobs/sha256/")),
        ("metadata", set.place("publish/.metadata.json").unwrap()),
    ];
    let target = Server::start().await;
    let to = Faulty::start(&target, Vec::new()).await;
    let mut all = Vec::new();
    for (what, Place { file, offset, size }) in members {
        let whole = std::fs::read(&file).unwrap();
        let mut damaged = whole.clone();
        damaged[usize::try_from(offset + size / 2).unwrap()] ^= 1;
        std::fs::write(&file, damaged).unwrap();
        let text = match world.publish(&impatient(), &archives, &to).await {
            Ok(()) => "went on".to_owned(),
            Err(error) => error.chain(),
        };
        if !(text.contains(file.to_str().unwrap()) && text.contains("damaged")) {
            all.push(format!("{what}: {text}"));
        }
        std::fs::write(&file, whole).unwrap();
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
    world.publish(&impatient(), &archives, &to).await.unwrap();
    let there = there(&target).await;
    for (name, digest) in carried(&archives) {
        assert_eq!(there.get(&format!("ns/{name}")), Some(&digest));
    }
}

/// Until a registry is asked for something.
async fn asked(registry: &Faulty, path: &str) {
    while registry.requests(path).is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
