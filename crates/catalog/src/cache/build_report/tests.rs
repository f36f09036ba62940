use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::cache::{BuildError, CatalogCache, build_new, prepare};
use crate::content::PackageModel;

const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();
/// Long after every file was written. Units: seconds since 1970.
const LATER: i64 = 1 << 40;

/// Documents of a package with these channel entries; bundles `NAME.vN` have the version `N.0.0`.
fn package(name: &str, entries: &Value) -> Vec<Value> {
    let mut documents = vec![
        json!({"schema": "olm.package", "name": name, "defaultChannel": "c"}),
        json!({"schema": "olm.channel", "package": name, "name": "c", "entries": entries}),
    ];
    for entry in entries.as_array().unwrap() {
        let bundle = entry["name"].as_str().unwrap();
        let version = format!("{}.0.0", bundle.rsplit('v').next().unwrap());
        documents.push(json!({
            "schema": "olm.bundle", "package": name, "name": bundle, "image": "r.io/a/b:c",
            "properties": [{"type": "olm.package", "value": {"packageName": name, "version": version}}],
        }));
    }
    documents
}

/// A package of two versions.
fn sound(name: &str) -> Vec<Value> {
    let [one, two] = [1, 2].map(|version| format!("{name}.v{version}"));
    package(
        name,
        &json!([{"name": one}, {"name": two, "replaces": one}]),
    )
}

fn lines(documents: &[Value]) -> String {
    let lines: Vec<_> = documents.iter().map(ToString::to_string).collect();
    lines.join("\n") + "\n"
}

/// A catalog of these files.
struct Catalog {
    folder: TempDir,
}

impl Catalog {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        for (name, text) in files {
            let path = folder.path().join("configs").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self { folder }
    }

    fn of(documents: &[Value]) -> Self {
        Self::new(&[("catalog.json", &lines(documents))])
    }

    fn configs(&self) -> PathBuf {
        self.folder.path().join("configs")
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn prepare(&self) -> Arc<CatalogCache> {
        let prepared = prepare(&self.configs(), &self.path(), TWO, LATER);
        prepared.unwrap().cache
    }
}

fn served(cache: &Arc<CatalogCache>) -> Vec<String> {
    let names = cache.package_names().into_iter();
    names.filter(|name| cache.package(name).is_some()).collect()
}

fn rules(problems: &CatalogProblems) -> Vec<Rule> {
    problems.0.iter().map(|problem| problem.rule).collect()
}

#[test]
fn each_package_is_validated_by_itself() {
    let older = json!([
        {"name": "older.v1"},
        {"name": "older.v2", "replaces": "older.v1"},
        {"name": "older.v3", "replaces": "older.v2", "skips": ["older.v2"]},
    ]);
    let heads = json!([{"name": "heads.v1"}, {"name": "heads.v2"}]);
    let mut gap = package(
        "gap",
        &json!([{"name": "gap.v1"}, {"name": "gap.v2", "replaces": "gap.v1"}]),
    );
    gap.remove(2);
    let catalog = Catalog::of(
        &[
            sound("sound"),
            package("older", &older),
            package("heads", &heads),
            gap,
        ]
        .concat(),
    );
    let cache = catalog.prepare();
    assert_eq!(served(&cache), ["older", "sound"]);
    let report = cache.report();
    assert_eq!(rules(&report.refused["heads"]), [Rule::ChannelHead]);
    assert_eq!(rules(&report.partial["gap"]), [Rule::EntryBundle]);
    assert_eq!(rules(&report.warned["older"]), [Rule::Stranded]);
    assert_eq!((report.refused.len(), report.partial.len()), (1, 1));
    assert_eq!(report.unread, CatalogProblems::default());
    let bundles = |name: &str| {
        let count = |package: &PackageModel<'_>| package.bundles.len();
        cache
            .with_package(name, |package, _| count(package))
            .unwrap()
    };
    assert_eq!(bundles("older"), Some(3));
    assert_eq!(bundles("gap"), Some(1));
    assert_eq!(bundles("heads"), None);
    let problems = cache.report().problems();
    let rules = rules(&problems);
    assert_eq!(
        rules,
        [Rule::EntryBundle, Rule::ChannelHead, Rule::Stranded]
    );
    // The report is stored with the cache.
    let again = catalog.prepare();
    assert_eq!(again.report(), cache.report());
    assert!(!again.report().is_clean());
}

#[test]
fn packages_that_older_opm_serves_are_served_with_a_warning() {
    type Mutation = fn(&mut Vec<Value>);
    let spoilt: &[(Rule, &str, Mutation)] = &[
        (Rule::PullSpec, "1.64", |v| {
            v[2]["relatedImages"] = json!([{"name": "x", "image": "oci://r/x:1"}]);
        }),
        (Rule::PullSpec, "1.64", |v| {
            v[2]["image"] = json!("r/x@sha256:00");
        }),
        (Rule::UniqueVersions, "1.47", |v| {
            v[3]["properties"][0]["value"]["version"] = json!("1.0.0");
        }),
        (Rule::SkipRange, "1.69", |v| {
            v[1]["entries"][1]["skipRange"] = json!("~1 || 2");
        }),
        (Rule::Release, "1.62", |v| {
            v[2]["properties"][0]["value"]["release"] = json!("a_b");
        }),
        (Rule::CustomSchema, "1.69", |v| {
            v.push(json!({"schema": "-x", "package": "kuad"}));
        }),
        (Rule::DeprecationTarget, "1.32", |v| {
            v.push(
                json!({"schema": "olm.deprecations", "package": "kuad", "entries": [
                {"reference": {"schema": "olm.bundle", "name": "none"}, "message": "old"}]}),
            );
        }),
    ];
    for (rule, since, spoil) in spoilt {
        let mut kuad = sound("kuad");
        spoil(&mut kuad);
        let catalog = Catalog::of(&[kuad, sound("other")].concat());
        let cache = catalog.prepare();
        assert_eq!(served(&cache), ["kuad", "other"], "{rule}");
        let warned = &cache.report().warned["kuad"];
        assert_eq!(
            (rules(warned), warned.since()),
            (vec![*rule], Some(*since)),
            "{rule}"
        );
        assert_eq!(cache.report().problems(), *warned);
    }
}

/// Files, and the packages that are served.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

#[test]
fn unreadable_documents_concern_the_packages_beside_them_alone() {
    let broken_line = format!("{}{{\"schema\": }}\n", lines(&sound("a")));
    let both = format!("{broken_line}{}", lines(&sound("b")));
    let cases: &[Case<'_>] = &[
        // The only package of the file, or of the folder.
        (&[("a/c.json", &broken_line)], &["z"]),
        (
            &[("a/c.json", &lines(&sound("a"))), ("a/notes.md", "a: b: c")],
            &["z"],
        ),
        // One of several packages, of which none misses a document.
        (&[("both.json", &both)], &["a", "b", "z"]),
        (
            &[
                ("a.json", &lines(&sound("a"))),
                ("b.json", &lines(&sound("b"))),
                ("notes.md", "Notes: {"),
            ],
            &["a", "b", "z"],
        ),
        // No package is beside it.
        (&[("docs/notes.md", "Notes: {")], &["z"]),
        // Its package is known.
        (
            &[
                ("a.json", &lines(&sound("a"))),
                (
                    "b.json",
                    &format!(
                        "{}{}",
                        lines(&sound("b")),
                        r#"{"schema":"olm.channel","package":"b","name":5}"#
                    ),
                ),
            ],
            &["a", "z"],
        ),
        // Custom documents are not of packages.
        (
            &[(
                "a/c.json",
                &format!(
                    "{}{}",
                    lines(&sound("a")),
                    r#"{"schema":"mine","package":"a","name":5}"#
                ),
            )],
            &["a", "z"],
        ),
    ];
    for (files, expected) in cases {
        let z = lines(&sound("z"));
        let catalog = Catalog::new(&[*files, &[("z/catalog.json", &z)]].concat());
        let cache = catalog.prepare();
        assert_eq!(served(&cache), *expected, "{files:?}");
        assert_eq!(cache.report().unread.0.len(), 1, "{files:?}");
    }
}

#[test]
fn packages_that_may_miss_an_unreadable_document_are_refused_for_it() {
    let incomplete = json!({"schema": "olm.package", "name": "beside"}).to_string();
    let catalog = Catalog::new(&[
        ("catalog.json", &lines(&sound("sound"))),
        ("other/a.json", "{\"schema\": "),
        ("other/b.json", &incomplete),
        ("other/c.json", &lines(&sound("complete"))),
    ]);
    let cache = catalog.prepare();
    assert_eq!(served(&cache), ["complete", "sound"]);
    assert_eq!(cache.report().refused["beside"], cache.report().unread);
    assert_eq!(cache.report().problems(), cache.report().unread);
}

#[test]
fn a_catalog_without_a_useful_package_is_invalid() {
    let heads = package(
        "heads",
        &json!([{"name": "heads.v1"}, {"name": "heads.v2"}]),
    );
    let mut gap = sound("gap");
    gap.remove(2);
    for (documents, is_readable) in [(heads, false), (gap, true)] {
        let catalog = Catalog::of(&documents);
        let refused = prepare(&catalog.configs(), &catalog.path(), TWO, LATER);
        assert!(matches!(refused, Err(BuildError::Invalid(_))));
        let built = build_new(&catalog.configs(), &catalog.folder.path().join("new"), TWO);
        assert_eq!(built.is_ok(), is_readable);
    }
    assert!(Catalog::of(&[]).prepare().report().is_clean());
}

#[test]
fn reports_are_stored_as_they_are() {
    let problem = |rule: Rule| CatalogProblem {
        origin: Some(DocumentOrigin::new(Path::new("a/b.json"), 7)),
        package: "a".to_owned(),
        rule,
        text: format!("\"{rule}\"\u{0}"),
    };
    let all = CatalogProblems(Rule::ALL.iter().copied().map(problem).collect());
    let named = |name: &str| BTreeMap::from([(name.to_owned(), all.clone())]);
    let report = BuildReport {
        refused: named("a"),
        partial: named("b"),
        warned: named(""),
        unread: all.clone(),
    };
    assert_eq!(BuildReport::from_json(&report.to_json()), Some(report));
}
