use std::collections::BTreeMap;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{Document, read, read_files, testing};

const ONE: NonZeroUsize = NonZeroUsize::new(1).unwrap();

fn written(json: &str, format: CatalogFormat) -> String {
    let mut out = Vec::new();
    document(json, format, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The documents of a text.
fn read_back(text: String) -> Vec<String> {
    let mut found = Vec::new();
    let files = [("f".into(), text.into_bytes())].into_iter();
    let Ok(problems) = read_files(files, ONE, |document| {
        found.push(document.json);
        Ok::<_, Infallible>(())
    });
    assert!(problems.0.is_empty(), "{problems}");
    found
}

#[test]
fn json_has_one_member_per_line() {
    let json = r#"{"a":[],"b":{"c":[1,"x:{\",\"}"]},"d":{}}"#;
    let lines = r#"{
    "a": [],
    "b": {
        "c": [
            1,
            "x:{\",\"}"
        ]
    },
    "d": {}
}
"#;
    assert_eq!(written(json, CatalogFormat::Json), lines);
}

#[test]
fn yaml_is_in_block_style() {
    let json = json!({
        "schema": "olm.bundle", "name": "etcd.v1.0.0", "version": "1.0.0", "yes": "no", "empty": ["", [], {}],
        "text": "# One\n\nTwo: two", "ended": "a\n", "nested": [{"a": [1.5, null], "b": "x # y"}, [true]],
        "odd": "a\u{85}\u{7}\"", "image": "quay.io/a/b@sha256:00", "n": "2024-01-01"
    });
    let lines = r#"---
empty:
- ""
- []
- {}
ended: |
  a
image: quay.io/a/b@sha256:00
"n": "2024-01-01"
name: etcd.v1.0.0
nested:
- a:
  - 1.5
  - null
  b: "x # y"
- - true
odd: "a\u0085\u0007\""
schema: olm.bundle
text: |-
  # One

  Two: two
version: "1.0.0"
"yes": "no"
"#;
    assert_eq!(written(&json.to_string(), CatalogFormat::Yaml), lines);
}

/// Strings that need different styles, or resolve to other types when unquoted.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-c:# \n\t'\"|>&*!%@`,\\[\\]{}?~.-]{0,12}",
        prop::sample::select(vec![
            "",
            "yes",
            "No",
            "~",
            "null",
            "1",
            "-0",
            "1e3",
            "0x1f",
            ".inf",
            "<<",
            "=",
            "---",
            "a: b",
            "1:20",
            "2024-01-01",
            " a",
            "a ",
            "\n",
            "a\n\n",
            "a\n \nb",
            "a\n\tb",
            "\u{feff}a",
            "a\r\nb",
            "a\u{85}b\n",
            "é\u{2028}\n",
            "--- a\n--- b",
        ])
        .prop_map(str::to_owned),
        "[a-z]{490,520}",
    ]
}

fn values() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(json!(-0.0)),
        Just(json!(1e21)),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number,
        texts().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |value| {
        prop_oneof![
            prop::collection::vec(value.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(texts(), value, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn written_documents_round_trip(values in prop::collection::vec(values(), 1..4)) {
        let jsons = values.into_iter().map(|value| json!({"schema": "mine", "value": value}));
        let documents = testing::documents(jsons);
        for format in [CatalogFormat::Json, CatalogFormat::Yaml] {
            let text: String = documents.iter().map(|it| written(&it.json, format)).collect();
            let jsons: Vec<&str> = documents.iter().map(|it| it.json.as_str()).collect();
            prop_assert_eq!(read_back(text.clone()), jsons, "{}", text);
        }
    }
}

#[test]
fn deep_values_are_written() {
    let deep = format!(
        r#"{{"a":{}1{},"schema":"x"}}"#,
        "[".repeat(5000),
        "]".repeat(5000)
    );
    for format in [CatalogFormat::Json, CatalogFormat::Yaml] {
        assert_eq!(read_back(written(&deep, format)), [deep.as_str()]);
    }
}

/// The files below a folder.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            let below = files(&path).into_iter();
            found.extend(below.map(|(below, text)| (format!("{name}/{below}"), text)));
        } else {
            found.insert(name, std::fs::read_to_string(path).unwrap());
        }
    }
    found
}

#[test]
fn a_catalog_is_a_folder_of_packages() {
    let temp = tempfile::tempdir().unwrap();
    let package = testing::package(&[("stable", &[json!({"name": "v1.0.0"})])]);
    let others = testing::documents([json!({"schema": "mine"})]);
    let mut reversed = package.clone();
    reversed.reverse();
    for format in [CatalogFormat::Json, CatalogFormat::Yaml] {
        let extension = format.extension();
        let write = |name: &str, package: &[Document]| {
            let folder = temp.path().join(extension).join(name);
            let mut writer = CatalogWriter::create(&folder, format).unwrap();
            writer.package("p", package).unwrap();
            writer.package("", &others).unwrap();
            writer.finish().unwrap();
            folder
        };
        let folder = write("a", &package);
        assert_eq!(files(&folder), files(&write("b", &reversed)));
        let names: Vec<_> = files(&folder).into_keys().collect();
        assert_eq!(
            names,
            [
                format!("catalog.{extension}"),
                format!("p/catalog.{extension}")
            ]
        );
        let mut jsons = Vec::new();
        let problems = read(&folder, ONE, |document| {
            jsons.push(document.json);
            Ok::<_, Infallible>(())
        });
        assert!(problems.unwrap().0.is_empty());
        let all = others.iter().chain(&package).map(|it| it.json.clone());
        assert_eq!(jsons, all.collect::<Vec<_>>());
    }
}

#[test]
fn a_catalog_is_invisible_before_it_is_finished() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("catalog");
    let mut writer = CatalogWriter::create(&folder, CatalogFormat::Json).unwrap();
    writer.package("p", &[]).unwrap();
    assert!(!folder.exists());
    drop(writer);
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
}

#[test]
fn leftovers_of_killed_processes_are_skipped() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("catalog");
    let killed = CatalogWriter::create(&folder, CatalogFormat::Json).unwrap();
    std::mem::forget(killed);
    let mut writer = CatalogWriter::create(&folder, CatalogFormat::Json).unwrap();
    writer.package("p", &[]).unwrap();
    writer.finish().unwrap();
    assert_eq!(
        files(&folder).into_keys().collect::<Vec<_>>(),
        ["p/catalog.json"]
    );
}

#[test]
fn existing_content_and_foreign_paths_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    std::fs::write(temp.path().join("x"), "").unwrap();
    let wrong = CatalogWriter::create(temp.path(), CatalogFormat::Json).unwrap_err();
    assert!(wrong.to_string().contains("is not empty"));
    let mut writer = CatalogWriter::create(&temp.path().join("new"), CatalogFormat::Json).unwrap();
    for name in ["..", ".", "a/b", "/a", "a/"] {
        assert!(writer.package(name, &[]).is_err(), "{name}");
    }
}
