//! Test catalogs.

use serde_json::{Value, json};

use crate::normal::normalised;
use crate::{Document, DocumentOrigin};

/// Documents of one JSON-lines file.
pub(crate) fn documents(jsons: impl IntoIterator<Item = impl ToString>) -> Vec<Document> {
    jsons
        .into_iter()
        .zip(1..)
        .map(|(json, line)| {
            let json = normalised(&json.to_string()).unwrap();
            let members: Value = serde_json::from_str(&json).unwrap();
            let text = |name: &str| members[name].as_str().unwrap_or_default().to_owned();
            Document {
                schema: text("schema"),
                package: text("package"),
                name: text("name"),
                json,
                origin: DocumentOrigin::new("catalog.json", line),
            }
        })
        .collect()
}

/// A package `p` with channels of entries; the first channel is the default. Bundles `v<version>` are named after their
/// entries.
pub(crate) fn package(channels: &[(&str, &[Value])]) -> Vec<Document> {
    let mut jsons =
        vec![json!({"schema": "olm.package", "name": "p", "defaultChannel": channels[0].0})];
    let mut names = Vec::new();
    for (name, entries) in channels {
        jsons.push(
            json!({"schema": "olm.channel", "package": "p", "name": name, "entries": entries}),
        );
        names.extend(entries.iter().map(|entry| entry["name"].as_str().unwrap()));
    }
    names.sort_unstable();
    names.dedup();
    jsons.extend(names.into_iter().map(|name| {
        let value = json!({"packageName": "p", "version": name.trim_start_matches('v')});
        json!({"schema": "olm.bundle", "package": "p", "name": name, "image": format!("quay.io/p/bundle:{name}"),
            "properties": [{"type": "olm.package", "value": value}]})
    }));
    documents(jsons)
}
