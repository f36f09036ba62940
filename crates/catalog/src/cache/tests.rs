//! Caches of small catalogs: lookups, damage, leftovers.

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use prost::Message;
use tempfile::TempDir;

use super::batch::BATCH_BYTES;
use super::encode::FRAME;
use super::{BuildError, CacheKey, CatalogCache, Refused, Slices, prepare, rebuild};
use crate::normal::MAX_DEPTH;
use crate::{CatalogProblems, Rule, api};

const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();
/// Long after every file was written. Units: seconds since 1970.
const LATER: i64 = 1 << 40;

/// Two packages; of `b` one bundle is in two channels and the other has no image.
const CATALOG: &str = r#"
{"schema":"olm.package","name":"a","defaultChannel":"stable"}
{"schema":"olm.channel","package":"a","name":"stable","entries":[{"name":"a.v1"}]}
{"schema":"olm.bundle","package":"a","name":"a.v1","image":"quay.io/x/a:1","properties":[
  {"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}},
  {"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"K"}}]}
{"schema":"olm.package","name":"b","defaultChannel":"fast"}
{"schema":"olm.channel","package":"b","name":"fast","entries":[
  {"name":"b.v1"},{"name":"b.v2","replaces":"b.v1","skips":["b.v0","b.v1","b.v1"],"skipRange":"<2.0.0"}]}
{"schema":"olm.channel","package":"b","name":"all","entries":[
  {"name":"b.v1"},{"name":"b.v2","skips":["b.v1","b.v0"]}]}
{"schema":"olm.bundle","package":"b","name":"b.v1","image":"quay.io/x/b:1","properties":[
  {"type":"olm.package","value":{"packageName":"b","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"b","name":"b.v2","image":"","properties":[
  {"type":"olm.package","value":{"packageName":"b","version":"2.0.0"}},
  {"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"K"}},
  {"type":"olm.bundle.object","value":{"data":"eyJraW5kIjoiQ2x1c3RlclNlcnZpY2VWZXJzaW9uIn0="}}]}
{"schema":"example","package":"b","name":"one","n":1}
{"schema":"example","name":"of nobody","n":2}
{"schema":"example","package":"b","name":"two","n":3}
"#;

struct Fixture {
    folder: TempDir,
}

impl Fixture {
    fn new(catalog: &str) -> Self {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("configs")).unwrap();
        let scene = Self { folder };
        scene.write(catalog);
        scene
    }

    fn write(&self, catalog: &str) {
        fs::write(self.configs().join("catalog.json"), catalog).unwrap();
    }

    fn configs(&self) -> PathBuf {
        self.folder.path().join("configs")
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("cache/catalog")
    }

    fn prepare(&self) -> (Arc<CatalogCache>, Option<Refused>) {
        let prepared = prepare(&self.configs(), &self.path(), TWO, LATER).unwrap();
        (prepared.cache, prepared.built)
    }

    /// All problems of the catalog.
    fn problems(&self) -> CatalogProblems {
        match prepare(&self.configs(), &self.path(), TWO, LATER) {
            Ok(prepared) => prepared.cache.report().problems(),
            Err(BuildError::Invalid(problems)) => problems,
            Err(failed) => panic!("{failed}"),
        }
    }

    fn files(&self) -> Vec<String> {
        let files = fs::read_dir(self.path().parent().unwrap()).unwrap();
        let mut names: Vec<_> = files
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    }
}

fn served() -> (Fixture, Arc<CatalogCache>) {
    let scene = Fixture::new(CATALOG);
    let (cache, _) = scene.prepare();
    (scene, cache)
}

/// Decodes the messages of a reply.
fn messages<M: Message + Default>(slices: Slices) -> Vec<M> {
    let bytes: Vec<u8> = slices.flat_map(|piece| piece.unwrap().to_vec()).collect();
    let mut rest = &bytes[..];
    let mut messages = Vec::new();
    while !rest.is_empty() {
        let (frame, behind) = rest.split_at(FRAME);
        assert_eq!(frame[0], 0);
        let length = u32::from_be_bytes(frame[1..].try_into().unwrap());
        let (message, behind) = behind.split_at(length as usize);
        messages.push(M::decode(message).unwrap());
        rest = behind;
    }
    messages
}

fn links(slices: Option<Slices>) -> Vec<[String; 4]> {
    let link = |entry: api::ChannelEntry| {
        [
            entry.package_name,
            entry.channel_name,
            entry.bundle_name,
            entry.replaces,
        ]
    };
    slices.map_or_else(Vec::new, |slices| {
        messages(slices).into_iter().map(link).collect()
    })
}

fn bundle(cache: &Arc<CatalogCache>, [package, channel, name]: [&str; 3]) -> api::Bundle {
    let package = cache.package(package).unwrap();
    let entry = package.channel(channel).unwrap().entry(name).unwrap();
    messages(entry.reply()).pop().unwrap()
}

#[test]
fn packages_are_listed_by_name() {
    let (_scene, cache) = served();
    let names = messages::<api::PackageName>(cache.list_packages());
    assert!(names.iter().map(|one| &*one.name).eq(["a", "b"]));
    let package: api::Package = messages(cache.package("b").unwrap().reply()).pop().unwrap();
    assert_eq!(package.default_channel_name, "fast");
    let heads = package
        .channels
        .iter()
        .map(|one| (&*one.name, &*one.csv_name));
    assert!(heads.eq([("all", "b.v2"), ("fast", "b.v2")]));
    assert!(cache.package("c").is_none());
    assert_eq!(
        [
            cache.package_count(),
            cache.channel_count(),
            cache.entry_count()
        ],
        [2, 3, 5]
    );
}

#[test]
fn get_bundle_has_manifests_and_list_bundles_has_upgrade_edges() {
    let (_scene, cache) = served();
    let asked = bundle(&cache, ["b", "fast", "b.v2"]);
    assert_eq!(asked.channel_name, "fast");
    assert_eq!(asked.skip_range, "<2.0.0");
    assert_eq!(asked.csv_json, r#"{"kind":"ClusterServiceVersion"}"#);
    assert_eq!(asked.object, [&*asked.csv_json]);
    assert_eq!((&*asked.replaces, asked.skips.len()), ("", 0));
    assert_eq!(bundle(&cache, ["b", "all", "b.v2"]).skip_range, "");

    let listed = messages::<api::Bundle>(cache.list_bundles());
    let places = listed
        .iter()
        .map(|one| (&*one.channel_name, &*one.package_name, &*one.csv_name));
    assert!(places.eq([
        ("all", "b", "b.v1"),
        ("all", "b", "b.v2"),
        ("fast", "b", "b.v1"),
        ("fast", "b", "b.v2"),
        ("stable", "a", "a.v1"),
    ]));
    assert_eq!(listed[3].replaces, "b.v1");
    assert_eq!(listed[3].skips, ["b.v0", "b.v1", "b.v1"]);
    // Without an image, clients could not get it elsewhere.
    assert_eq!(listed[3].csv_json, asked.csv_json);
}

#[test]
fn replacing_entries_are_found() {
    let (_scene, cache) = served();
    let own = |channel: &str, name: &str, replaces: &str| {
        ["b", channel, name, replaces].map(str::to_owned)
    };
    // In `all` it is skipped; in `fast` it is replaced, so that its skips do not count.
    assert_eq!(
        links(cache.replacing("b.v1")),
        [own("all", "b.v2", ""), own("fast", "b.v2", "b.v1")]
    );
    assert_eq!(links(cache.replacing("b.v0")).len(), 2);
    let first = ["a", "stable", "a.v1", ""].map(str::to_owned);
    assert_eq!(
        links(cache.replacing("")),
        [
            first,
            own("all", "b.v1", ""),
            own("all", "b.v2", ""),
            own("fast", "b.v1", "")
        ]
    );
    assert!(cache.replacing("b.v2").is_none());

    let package = cache.package("b").unwrap();
    let replacing = |channel: &str, name: &str| {
        let entry = package.channel(channel).unwrap().replacing(name)?;
        messages::<api::Bundle>(entry.reply()).pop()
    };
    assert_eq!(replacing("fast", "b.v1").unwrap().csv_name, "b.v2");
    assert_eq!(replacing("all", "").unwrap().csv_name, "b.v1");
    assert_eq!(replacing("fast", "b.v2"), None);
}

#[test]
fn providers_of_an_api_are_found() {
    let (_scene, cache) = served();
    let link = |all: [&str; 4]| all.map(str::to_owned);
    assert_eq!(
        links(cache.providing("g", "v1", "K")),
        [
            link(["a", "stable", "a.v1", ""]),
            link(["b", "all", "b.v2", ""]),
            link(["b", "all", "b.v2", "b.v1"]),
            link(["b", "all", "b.v2", "b.v0"]),
            link(["b", "fast", "b.v2", "b.v1"]),
            link(["b", "fast", "b.v2", "b.v0"]),
        ]
    );
    assert_eq!(
        links(cache.latest_providing("g", "v1", "K")),
        [
            link(["a", "stable", "a.v1", ""]),
            link(["b", "all", "b.v2", ""]),
            link(["b", "all", "b.v2", "b.v1"]),
            link(["b", "fast", "b.v2", "b.v1"]),
        ]
    );
    let default = cache.default_providing("g", "v1", "K").unwrap();
    assert_eq!(messages::<api::Bundle>(default.reply())[0].csv_name, "a.v1");
    assert!(cache.providing("g", "v1", "k").is_none());
}

#[test]
fn custom_documents_are_found_by_package() {
    let (_scene, cache) = served();
    let names = |package: &str| -> Vec<prost_types::Value> {
        let found = messages::<prost_types::Struct>(cache.customs("example", package).unwrap());
        found
            .into_iter()
            .map(|one| one.fields["name"].clone())
            .collect()
    };
    assert_eq!(
        names("b"),
        ["one", "two"].map(|text| prost_types::Value {
            kind: Some(prost_types::value::Kind::StringValue(text.to_owned())),
        })
    );
    assert_eq!(names("").len(), 1);
    assert!(cache.customs("example", "a").is_none());
    assert!(cache.customs("olm.bundle", "a").is_none());
}

/// A catalog with lists nested `depth` deep at every place that holds any value.
fn deep(depth: usize) -> String {
    // Depth of the place itself.
    let lists = |around: usize| {
        let count = depth - around;
        "[".repeat(count) + &"]".repeat(count)
    };
    let csv = format!(r#"{{"kind":"ClusterServiceVersion","deep":{}}}"#, lists(1));
    let csv = BASE64_STANDARD.encode(csv);
    CATALOG
        .replace(r#""n":1}"#, &format!(r#""n":{}}}"#, lists(1)))
        .replace(
            r#"{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}"#,
            &format!(
                r#"{{"type":"olm.package","value":{{"packageName":"a","version":"1.0.0","x":{}}}}},
                {{"type":"olm.csv.metadata","value":{{"unknown":{},"crdDescriptions":{{"owned":[
                {{"specDescriptors":[{{"path":"p","value":{}}}]}}]}}}}}},
                {{"type":"deep","value":{}}}"#,
                lists(4),
                lists(4),
                lists(9),
                lists(3)
            ),
        )
        .replace(
            r#""entries":[{"name":"a.v1"}]"#,
            &format!(r#""entries":[{{"name":"a.v1"}}],"x":{}"#, lists(1)),
        )
        .replace("eyJraW5kIjoiQ2x1c3RlclNlcnZpY2VWZXJzaW9uIn0=", &csv)
}

#[test]
fn deep_documents_are_served_up_to_the_limit() {
    for depth in [129, MAX_DEPTH] {
        let scene = Fixture::new(&deep(depth));
        let (cache, _) = scene.prepare();
        let a = bundle(&cache, ["a", "stable", "a.v1"]);
        let property = a.properties.iter().find(|one| one.r#type == "deep");
        assert_eq!(property.unwrap().value.len(), 2 * (depth - 3));
        assert!(a.csv_json.contains(&"[".repeat(depth - 9)));
        assert_eq!(a.object, [&*a.csv_json]);
        let b = bundle(&cache, ["b", "fast", "b.v2"]);
        assert!(b.csv_json.contains(&"[".repeat(depth - 1)));
        let custom: Vec<_> = cache.customs("example", "b").unwrap().collect();
        assert!(custom[0].as_ref().unwrap().len() > 2 * depth);
    }
    let scene = Fixture::new(&deep(MAX_DEPTH + 1));
    let problems = scene.problems().to_string();
    assert!(problems.contains("more than 10000 deep"), "{problems}");
}

#[test]
fn a_package_may_span_several_batches() {
    let filling = "x".repeat(usize::try_from(BATCH_BYTES).unwrap());
    let own = r#"{"type":"olm.package","value":{"packageName":"b""#;
    let property = format!(r#"{{"type":"long","value":"{filling}"}},{own}"#);
    let text = format!(r#","text":"{filling}"}}"#);
    let catalog = CATALOG.replace(own, &property);
    let scene = Fixture::new(&catalog.replace(r#","n":1}"#, &text));
    let (cache, _) = scene.prepare();
    for name in ["b.v1", "b.v2"] {
        let bundle = bundle(&cache, ["b", "all", name]);
        assert_eq!(bundle.csv_name, name);
        assert_eq!(bundle.properties[0].value.len(), filling.len() + 2);
    }
    let customs = messages::<prost_types::Struct>(cache.customs("example", "b").unwrap());
    assert!(customs[0].fields.contains_key("text"));
    assert!(customs[1].fields.contains_key("n"));
    assert_eq!(messages::<api::Bundle>(cache.list_bundles()).len(), 5);
}

#[test]
fn documents_are_in_walk_order() {
    let (_scene, cache) = served();
    let all: Vec<u8> = cache
        .slices(cache.json())
        .flat_map(|piece| piece.unwrap().to_vec())
        .collect();
    let lines: Vec<_> = all.split(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len(), 11 + 1);
    let of_tables = cache.lines().map(|line| cache.slice(line.json).unwrap());
    assert!(of_tables.eq(lines[..11].iter().copied()));
    let custom = cache.lines().nth(9).unwrap();
    assert_eq!(
        [custom.schema, custom.package, custom.name],
        ["example", "", "of nobody"]
    );
    assert_eq!(custom.origin.0, "catalog.json");
}

#[test]
fn the_same_files_give_the_same_cache() {
    let (scene, _) = served();
    let other = Fixture::new(CATALOG);
    prepare(&other.configs(), &other.path(), NonZeroUsize::MIN, LATER).unwrap();
    assert!(fs::read(scene.path()).unwrap() == fs::read(other.path()).unwrap());
}

#[test]
fn a_cache_is_built_once_and_again_when_the_catalog_changes() {
    let scene = Fixture::new(CATALOG);
    assert!(matches!(scene.prepare().1, Some(Refused::Absent)));
    assert!(scene.prepare().1.is_none());
    assert_eq!(scene.files(), ["catalog", "catalog.seen"]);
    scene.write(&CATALOG.replace("1.0.0", "1.0.1"));
    let (cache, built) = scene.prepare();
    assert!(matches!(built, Some(Refused::Stale)), "{built:?}");
    assert_eq!(bundle(&cache, ["a", "stable", "a.v1"]).version, "1.0.1");
}

#[test]
fn racy_modification_times_are_not_trusted() {
    let scene = Fixture::new(CATALOG);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    prepare(
        &scene.configs(),
        &scene.path(),
        TWO,
        now.try_into().unwrap(),
    )
    .unwrap();
    assert_eq!(scene.files(), ["catalog"]);
}

#[test]
fn a_catalog_that_changes_during_the_build_is_read_again() {
    const FILES: usize = 20;
    const STATES: usize = 300;
    let scene = Fixture::new("");
    let configs = scene.folder.path().join("current");
    let replace = |number: usize| {
        let state = scene.folder.path().join(format!("state{number}"));
        fs::create_dir(&state).unwrap();
        for file in 0..FILES {
            let text = format!(r#"{{"schema":"x","name":"{number}"}}"#);
            fs::write(state.join(file.to_string()), text).unwrap();
        }
        let next = scene.folder.path().join("next");
        std::os::unix::fs::symlink(state, &next).unwrap();
        fs::rename(&next, &configs).unwrap();
    };
    replace(0);
    let names = || {
        let prepared = match prepare(&configs, &scene.path(), TWO, LATER) {
            Err(BuildError::Unstable) => return None,
            prepared => prepared.unwrap(),
        };
        assert_eq!(prepared.cache.lines().count(), FILES);
        let names = prepared.cache.lines().map(|it| it.name.to_owned());
        Some(names.collect::<BTreeSet<_>>())
    };
    std::thread::scope(|scope| {
        let replacing = scope.spawn(|| (1..STATES).for_each(replace));
        while !replacing.is_finished() {
            assert!(names().is_none_or(|names| names.len() == 1));
        }
    });
    assert_eq!(names(), Some(BTreeSet::from([(STATES - 1).to_string()])));
}

#[test]
fn walk_errors_change_the_key() {
    let (scene, _) = served();
    let link = scene.configs().join("link");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    let (cache, built) = scene.prepare();
    assert!(matches!(built, Some(Refused::Stale)));
    assert_eq!(cache.report().unread.0.len(), 1);
    // It may have been a transient failure.
    assert!(matches!(scene.prepare().1, Some(Refused::Stale)));
    fs::remove_file(link).unwrap();
    assert!(scene.prepare().0.report().is_clean());
    assert!(scene.prepare().1.is_none());
}

#[test]
fn a_hundred_thousand_documents_are_served() {
    const PACKAGES: usize = 1000;
    const OF_EACH: usize = 97;
    let package = |number: usize| {
        let own = CATALOG.lines().skip(1).take(5).collect::<String>();
        let own = own.replace(r#""a""#, &format!(r#""a{number}""#));
        let others = format!(r#"{{"schema":"example","package":"a{number}"}}"#);
        own + &others.repeat(OF_EACH)
    };
    let scene = Fixture::new(&(0..PACKAGES).map(package).collect::<String>());
    let (cache, _) = scene.prepare();
    assert_eq!(cache.lines().count(), PACKAGES * (OF_EACH + 3));
    assert_eq!(cache.package_count() as usize, PACKAGES);
    for name in ["a0", "a7", "a999"] {
        assert_eq!(bundle(&cache, [name, "stable", "a.v1"]).package_name, name);
        let others = cache.customs("example", name).unwrap();
        assert_eq!(messages::<prost_types::Struct>(others).len(), OF_EACH);
        assert_eq!(cache.documents(name).unwrap().len(), OF_EACH + 3);
    }
    assert_eq!(cache.groups().len(), PACKAGES);
}

#[test]
fn a_document_of_100_mb_is_served() {
    let filling = "0123456789abcdef".repeat(100 << 16);
    let text = format!(r#"{{"schema":"example","text":"{filling}"}}"#);
    let scene = Fixture::new(&text);
    let (cache, _) = scene.prepare();
    let message: prost_types::Struct = messages(cache.customs("example", "").unwrap()).remove(0);
    let expected = prost_types::value::Kind::StringValue(filling);
    assert!(message.fields["text"].kind == Some(expected));
    assert_eq!(cache.json().length(), text.len() as u64 + 1);
}

#[test]
fn a_deep_document_is_served() {
    let deep = "[".repeat(MAX_DEPTH - 1) + &"]".repeat(MAX_DEPTH - 1);
    let bundle = format!(r#"{{"type":"deep","value":{deep}}},"#);
    let own = format!(r#"{{"schema":"deep","x":{deep}}}"#);
    let place = r#"{"type":"olm.package","value":{"packageName":"a""#;
    let scene = Fixture::new(&(CATALOG.replace(place, &(bundle + place)) + &own));
    let problems = scene.problems().to_string();
    assert!(problems.contains("10000 deep"), "{problems}");

    let scene = Fixture::new(&(CATALOG.to_owned() + &own));
    let (cache, _) = scene.prepare();
    let reply: Vec<u8> = cache
        .customs("deep", "")
        .unwrap()
        .flat_map(|piece| piece.unwrap())
        .collect();
    assert!(reply.len() > 4 * MAX_DEPTH, "{}", reply.len());
}

#[test]
fn an_empty_catalog_is_served() {
    let scene = Fixture::new("");
    let (cache, _) = scene.prepare();
    assert_eq!(cache.list_packages().count(), 0);
    assert_eq!(cache.list_bundles().count(), 0);
    assert!(cache.package("").is_none());
}

#[test]
fn an_invalid_catalog_keeps_the_previous_cache() {
    let (scene, _) = served();
    let before = fs::read(scene.path()).unwrap();
    scene.write(&CATALOG.replace("stable", "st"));
    scene.prepare();
    let broken = r#"{"schema":"olm.package","name":"b","defaultChannel":"slow"}"#;
    scene.write(broken);
    let error = prepare(&scene.configs(), &scene.path(), TWO, LATER).unwrap_err();
    let BuildError::Invalid(problems) = error else {
        panic!("{error}")
    };
    assert!(problems.to_string().contains("slow"), "{problems}");
    assert_eq!(scene.files(), ["catalog", "catalog.seen"]);
    assert!(fs::read(scene.path()).unwrap() != before);
}

#[test]
fn unreadable_files_hide_no_other_errors() {
    let scene = Fixture::new("");
    for (name, package) in [("beside", "a"), ("away", "b")] {
        fs::create_dir(scene.configs().join(name)).unwrap();
        let text = format!(r#"{{"schema":"olm.package","name":"{package}"}}"#);
        fs::write(scene.configs().join(name).join("package.json"), text).unwrap();
    }
    fs::write(scene.configs().join("beside/broken.json"), "{").unwrap();
    let problems = scene.problems();
    let rules: Vec<_> = problems
        .0
        .iter()
        .map(|it| (it.rule, &*it.package))
        .collect();
    assert_eq!(rules[0], (Rule::Syntax, ""));
    assert!(rules.contains(&(Rule::DefaultChannel, "b")), "{problems}");
    // The unreadable file may hold its missing documents.
    assert!(
        rules.iter().all(|(_, package)| *package != "a"),
        "{problems}"
    );
}

#[test]
fn a_truncated_cache_is_rebuilt() {
    let (scene, _) = served();
    let whole = fs::read(scene.path()).unwrap();
    for part in 0..16 {
        fs::write(scene.path(), &whole[..whole.len() * part / 16]).unwrap();
        let (cache, built) = scene.prepare();
        assert!(built.is_some(), "{part}/16");
        assert_eq!(messages::<api::Bundle>(cache.list_bundles()).len(), 5);
        assert!(fs::read(scene.path()).unwrap() == whole, "{part}/16");
    }
    fs::write(scene.path(), [&whole[..], b"x"].concat()).unwrap();
    assert!(matches!(scene.prepare().1, Some(Refused::Damaged)));
}

#[test]
fn no_flipped_bit_reaches_a_reader() {
    let (scene, cache) = served();
    let (whole, key) = (fs::read(scene.path()).unwrap(), *cache.key());
    let damaged = scene.folder.path().join("damaged");
    let everything = |cache: &Arc<CatalogCache>| {
        let lists = [
            cache.list_packages(),
            cache.list_bundles(),
            cache.slices(cache.json()),
        ];
        let asked = ["a", "b"].map(|name| cache.package(name).unwrap().reply());
        let mut pieces = lists.into_iter().chain(asked).flatten();
        pieces.try_for_each(|piece| piece.map(drop))
    };
    for at in (0..whole.len()).step_by(61) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&damaged, bytes).unwrap();
        let noticed = match CatalogCache::open(&damaged, &key) {
            Err(_) => true,
            Ok(cache) => everything(&Arc::new(cache)).is_err(),
        };
        assert!(noticed, "byte {at} of {}", whole.len());
    }
}

#[test]
fn foreign_files_are_replaced() {
    let scene = Fixture::new(CATALOG);
    fs::create_dir_all(scene.path().parent().unwrap().join("pogreb.v1/db")).unwrap();
    fs::write(scene.path().with_extension("seen"), "nonsense").unwrap();
    fs::write(scene.path(), "SQLite format 3").unwrap();
    assert!(matches!(scene.prepare().1, Some(Refused::Foreign)));
}

#[test]
fn leftovers_of_interrupted_builds_are_overwritten() {
    let scene = Fixture::new(CATALOG);
    fs::create_dir_all(scene.path().parent().unwrap()).unwrap();
    fs::write(
        scene.folder.path().join("cache/catalog.building"),
        vec![7; 1 << 20],
    )
    .unwrap();
    scene.prepare();
    assert_eq!(scene.files(), ["catalog", "catalog.seen"]);
}

#[test]
fn readers_keep_their_cache_when_it_is_replaced() {
    let (scene, cache) = served();
    let mut begun = cache.list_bundles();
    scene.write("");
    let (empty, _) = scene.prepare();
    drop(cache);
    assert_eq!(empty.list_bundles().count(), 0);
    assert!(begun.next().unwrap().is_ok());
}

#[test]
fn builders_in_one_folder_wait_for_each_other() {
    let scene = Fixture::new(CATALOG);
    let key = CacheKey::of_text("sha256:1");
    let build = || rebuild(&scene.configs(), &scene.path(), &key, TWO);
    std::thread::scope(|scope| {
        let builds: Vec<_> = (0..8).map(|_| scope.spawn(build)).collect();
        for built in builds {
            assert_eq!(built.join().unwrap().unwrap().package_count(), 2);
        }
    });
    assert_eq!(scene.files(), ["catalog"]);
    assert!(matches!(
        CatalogCache::open(&scene.path(), &CacheKey::of_text("sha256:2")),
        Err(Refused::Stale)
    ));
    assert!(matches!(
        CatalogCache::open(Path::new("/nowhere"), &key),
        Err(Refused::Absent)
    ));
}
