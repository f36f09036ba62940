mod properties;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::*;
use crate::csv::PackageMetadata;
use crate::testing::documents;
use crate::{CatalogProblems, Rule};

/// Three bundles in two channels, one of each deprecated.
fn good() -> Vec<Value> {
    vec![
        json!({"schema": "olm.package", "name": "etcd", "defaultChannel": "stable",
            "icon": {"base64data": "aWNvbg==", "mediatype": "image/png"}, "description": "A store"}),
        json!({"schema": "olm.channel", "package": "etcd", "name": "stable", "entries": [
            {"name": "etcd.v1.1.0", "replaces": "etcd.v1.0.0", "skips": ["etcd.v0.9.0"], "skipRange": "<1.0.0"},
            {"name": "etcd.v1.0.0", "replaces": "etcd.v0.9.0"}]}),
        json!({"schema": "olm.channel", "package": "etcd", "name": "alpha", "entries": [
            {"name": "etcd-v2.0.0-1"}]}),
        bundle(
            "etcd.v1.0.0",
            &json!({"packageName": "etcd", "version": "1.0.0"}),
        ),
        bundle(
            "etcd.v1.1.0",
            &json!({"packageName": "etcd", "version": "1.1.0+b"}),
        ),
        bundle(
            "etcd-v2.0.0-1",
            &json!({"packageName": "etcd", "version": "2.0.0", "release": "1"}),
        ),
        json!({"schema": "olm.deprecations", "package": "etcd", "entries": [
            {"reference": {"schema": "olm.package"}, "message": "all of it"},
            {"reference": {"schema": "olm.channel", "name": "alpha"}, "message": "unfinished"},
            {"reference": {"schema": "olm.bundle", "name": "etcd.v1.0.0"}, "message": "old"}]}),
        json!({"schema": "example.com.v1", "package": "etcd"}),
    ]
}

fn bundle(name: &str, package: &Value) -> Value {
    json!({"schema": "olm.bundle", "package": "etcd", "name": name, "image": "quay.io/etcd/bundle:1",
        "properties": [{"type": "olm.package", "value": package}],
        "relatedImages": [{"name": "server", "image": "quay.io/etcd/server:1"}, {"name": "", "image": ""}]})
}

/// Errors and warnings, in walk order.
fn problems(values: &[Value]) -> CatalogProblems {
    let documents = documents(values);
    let problems = PackageModel::validate(&documents).1;
    let mut all = [problems.errors.0, problems.warnings.0].concat();
    all.sort_by(|a, b| a.origin.cmp(&b.origin));
    CatalogProblems(all)
}

#[test]
fn a_package_is_assembled() {
    let documents = documents(good());
    let package = PackageModel::assemble(&documents).unwrap().unwrap();
    assert_eq!(package.name, "etcd");
    assert_eq!(package.default_channel, "stable");
    assert_eq!(package.icon.as_ref().unwrap().data, b"icon");
    assert_eq!(package.deprecation.as_deref(), Some("all of it"));
    let channels: Vec<_> = package
        .channels
        .iter()
        .map(|channel| (channel.name, &*channel.head().name))
        .collect();
    assert_eq!(
        channels,
        [("alpha", "etcd-v2.0.0-1"), ("stable", "etcd.v1.1.0")]
    );
    assert_eq!(
        package.channels[0].deprecation.as_deref(),
        Some("unfinished")
    );
    let bundle = package.bundle("etcd.v1.1.0").unwrap();
    assert_eq!(bundle.version_text, "1.1.0+b");
    assert_eq!(bundle.image, "quay.io/etcd/bundle:1");
    assert_eq!(
        package
            .bundle("etcd.v1.0.0")
            .unwrap()
            .deprecation
            .as_deref(),
        Some("old")
    );
}

#[test]
fn custom_documents_need_no_package() {
    let documents = documents(&[json!({"schema": "a", "package": "none"})]);
    assert!(PackageModel::assemble(&documents).unwrap().is_none());
    assert!(PackageModel::assemble(&[]).unwrap().is_none());
}

#[test]
fn one_report_has_all_problems() {
    let mut values = good();
    values[0]["defaultChannel"] = json!("");
    values[3]["image"] = json!("A b");
    values[4]["properties"] = json!([]);
    let CatalogProblems(problems) = problems(&values);
    let rules: Vec<Rule> = problems.iter().map(|problem| problem.rule).collect();
    assert_eq!(
        rules,
        [Rule::DefaultChannel, Rule::PullSpec, Rule::PackageProperty]
    );
    let lines: Vec<u64> = problems
        .iter()
        .map(|p| p.origin.as_ref().unwrap().line)
        .collect();
    assert_eq!(lines, [1, 4, 5]);
    assert!(problems.iter().all(|problem| problem.package == "etcd"));
}

type Mutation = fn(&mut Vec<Value>);

/// A mutation of the valid catalog per rule, with the expected message fragment.
const SPOILT: &[(Rule, &str, Mutation)] = &[
    (
        Rule::Members,
        "parse bundle \"etcd.v1.0.0\": relatedImages: [0]: name: invalid type",
        |v| {
            v[3]["relatedImages"][0]["name"] = json!(1);
        },
    ),
    (
        Rule::Members,
        "parse package \"etcd\": icon: base64data: illegal base64 data",
        |v| {
            v[0]["icon"]["base64data"] = json!("a");
        },
    ),
    (
        Rule::Members,
        "parse channel \"stable\": entries: [0]: duplicate field `name`",
        |v| v[1]["entries"][0]["Name"] = json!("other"),
    ),
    (
        Rule::PackageNamed,
        "config contains package with no name",
        |v| {
            *v = vec![json!({"schema": "olm.package"})];
        },
    ),
    (Rule::PackageUnique, "duplicate package \"etcd\"", |v| {
        v.push(v[0].clone());
    }),
    (Rule::PackageName, "invalid package name \"etcd.io\"", |v| {
        *v = vec![json!({"schema": "olm.package", "name": "etcd.io"})];
    }),
    (
        Rule::ChannelPackage,
        "unknown package \"etcd\" for channel \"alpha\"",
        |v| {
            v.remove(0);
        },
    ),
    (
        Rule::ChannelNamed,
        "package \"etcd\" contains channel with no name",
        |v| {
            v[2]["name"] = json!("");
        },
    ),
    (
        Rule::ChannelUnique,
        "package \"etcd\" has duplicate channel \"alpha\"",
        |v| {
            v.push(v[2].clone());
        },
    ),
    (
        Rule::EntryUnique,
        "invalid package \"etcd\", channel \"alpha\": duplicate entry \"etcd-v2.0.0-1\"",
        |v| {
            v[2]["entries"] = json!([{"name": "etcd-v2.0.0-1"}, {"name": "etcd-v2.0.0-1"}]);
        },
    ),
    (
        Rule::BundlePackage,
        "package name must be set for bundle \"b\"",
        |v| {
            *v = vec![json!({"schema": "olm.bundle", "name": "b"})];
        },
    ),
    (
        Rule::BundlePackageKnown,
        "unknown package \"etcd\" for bundle \"etcd.v1.0.0\"",
        |v| {
            v.remove(0);
        },
    ),
    (Rule::BundleNamed, "name must be set", |v| {
        v[3]["name"] = json!("");
    }),
    (
        Rule::BundleUnique,
        "package \"etcd\" has duplicate bundle \"etcd.v1.0.0\"",
        |v| {
            v.push(v[3].clone());
        },
    ),
    (
        Rule::Property,
        "parse properties for bundle \"etcd.v1.0.0\": parse property[0] of type \"olm.gvk\": kind: invalid type",
        |v| v[3]["properties"] = json!([{"type": "olm.gvk", "value": {"kind": 1}}]),
    ),
    (
        Rule::Property,
        "parse property[0] of type \"mine\": unexpected end of JSON input",
        |v| v[3]["properties"] = json!([{"type": "mine"}]),
    ),
    (
        Rule::PackageProperty,
        "must have exactly 1 \"olm.package\" property, found 0",
        |v| {
            v[3]["properties"] = Value::Null;
        },
    ),
    (
        Rule::PackageProperty,
        "must have exactly 1 \"olm.package\" property, found 2",
        |v| {
            let property = v[3]["properties"][0].clone();
            v[3]["properties"] = json!([property, property]);
        },
    ),
    (
        Rule::PackagePropertyName,
        "package \"etcd\" does not match \"olm.package\" property \"zoo\"",
        |v| v[3]["properties"][0]["value"]["packageName"] = json!("zoo"),
    ),
    (
        Rule::PullSpec,
        "image: invalid image pull spec \"quay.io/A\"",
        |v| {
            v[3]["image"] = json!("quay.io/A");
        },
    ),
    (
        Rule::PullSpec,
        "relatedImages[1].image: invalid image pull spec \"a b\"",
        |v| {
            v[3]["relatedImages"][1]["image"] = json!("a b");
        },
    ),
    (
        Rule::Version,
        "error parsing bundle \"etcd.v1.0.0\" version \"v1\"",
        |v| {
            v[3]["properties"][0]["value"]["version"] = json!("v1");
        },
    ),
    (
        Rule::Release,
        "error parsing bundle \"etcd.v1.0.0\" release version \"01\"",
        |v| {
            v[3]["properties"][0]["value"]["release"] = json!("01");
        },
    ),
    (
        Rule::BundleInChannel,
        "package \"etcd\", bundle \"lost\" not found in any channel entries",
        |v| {
            v.push(bundle(
                "lost",
                &json!({"packageName": "etcd", "version": "9.0.0"}),
            ));
        },
    ),
    (
        Rule::EntryBundle,
        "no olm.bundle blobs found in package \"etcd\" for olm.channel entries [etcd.v1.0.0]",
        |v| {
            v.remove(3);
        },
    ),
    (
        Rule::DeprecationsMembers,
        "parse deprecation \"\": entries: invalid type",
        |v| v[6]["entries"] = json!(7),
    ),
    (
        Rule::DeprecationsPackage,
        "package name must be set for deprecation item 0",
        |v| {
            *v = vec![json!({"schema": "olm.deprecations"})];
        },
    ),
    (
        Rule::DeprecationsPackageKnown,
        "cannot apply deprecations to an unknown package \"etcd\"",
        |v| {
            v.remove(0);
        },
    ),
    (
        Rule::DeprecationsUnique,
        "expected a maximum of one deprecation per package: \"etcd\"",
        |v| v.push(v[6].clone()),
    ),
    (
        Rule::DeprecationSchema,
        "schema must be set for deprecation entry [0] for package \"etcd\"",
        |v| v[6]["entries"][0]["reference"] = Value::Null,
    ),
    (Rule::DeprecationSchema, "object schema unknown", |v| {
        v[6]["entries"][0]["reference"]["schema"] = json!("olm.catalog");
    }),
    (
        Rule::DeprecationUnique,
        "duplicate deprecation entry",
        |v| {
            v[6]["entries"][1] = v[6]["entries"][0].clone();
        },
    ),
    (
        Rule::DeprecationTarget,
        "cannot deprecate bundle \"x\" for package \"etcd\": bundle not found",
        |v| v[6]["entries"][2]["reference"]["name"] = json!("x"),
    ),
    (
        Rule::DeprecationTarget,
        "cannot deprecate channel \"x\" for package \"etcd\": channel not found",
        |v| v[6]["entries"][1]["reference"]["name"] = json!("x"),
    ),
    (
        Rule::DeprecationPackageName,
        "package name must be empty for deprecated package \"etcd\" (specified \"etcd\")",
        |v| v[6]["entries"][0]["reference"]["name"] = json!("etcd"),
    ),
    (
        Rule::DeprecationMessage,
        "invalid deprecation: message must be set",
        |v| {
            v[6]["entries"][0]["message"] = Value::Null;
        },
    ),
    (Rule::DefaultChannel, "default channel must be set", |v| {
        v[0]["defaultChannel"] = json!("");
    }),
    (
        Rule::DefaultChannelKnown,
        "channel must contain at least one bundle",
        |v| {
            v[0]["defaultChannel"] = json!("beta");
        },
    ),
    (
        Rule::PackageChannels,
        "package must contain at least one channel",
        |v| v.truncate(1),
    ),
    (
        Rule::ChannelEntries,
        "invalid channel \"alpha\": channel must contain at least one bundle",
        |v| v[2]["entries"] = Value::Null,
    ),
    (Rule::ChannelHead, "no channel head found in graph", |v| {
        v[2]["entries"][0]["replaces"] = json!("etcd-v2.0.0-1");
    }),
    (
        Rule::ChannelHead,
        "multiple channel heads found in graph: etcd.v1.0.0, etcd.v1.1.0",
        |v| v[1]["entries"][0]["replaces"] = json!(""),
    ),
    (
        Rule::ReplacesCycle,
        "detected cycle in replaces chain of upgrade graph: etcd.v1.0.0 -> etcd.v1.0.0",
        |v| v[1]["entries"][1]["replaces"] = json!("etcd.v1.0.0"),
    ),
    (
        Rule::Stranded,
        "channel contains one or more stranded bundles: etcd-v2.0.0-1",
        |v| {
            v[1]["entries"] = json!([
            {"name": "etcd.v1.1.0", "replaces": "etcd.v1.0.0", "skips": ["etcd.v1.0.0"]},
            {"name": "etcd.v1.0.0", "replaces": "etcd-v2.0.0-1"},
            {"name": "etcd-v2.0.0-1"}]);
        },
    ),
    (
        Rule::UniqueVersions,
        "duplicate versions found in bundles: [{1.0.0: [etcd.v1.0.0, etcd.v1.1.0]}]",
        |v| v[4]["properties"][0]["value"]["version"] = json!("1.0.0"),
    ),
    (Rule::Skips, "skip[0] is empty", |v| {
        v[1]["entries"][0]["skips"] = json!([""]);
    }),
    (Rule::SkipRange, "invalid skipRange \"~1\"", |v| {
        v[1]["entries"][0]["skipRange"] = json!("~1");
    }),
    (Rule::BundleImage, "bundle image must be set", |v| {
        v[3]["image"] = Value::Null;
    }),
    (
        Rule::ReleaseName,
        "name \"etcd.v1.0.0\" does not match normalized name \"etcd-v1.0.0-2\"",
        |v| v[3]["properties"][0]["value"]["release"] = json!("2"),
    ),
    (
        Rule::ReleaseBuild,
        "cannot use build metadata in version with a release version",
        |v| v[5]["properties"][0]["value"]["version"] = json!("2.0.0+b"),
    ),
    (
        Rule::BundleObject,
        "convert bundle object property at index 1 to JSON",
        |v| {
            let package = v[3]["properties"][0].clone();
            let object = json!({"type": "olm.bundle.object", "value": {"data": "e/8="}});
            v[3]["properties"] = json!([package, object]);
        },
    ),
    (
        Rule::CsvMetadata,
        "expected at most 1 property of type \"olm.csv.metadata\", found 2",
        |v| {
            let metadata = json!({"type": "olm.csv.metadata", "value": {}});
            let package = v[3]["properties"][0].clone();
            v[3]["properties"] = json!([package, metadata, metadata]);
        },
    ),
    (
        Rule::CustomSchema,
        "invalid custom schema meta: invalid schema \"-x\"",
        |v| {
            v[7]["schema"] = json!("-x");
        },
    ),
    (
        Rule::CustomSchema,
        "invalid custom schema meta: invalid packageName \"etcd io\"",
        |v| *v = vec![json!({"schema": "mine", "package": "etcd io"})],
    ),
];

#[test]
fn every_rule_is_checked() {
    for (rule, fragment, spoil) in SPOILT {
        let mut values = good();
        spoil(&mut values);
        let CatalogProblems(problems) = problems(&values);
        let found = problems
            .iter()
            .find(|problem| problem.rule == *rule && problem.text.contains(fragment));
        let problem = found.unwrap_or_else(|| panic!("{rule}: {fragment}: {problems:#?}"));
        assert!(problem.origin.is_some(), "{rule}");
    }
}

#[test]
fn every_rule_has_a_bad_case() {
    let of_files = [
        Rule::Readable,
        Rule::Syntax,
        Rule::Document,
        Rule::CustomDocument,
    ];
    for rule in Rule::ALL.iter().filter(|rule| !of_files.contains(rule)) {
        assert!(SPOILT.iter().any(|(spoilt, ..)| spoilt == rule), "{rule}");
    }
}

/// Versions of opm without the rule serve the package.
#[test]
fn young_rules_keep_no_package_from_being_served() {
    let is_named = |values: &[Value]| values[0]["schema"] == "olm.package";
    for (rule, fragment, spoil) in SPOILT {
        let mut values = good();
        spoil(&mut values);
        let documents = documents(&values);
        let (package, problems) = PackageModel::validate(&documents);
        let is_error = problems.errors.0.iter().any(|it| it.rule == *rule);
        if *rule == Rule::Stranded || rule.since().is_some() {
            assert!(!is_error, "{rule}: {fragment}");
        } else {
            assert!(is_error, "{rule}: {fragment}");
            continue;
        }
        if is_named(&values) && values.len() > 1 {
            assert!(problems.errors.0.is_empty(), "{rule}: {problems:?}");
            assert!(package.is_some(), "{rule}: {fragment}");
        }
    }
}

#[test]
fn malformed_values_of_young_rules_are_ignored() {
    let mut values = good();
    values[1]["entries"][0]["skipRange"] = json!("~1");
    values[3]["image"] = json!("oci://r/x:1");
    values[4]["properties"][0]["value"]["release"] = json!("01");
    values[6]["entries"][0]["reference"]["schema"] = json!("olm.catalog");
    values[6]["entries"][1]["message"] = json!("");
    let documents = documents(&values);
    let package = PackageModel::assemble(&documents).unwrap().unwrap();
    assert_eq!(package.deprecation, None);
    assert!(package.channels.iter().all(|it| it.deprecation.is_none()));
    let bundle = |name| package.bundle(name).unwrap();
    assert_eq!(bundle("etcd.v1.0.0").image, "oci://r/x:1");
    assert_eq!(
        bundle("etcd.v1.0.0").deprecation.as_deref(),
        Some("old"),
        "valid entries count"
    );
    assert_eq!(bundle("etcd.v1.1.0").full_version(), "1.1.0+b");
}

#[test]
fn bundles_are_selected_beside_broken_ones() {
    let broken: &[Mutation] = &[
        |v| v[3]["properties"] = json!([]),
        |v| v[3]["properties"][0]["value"]["version"] = json!("v1"),
        |v| v[3]["properties"] = json!(7),
        |v| v[3]["image"] = Value::Null,
        |v| drop(v.remove(3)),
        |v| v.push(v[3].clone()),
    ];
    for (number, spoil) in broken.iter().enumerate() {
        let mut values = good();
        spoil(&mut values);
        let documents = documents(&values);
        assert!(PackageModel::assemble(&documents).is_err(), "{number}");
        let package = PackageModel::assemble_partly(&documents);
        let package = package.unwrap().unwrap();
        assert!(package.bundle("etcd.v1.0.0").is_none(), "{number}");
        assert!(package.bundle("etcd.v1.1.0").is_some(), "{number}");
        assert_eq!(package.channel("stable").unwrap().entries.len(), 2);
    }
    let mut values = good();
    values[0]["defaultChannel"] = json!("none");
    assert!(PackageModel::assemble_partly(&documents(&values)).is_err());
}

/// Manifests of a bundle with these additional properties.
fn contents(properties: &[Value]) -> Contents {
    let mut values = good();
    let all = values[3]["properties"].as_array_mut().unwrap();
    all.extend_from_slice(properties);
    let documents = documents(&values);
    assert!(PackageModel::assemble(&documents).is_ok());
    let metadata = PackageMetadata::new(&documents[0]);
    UnpackedBundle::new(&documents[3], &metadata)
        .unwrap()
        .contents
}

fn object(text: &str) -> Value {
    let data = BASE64_STANDARD.encode(text);
    json!({"type": "olm.bundle.object", "value": {"data": data}})
}

fn metadata() -> Value {
    json!({"type": "olm.csv.metadata", "value": {"displayName": "Etcd"}})
}

#[test]
fn objects_are_served_as_they_are_unless_they_are_yaml() {
    let csv = " { \"spec\": 1.50,\n\"kind\": \"ClusterServiceVersion\" }";
    let contents = contents(&[object("kind: Service\na: 1.50\n"), object(csv), metadata()]);
    assert_eq!(contents.objects, [r#"{"a":1.5,"kind":"Service"}"#, csv]);
    assert_eq!(contents.csv, CsvLocation::Object(1));
}

#[test]
fn an_object_without_data_is_null() {
    let nothing = json!({"type": "olm.bundle.object", "value": {}});
    let contents = contents(&[nothing]);
    assert_eq!(contents.objects, ["null"]);
    assert_eq!(contents.csv, CsvLocation::Nowhere);
}

#[test]
fn a_csv_is_made_beside_other_objects() {
    let contents = contents(&[object("{}"), metadata()]);
    assert_eq!(contents.objects, ["{}"]);
    let CsvLocation::Beside(csv) = contents.csv else {
        panic!("{contents:?}")
    };
    assert!(csv.contains(r#""displayName":"Etcd""#));
}

#[test]
fn yaml_that_begins_like_json_is_a_csv_too() {
    let contents = contents(&[object("{kind: ClusterServiceVersion}")]);
    assert_eq!(contents.csv, CsvLocation::Object(0));
}

#[test]
fn a_bundle_without_manifests_is_empty() {
    assert_eq!(contents(&[]), Contents::default());
}

#[test]
fn members_are_found_in_any_case() {
    let mut values = good();
    let entries = values[1].as_object_mut().unwrap().remove("entries");
    values[1]["ENTRIES"] = entries.unwrap();
    values[1]["Properties"] = Value::Null;
    assert!(PackageModel::assemble(&documents(&values)).is_ok());
}
