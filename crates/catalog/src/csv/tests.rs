//! `fixtures/served_csv` was served by `opm serve` 1.73.0 from the documents beside it.

use serde_json::Value;

use super::PackageMetadata;
use crate::content::{CsvLocation, UnpackedBundle};
use crate::schema::{BUNDLE, PACKAGE};
use crate::testing::documents;

const CATALOG: &str = include_str!("../../fixtures/served_csv/catalog.jsonl");
const SERVED: &str = include_str!("../../fixtures/served_csv/served.jsonl");

#[test]
fn built_csvs_equal_those_of_opm_byte_for_byte() {
    let documents = documents(CATALOG.lines());
    let package = documents.iter().find(|one| one.schema == PACKAGE);
    let metadata = PackageMetadata::new(package.unwrap());
    for served in SERVED.lines() {
        let csv: Value = serde_json::from_str(served).unwrap();
        let name = csv["metadata"]["name"].as_str().unwrap();
        let bundle = documents
            .iter()
            .find(|one| one.schema == BUNDLE && one.name == name);
        let contents = UnpackedBundle::new(bundle.unwrap(), &metadata)
            .unwrap()
            .contents;
        assert_eq!(contents.objects, [served]);
        assert_eq!(contents.csv, CsvLocation::Object(0));
    }
    let bundles = documents.iter().filter(|one| one.schema == BUNDLE);
    assert_eq!(SERVED.lines().count(), bundles.count());
}
