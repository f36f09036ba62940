//! The served catalog, and names in it to request.

use std::collections::HashSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Deserializer, Value, json};

/// As many as the largest public catalogs have.
const PACKAGES: usize = 333;
const BUNDLES: usize = 24;
const APIS: usize = 5;
/// Units: bytes. Of the descriptions in each bundle.
const DESCRIPTION: usize = 12_000;

/// Names to request.
#[derive(Debug, Default)]
pub(super) struct CatalogSample {
    pub(super) package: String,
    /// The default channel.
    pub(super) channel: String,
    /// Its head.
    pub(super) bundle: String,
    api: [String; 3],
}

impl CatalogSample {
    /// Samples the file in the middle of `folder`, or the next one that has an API.
    pub(super) fn find(folder: &Path) -> Result<Self> {
        let mut files = Vec::new();
        collect(folder, &mut files)?;
        files.sort_unstable();
        let middle = files.len() / 2;
        files.rotate_left(middle);
        let mut found = files.iter().filter_map(|path| Self::of_file(path));
        found
            .next()
            .context("no file of the catalog is JSON and has a package with an API")
    }

    /// Group, version and kind.
    pub(super) fn api(&self) -> Vec<&str> {
        self.api.iter().map(String::as_str).collect()
    }

    fn of_file(path: &Path) -> Option<Self> {
        let file = BufReader::new(File::open(path).ok()?);
        let documents: Vec<Value> = Deserializer::from_reader(file)
            .into_iter()
            .collect::<Result<_, _>>()
            .ok()?;
        let find = |schema: &str, name: &str| {
            let mut found = documents.iter().filter(|one| one["schema"] == schema);
            found.find(|one| name.is_empty() || one["name"] == name)
        };
        let package = find("olm.package", "")?;
        let channel = find("olm.channel", package["defaultChannel"].as_str()?)?;
        let bundle = head(channel["entries"].as_array()?)?;
        let properties = find("olm.bundle", bundle)?["properties"].as_array()?;
        let api = properties.iter().find(|one| one["type"] == "olm.gvk")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Some(Self {
            package: text(&package["name"]),
            channel: text(&channel["name"]),
            bundle: bundle.to_owned(),
            api: ["group", "version", "kind"].map(|name| text(&api["value"][name])),
        })
    }
}

impl fmt::Display for CatalogSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let api = self.api.join(" ");
        write!(
            f,
            "{} {} {}, {api}",
            self.package, self.channel, self.bundle
        )
    }
}

/// The entry that no other one replaces or skips.
fn head(entries: &[Value]) -> Option<&str> {
    let skips = entries
        .iter()
        .filter_map(|one| one["skips"].as_array())
        .flatten();
    let gone: HashSet<&str> = entries
        .iter()
        .map(|one| &one["replaces"])
        .chain(skips)
        .filter_map(Value::as_str)
        .collect();
    let mut names = entries.iter().filter_map(|one| one["name"].as_str());
    names.rfind(|name| !gone.contains(name))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Writes a catalog into a new folder; returns the folder.
pub(super) fn write(folder: &Path) -> Result<PathBuf> {
    for number in 0..PACKAGES {
        let name = format!("package-{number}");
        let own = folder.join(&name);
        fs::create_dir_all(&own)?;
        let mut file = BufWriter::new(File::create(own.join("catalog.json"))?);
        for document in documents(&name) {
            serde_json::to_writer_pretty(&mut file, &document)?;
        }
        file.flush()?;
    }
    Ok(folder.to_owned())
}

/// A package with two channels; the shorter one has the last bundles.
fn documents(package: &str) -> Vec<Value> {
    let name = |number: usize| format!("{package}.v{number}.0.0");
    let channel = |channel: &str, first: usize| {
        let entries = (first..BUNDLES).map(|number| {
            if number == first {
                json!({ "name": name(number) })
            } else {
                json!({ "name": name(number), "replaces": name(number - 1), "skipRange": format!("<{number}.0.0") })
            }
        });
        let entries: Vec<_> = entries.collect();
        json!({ "schema": "olm.channel", "package": package, "name": channel, "entries": entries })
    };
    let mut documents = vec![
        json!({ "schema": "olm.package", "name": package, "defaultChannel": "stable", "description": package }),
        channel("stable", 0),
        channel("fast", BUNDLES / 2),
    ];
    documents.extend((0..BUNDLES).map(|number| bundle(package, &name(number), number)));
    documents
}

fn bundle(package: &str, name: &str, number: usize) -> Value {
    let group = format!("{package}.example.org");
    let apis = (0..APIS)
        .map(|api| json!({ "group": group, "version": "v1", "kind": format!("Kind{api}") }));
    let apis: Vec<_> = apis.collect();
    let owned = apis.iter().map(|api| {
        let plural = format!(
            "{}s.{group}",
            api["kind"].as_str().unwrap_or_default().to_lowercase()
        );
        json!({ "name": plural, "version": "v1", "kind": api["kind"] })
    });
    let metadata = json!({
        "displayName": package,
        "description": format!("What {name} does. ").repeat(DESCRIPTION / name.len()),
        "annotations": { "capabilities": "Basic Install", "categories": "Database" },
        "crdDescriptions": { "owned": owned.collect::<Vec<_>>() },
        "installModes": [{ "type": "AllNamespaces", "supported": true }],
        "provider": { "name": "Example" },
    });
    let properties = apis
        .iter()
        .map(|api| json!({ "type": "olm.gvk", "value": api }));
    let own = json!({ "packageName": package, "version": format!("{number}.0.0") });
    let properties = properties.chain([
        json!({ "type": "olm.package", "value": own }),
        json!({ "type": "olm.csv.metadata", "value": metadata }),
    ]);
    let image = format!("registry.example.org/{package}:v{number}");
    json!({
        "schema": "olm.bundle", "package": package, "name": name, "image": image,
        "properties": properties.collect::<Vec<_>>(),
        "relatedImages": [{ "name": "", "image": image }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_a_written_catalog_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("a");
        fs::create_dir(&own).unwrap();
        let text: String = documents("a").iter().map(Value::to_string).collect();
        fs::write(own.join("catalog.json"), text).unwrap();
        fs::write(folder.path().join("README"), "no JSON").unwrap();
        let sample = CatalogSample::find(folder.path()).unwrap();
        assert_eq!(
            sample.to_string(),
            "a stable a.v23.0.0, a.example.org v1 Kind0"
        );
    }
}
