//! Validation of properties.

use serde_json::{Value, json};

use super::{good, problems};
use crate::Rule;
use crate::content::PackageModel;
use crate::testing::documents;

/// The valid catalog with one more property of the first bundle.
fn with(kind: &str, value: &Value) -> Vec<Value> {
    let mut values = good();
    let properties = values[3]["properties"].as_array_mut().unwrap();
    properties.push(json!({"type": kind, "value": value}));
    values
}

#[test]
fn known_types_have_valid_and_invalid_values() {
    for (kind, right, wrong) in [
        (
            "olm.package.required",
            json!({"packageName": "zoo", "versionRange": "not looked at"}),
            json!({"packageName": "zoo", "versionRange": 1}),
        ),
        (
            "olm.gvk",
            json!({"group": "g", "version": "v1", "kind": "K", "plural": 1}),
            json!({"group": "g", "version": 1, "kind": "K"}),
        ),
        (
            "olm.gvk.required",
            json!({"GROUP": "g"}),
            json!(["g", "v1", "K"]),
        ),
        (
            "olm.bundle.object",
            json!({"data": "e3\n0="}),
            json!({"data": "e30"}),
        ),
        (
            "olm.csv.metadata",
            json!({"annotations": {"a": "b"}, "keywords": null}),
            json!({"annotations": {"a": 1}}),
        ),
        (
            "olm.channel",
            json!({"channelName": "stable", "priority": "5"}),
            json!({"channelName": 5}),
        ),
    ] {
        let values = documents(with(kind, &right));
        assert!(PackageModel::assemble(&values).is_ok(), "{kind} {right}");
        for wrong in [wrong, json!("text"), json!(1)] {
            let found = problems(&with(kind, &wrong));
            let place = format!("parse property[1] of type {kind:?}");
            let is_reported =
                |it: &crate::CatalogProblem| it.rule == Rule::Property && it.text.contains(&place);
            assert!(found.0.iter().any(is_reported), "{kind} {wrong}: {found}");
        }
    }
}

#[test]
fn unknown_types_accept_any_value() {
    for kind in [
        "olm.constraint",
        "olm.maxOpenShiftVersion",
        "olm.deprecated",
        "olm.substitutesFor",
        "mine",
        "",
    ] {
        for value in [
            json!(null),
            json!(4.18),
            json!("4.18"),
            json!([{}]),
            json!({"cel": 1}),
        ] {
            let values = documents(with(kind, &value));
            let package = PackageModel::assemble(&values).unwrap().unwrap();
            let served = package
                .bundle("etcd.v1.0.0")
                .unwrap()
                .served_properties()
                .last();
            let served = served.map(|it| (it.kind.to_string(), it.value().to_owned()));
            assert_eq!(served, Some((kind.to_owned(), value.to_string())));
        }
    }
}

#[test]
fn required_apis_and_packages_become_dependencies() {
    let mut values = good();
    values[3]["properties"] = json!([
        {"type": "olm.gvk.required", "value": {"version": "v1", "kind": "R", "group": "r", "extra": "<"}},
        {"type": "olm.constraint", "value": {"failureMessage": "m"}},
        {"type": "olm.package.required", "value": {"versionRange": ">=1.0.0", "packageName": "zoo"}},
        {"type": "olm.gvk", "value": {"group": "g", "version": "v1", "kind": "K"}},
        {"type": "olm.gvk", "value": {"group": "g", "version": "v1", "kind": "K"}},
        {"type": "olm.package", "value": {"packageName": "etcd", "version": "1.0.0"}},
        {"type": "olm.bundle.object", "value": {}},
        {"type": "olm.csv.metadata", "value": {}}]);
    let values = documents(values);
    let package = PackageModel::assemble(&values).unwrap().unwrap();
    let bundle = package.bundle("etcd.v1.0.0").unwrap();
    let needed: Vec<_> = bundle
        .dependencies
        .iter()
        .map(|it| (it.kind, &*it.value))
        .collect();
    let gvk = r#"{"extra":"<","group":"r","kind":"R","version":"v1"}"#;
    let range = r#"{"packageName":"zoo","version":">=1.0.0"}"#;
    assert_eq!(needed, [("olm.gvk", gvk), ("olm.package", range)]);
    assert_eq!(bundle.required_apis.len(), 1);
    assert_eq!(bundle.provided_apis.len(), 2);
    assert_eq!(bundle.served_properties().count(), 6);
}
