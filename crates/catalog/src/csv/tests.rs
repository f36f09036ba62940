//! The texts of `fixtures/served_csv` were served by `opm serve` 1.73.0 from the documents beside them.

use serde_json::Value;

use crate::content::Package;
use crate::testing::documents;

const CATALOG: &str = include_str!("../../fixtures/served_csv/catalog.jsonl");
const SERVED: &str = include_str!("../../fixtures/served_csv/served.jsonl");

#[test]
fn built_texts_are_those_of_the_peer_byte_for_byte() {
    let documents = documents(CATALOG.lines());
    let package = Package::assemble(&documents).unwrap().unwrap();
    for served in SERVED.lines() {
        let csv: Value = serde_json::from_str(served).unwrap();
        let name = csv["metadata"]["name"].as_str().unwrap();
        let contents = package.bundle(name).unwrap().contents(&package);
        assert_eq!(contents.csv_json(), served);
        assert_eq!(contents.objects(), [served]);
    }
    assert_eq!(SERVED.lines().count(), package.bundles.len());
}
