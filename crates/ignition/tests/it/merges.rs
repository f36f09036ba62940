//! Merging gives the results of Ignition: see fixtures/merges/README.md.

use std::fs;
use std::path::Path;

use ignition::{ConfigDocument, SpecVersion};
use serde_json::Value;

fn document(json: &Value) -> ConfigDocument {
    let (document, problems) = ConfigDocument::read(json.to_string().as_bytes());
    assert!(!problems.is_refused(), "{problems:?}");
    document.unwrap()
}

#[test]
fn merged_configurations_are_those_of_ignition() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/merges/merges.json");
    let cases: Vec<Value> = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert!(cases.len() > 15);
    for case in cases {
        let merged = document(&case["parent"]).merge(&document(&case["child"]));
        // Ignition reads everything as its newest version.
        let merged = merged.convert(SpecVersion::V3_6).unwrap();
        assert_eq!(merged.to_json(), case["merged"], "{}", case["rule"]);
    }
}
