use serde_json::{Value, json};

use super::*;
use crate::testing;

/// 1.0.0 and its replacement in `stable`, the latter in `fast` too; a custom schema.
fn catalog() -> Vec<Value> {
    let entries = [
        json!({"name": "v1.0.0"}),
        json!({"name": "v1.1.0", "replaces": "v1.0.0"}),
    ];
    let documents = testing::package(&[("stable", &entries), ("fast", &entries[1..])]);
    let mut values: Vec<Value> = documents
        .iter()
        .map(|document| serde_json::from_str(&document.json).unwrap())
        .collect();
    values[2]["entries"] = json!([{"name": "v1.1.0"}]);
    values.push(json!({"schema": "mine", "package": "p", "n": 1}));
    values
}

fn deprecated(reference: &Value) -> Value {
    let entries = json!([{"reference": reference, "message": "m"}]);
    json!({"schema": "olm.deprecations", "package": "p", "entries": entries})
}

fn lines(old: &[Value], new: &[Value]) -> Vec<String> {
    let changes = diff(&testing::documents(old), &testing::documents(new)).unwrap();
    changes.iter().map(ToString::to_string).collect()
}

type Edit = fn(&mut Vec<Value>);

#[test]
fn every_change_has_its_line() {
    let edits: &[(&str, Edit)] = &[
        ("~ package p: default channel stable -> fast", |v| {
            v[0]["defaultChannel"] = json!("fast");
        }),
        ("~ package p: deprecation none -> m", |v| {
            v.push(deprecated(&json!({"schema": "olm.package"})));
        }),
        ("~ package p: other content", |v| {
            v[0]["description"] = json!("d");
        }),
        ("- package p channel fast", |v| drop(v.remove(2))),
        ("~ package p channel stable: other upgrades", |v| {
            v[1]["entries"][1]["skipRange"] = json!("<1.0.0");
        }),
        ("~ package p channel fast: deprecation none -> m", |v| {
            v.push(deprecated(
                &json!({"schema": "olm.channel", "name": "fast"}),
            ));
        }),
        ("~ package p channel fast: other content", |v| {
            v[2]["properties"] = json!([{"type": "x", "value": 1}]);
        }),
        (
            "~ package p bundle v1.0.0: image quay.io/p/bundle:v1.0.0 -> quay.io/p/other:1",
            |v| {
                v[3]["image"] = json!("quay.io/p/other:1");
            },
        ),
        ("~ package p bundle v1.0.0: deprecation none -> m", |v| {
            v.push(deprecated(
                &json!({"schema": "olm.bundle", "name": "v1.0.0"}),
            ));
        }),
        ("~ package p bundle v1.0.0: other content", |v| {
            v[3]["relatedImages"] = json!([{"name": "a", "image": "quay.io/p/a:1"}]);
        }),
        ("~ package p bundle v1.1.0: other content", |v| {
            v[4]["properties"][0]["value"]["version"] = json!("1.1.1");
        }),
        ("~ package p schema mine: other content", |v| {
            v[5]["n"] = json!(2);
        }),
        ("- package p schema mine", |v| drop(v.pop())),
    ];
    for (line, edit) in edits {
        let (old, mut new) = (catalog(), catalog());
        edit(&mut new);
        assert_eq!(lines(&old, &new), [*line]);
        assert_eq!(lines(&new, &new), [""; 0]);
        assert_eq!(lines(&new, &old).len(), 1, "{line}");
    }
}

#[test]
fn a_new_head_comes_with_its_bundle() {
    let mut new = catalog();
    let mut bundle = new[4].clone();
    bundle["name"] = json!("v2.0.0");
    bundle["properties"][0]["value"]["version"] = json!("2.0.0");
    new.push(bundle);
    new[2]["entries"] = json!([{"name": "v2.0.0"}]);
    let changes = [
        "~ package p channel fast: head v1.1.0 -> v2.0.0",
        "+ package p bundle v2.0.0",
    ];
    assert_eq!(lines(&catalog(), &new), changes);
}

#[test]
fn packages_and_custom_documents_are_added_and_removed() {
    let catalog = catalog();
    assert_eq!(lines(&[], &catalog), ["+ package p"]);
    assert_eq!(lines(&catalog, &[]), ["- package p"]);
    let own = [json!({"schema": "mine"})];
    assert_eq!(lines(&[], &own), ["+ schema mine"]);
    assert_eq!(lines(&[], &[]), [""; 0]);
}

#[test]
fn json_output_has_stable_members() {
    let mut new = catalog();
    new[3]["image"] = json!("quay.io/p/other:1");
    let [old, new] = [&catalog(), &new].map(testing::documents);
    let change = &diff(&old, &new).unwrap()[0];
    assert_eq!(
        serde_json::to_value(change).unwrap(),
        json!({"change": "image", "package": "p", "bundle": "v1.0.0",
            "from": "quay.io/p/bundle:v1.0.0", "to": "quay.io/p/other:1"})
    );
}

#[test]
fn invalid_catalogs_are_not_compared() {
    let mut new = catalog();
    new[0]["defaultChannel"] = json!("none");
    let [old, new] = [&catalog(), &new].map(testing::documents);
    assert!(diff(&old, &new).is_err());
}
