//! Catalog sources and cluster catalogs.

use std::collections::BTreeSet;

use model::Error;
use serde_json::{Value, json};

use super::file::ResultFile;
use super::outcome::{MirrorResults, MirroredCatalog};
use super::yaml;
use crate::operators::template::{API_VERSION, KIND, SOURCE_TYPE, checked};

/// Longest name of an object that becomes a host name. Source: RFC 1035, label.
const NAME_LIMIT: usize = 63;
/// Length of a tag in a name. Source: the peer's v2.
const TAG_LIMIT: usize = 12;

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

/// Name of an object. Source: the peer's v2.
fn v2_name(prefix: &str, catalog: &MirroredCatalog) -> String {
    let path = catalog.repository.as_str();
    let last = path.rsplit_once('/').map_or(path, |(_, last)| last);
    let tag = catalog.destination.target().to_string();
    let tag: String = tag.chars().take(TAG_LIMIT).collect();
    label(&format!("{prefix}-{last}-{tag}"))
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

/// A label of host names: other characters become a dash, runs of dashes one, and trailing dashes are dropped.
fn label(text: &str) -> String {
    let mut label = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        let c = if c.is_ascii_lowercase() || c.is_ascii_digit() {
            c
        } else {
            '-'
        };
        if c != '-' || !label.ends_with('-') {
            label.push(c);
        }
    }
    shortened(label, NAME_LIMIT)
}

/// Without a dash at the end.
fn shortened(mut label: String, limit: usize) -> String {
    label.truncate(limit);
    if label.ends_with('-') {
        label.truncate(limit - 2);
        let end = if label.ends_with('-') { "0" } else { "-0" };
        label.push_str(end);
    }
    label
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
