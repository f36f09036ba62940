use serde_json::{Value, json};

use super::*;
use crate::{Document, Problems, Rule};

/// Documents of one file, one a line.
fn documents(values: &[Value]) -> Vec<Document> {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    values
        .iter()
        .zip(1..)
        .map(|(value, line)| Document {
            schema: text(value, "schema"),
            package: text(value, "package"),
            name: text(value, "name"),
            json: value.to_string(),
            origin: Origin::new("catalog.json", line),
        })
        .collect()
}

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

fn problems(values: &[Value]) -> Problems {
    Package::assemble(&documents(values)).unwrap_err()
}

#[test]
fn a_package_is_assembled() {
    let documents = documents(&good());
    let package = Package::assemble(&documents).unwrap().unwrap();
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
fn documents_of_an_authors_own_need_no_package() {
    let documents = documents(&[json!({"schema": "a", "package": "none"})]);
    assert!(Package::assemble(&documents).unwrap().is_none());
    assert!(Package::assemble(&[]).unwrap().is_none());
}

#[test]
fn one_report_has_all_problems() {
    let mut values = good();
    values[0]["defaultChannel"] = json!("");
    values[3]["image"] = json!("A b");
    values[4]["properties"] = json!([]);
    let Problems(problems) = problems(&values);
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
