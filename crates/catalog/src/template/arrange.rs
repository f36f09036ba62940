//! Order of the documents of expanded templates. Source: operator-registry, `alpha/declcfg/write.go`.

use std::collections::BTreeMap;

use crate::{Document, write};

/// Package by package, by name; documents without a package last.
pub(super) fn arranged(documents: Vec<Document>) -> Vec<Document> {
    let mut packages: BTreeMap<String, Vec<Document>> = BTreeMap::new();
    for document in documents {
        let package = document.group().to_owned();
        packages.entry(package).or_default().push(document);
    }
    let without = packages.remove("").unwrap_or_default();
    let mut all = Vec::new();
    for documents in packages.into_values() {
        all.extend(write::in_order(&documents).into_iter().cloned());
    }
    all.extend(without);
    all
}
