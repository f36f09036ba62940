//! Catalog sources and cluster catalogs.

use std::collections::BTreeSet;

use model::Error;
use model::catalog_source::{NAME_LIMIT, label, name, shortened};
use serde_json::{Value, json};

use super::file::ResultFile;
use super::outcome::{MirrorResults, MirroredCatalog};
use super::yaml;
use crate::operators::template::{API_VERSION, KIND, SOURCE_TYPE, checked};

/// A CatalogSource for each catalog.
///
/// Errors: Invalid – a template is no CatalogSource of that kind.
pub(super) fn sources(outcome: &MirrorResults) -> Result<Vec<ResultFile>, Error> {
    let mut taken = BTreeSet::new();
    let file = |catalog: &MirroredCatalog| {
        let path = catalog.repository.as_str();
        let below = path.split_once('/').map_or(path, |(_, below)| below);
        let name = free(&mut taken, &label(&format!("cs-{below}")));
        let source = source(catalog, &name)?;
        let path = format!("catalogSource-{name}.yaml");
        Ok(ResultFile::new(path, yaml::document(&source)?))
    };
    outcome.catalogs.iter().map(file).collect()
}

/// As [`sources`], under names that do not depend on the other catalogs: `cs-<last component>-<tag>`.
///
/// Errors: as there.
pub(super) fn v2_sources(outcome: &MirrorResults) -> Result<Vec<ResultFile>, Error> {
    let mut taken = BTreeSet::new();
    let file = |catalog: &MirroredCatalog| {
        let name = free(&mut taken, &v2_name("cs", catalog));
        let source = source(catalog, &name)?;
        let path = format!("{name}.yaml");
        Ok(ResultFile::new(path, yaml::document(&source)?))
    };
    outcome.catalogs.iter().map(file).collect()
}

/// A ClusterCatalog for each catalog.
pub(super) fn cluster_catalogs(outcome: &MirrorResults) -> Result<Vec<ResultFile>, Error> {
    let mut taken = BTreeSet::new();
    let file = |catalog: &MirroredCatalog| {
        let name = free(&mut taken, &v2_name("cc", catalog));
        let object = json!({
            "apiVersion": "olm.operatorframework.io/v1",
            "kind": "ClusterCatalog",
            "metadata": { "name": name },
            "spec": {
                "priority": 0,
                "source": { "image": { "ref": catalog.destination }, "type": "Image" },
            },
        });
        Ok(ResultFile::new(
            format!("{name}.yaml"),
            yaml::document(&object)?,
        ))
    };
    outcome.catalogs.iter().map(file).collect()
}

/// Name of an object.
fn v2_name(prefix: &str, catalog: &MirroredCatalog) -> String {
    let tag = catalog.destination.target().to_string();
    name(prefix, catalog.repository.as_str(), &tag)
}

fn source(catalog: &MirroredCatalog, name: &str) -> Result<Value, Error> {
    let mut source = match &catalog.template {
        Some(template) => checked(template, &catalog.name)?,
        None => json!({ "apiVersion": API_VERSION, "kind": KIND }),
    };
    source["metadata"]["name"] = json!(name);
    source["metadata"]["namespace"] = json!("openshift-marketplace");
    source["spec"]["sourceType"] = json!(SOURCE_TYPE);
    // By tag, so that clusters follow the catalogs of later runs.
    source["spec"]["image"] = json!(catalog.destination);
    Ok(source)
}

/// The name itself, or the first free one with a number appended.
fn free(taken: &mut BTreeSet<String>, name: &str) -> String {
    let mut free = name.to_owned();
    let mut number = 0;
    while taken.contains(&free) {
        number += 1;
        let end = format!("-{number}");
        free = shortened(name.to_owned(), NAME_LIMIT - end.len());
        free.push_str(&end);
    }
    taken.insert(free.clone());
    free
}
