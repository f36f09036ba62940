//! Invariants that hold for every input.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str;

use catalog::content::{PackageMetadata, PackageModel, UnpackedBundle};
use catalog::diff::diff;
use catalog::filter::{PackageSelection, filter};
use catalog::normal::normalised;
use catalog::range::Range;
use catalog::schema::BUNDLE;
use catalog::{CatalogProblems, Document, PACKAGE, graph};

/// UTF-8 byte order mark.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// A file of a catalog.
pub(crate) fn read(data: &[u8]) {
    let (documents, problems) = read_file(data.to_vec());
    // Empty documents of YAML do not count: separators, comments, white space and null.
    let text = data.strip_prefix(MARK).unwrap_or(data);
    let is_empty = documents.is_empty() && problems.0.is_empty();
    let has_object = text
        .split(|byte| *byte == b'\n')
        .any(|it| it.starts_with(b"{"));
    assert!(
        !is_empty || !has_object,
        "something was read and nothing came of it"
    );
    // To YAML a carriage return ends a line, too.
    let lines = data.split(|byte| b"\r\n".contains(byte)).count() as u64;
    let of_problems = problems
        .0
        .iter()
        .map(|it| it.origin.as_ref().expect("in a file").line);
    let of_documents = documents.iter().map(|it| it.origin.line);
    assert!(of_documents.clone().is_sorted());
    assert!(
        of_documents
            .chain(of_problems)
            .all(|line| (1..=lines).contains(&line))
    );
    for document in &documents {
        assert!(!document.schema.is_empty());
        assert_eq!(normalised(&document.json).as_ref(), Ok(&document.json));
    }
    let written: Vec<_> = documents.iter().map(|it| it.json.as_str()).collect();
    let (again, problems) = read_file(written.join("\n").into_bytes());
    assert_eq!(problems, CatalogProblems::default());
    let content = |it: &Document| [&it.schema, &it.package, &it.name, &it.json].map(String::clone);
    let [documents, again] =
        [documents, again].map(|it| it.iter().map(content).collect::<Vec<_>>());
    assert_eq!(documents, again);
}

/// The packages of a catalog: assembled, compared and filtered.
pub(crate) fn package(data: &[u8]) {
    let mut groups: BTreeMap<String, Vec<Document>> = BTreeMap::new();
    for document in read_file(data.to_vec()).0 {
        let group = groups.entry(document.group().to_owned());
        group.or_default().push(document);
    }
    for documents in groups.values() {
        let Ok(package) = PackageModel::assemble(documents) else {
            continue;
        };
        assert_eq!(diff(documents, documents), Ok(Vec::new()));
        let Some(package) = package else {
            continue;
        };
        unpacked(documents);
        for channel in &package.channels {
            assert!(graph::chain(&channel.entries).is_ok());
            graph::mermaid(&package, channel);
        }
        let heads = filter(&package, documents, &PackageSelection::default(), false);
        let heads = heads.expect("every channel has a head").documents;
        assert!(matches!(PackageModel::assemble(&heads), Ok(Some(_))));
    }
}

/// Bundles without their manifests are still valid.
fn unpacked(documents: &[Document]) {
    let package = documents.iter().find(|it| it.schema == PACKAGE);
    let face = package.map(PackageMetadata::new).unwrap_or_default();
    let rest = documents.iter().map(|document| {
        if document.schema != BUNDLE {
            return document.clone();
        }
        let unpacked = UnpackedBundle::new(document, &face);
        unpacked.expect("its package was assembled").rest
    });
    let rest: Vec<_> = rest.collect();
    assert!(matches!(PackageModel::assemble(&rest), Ok(Some(_))));
}

/// A JSON or YAML text.
pub(crate) fn normal(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    if let Ok(normal) = normalised(text) {
        assert_eq!(normalised(&normal).as_ref(), Ok(&normal));
        assert!(!normal.contains('\n'));
    } else {
        assert!(serde_json::from_str::<serde_json::Value>(text).is_err());
    }
    if let Ok(json) = catalog::yaml_to_json(text) {
        assert!(normalised(&json).is_ok());
    }
}

/// A version range.
pub(crate) fn range(data: &[u8]) {
    if let Ok(text) = str::from_utf8(data) {
        let _ = text.parse::<Range>();
    }
}

fn read_file(content: Vec<u8>) -> (Vec<Document>, CatalogProblems) {
    let mut documents = Vec::new();
    let files = [(PathBuf::from("file"), content)].into_iter();
    let Ok(problems) = catalog::read_files(files, NonZeroUsize::MIN, |document| {
        documents.push(document);
        Ok::<_, Infallible>(())
    });
    (documents, problems)
}
