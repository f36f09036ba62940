//! Imports one package of a database. Source: operator-registry v1.73.0, `pkg/sqlite`, `pkg/api/api_to_model.go`.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rusqlite::{Connection, Params};
use serde_json::{Value, json};

use super::error::ImportError;
use super::schema_version::SchemaVersion;
use super::values::{CsvFields, SqlText, gvk, pair};

use crate::normal::normalised;
use crate::schema::{BUNDLE, CHANNEL, PACKAGE, kind};
use crate::{Document, DocumentOrigin};

/// Property of deprecated bundles.
const DEPRECATED: &str = "olm.deprecated";

/// Reader of one package.
pub(super) struct PackageReader<'a> {
    pub(super) connection: &'a Connection,
    pub(super) layout: SchemaVersion,
    pub(super) package: &'a str,
}

#[derive(Default)]
pub(super) struct ImportedPackage {
    pub(super) documents: Vec<Document>,
    pub(super) left_out: Vec<String>,
}

/// A bundle's row with its parsed manifests.
struct BundleRow {
    name: String,
    image: String,
    version: String,
    skip_range: String,
    /// JSON objects in insertion order.
    objects: Vec<String>,
    csv: Option<CsvFields>,
    properties: Vec<(String, String)>,
}

impl PackageReader<'_> {
    /// The documents: package, channels, bundles.
    pub(super) fn read<E>(
        &self,
        origin: &DocumentOrigin,
    ) -> Result<ImportedPackage, ImportError<E>> {
        let mut bundles = BTreeMap::new();
        let mut read = ImportedPackage::default();
        for name in self.bundle_names()? {
            let Some(bundle) = self.bundle(&name)? else {
                continue;
            };
            if bundle.properties.iter().any(|(kind, _)| kind == DEPRECATED) {
                read.left_out.push(name);
            } else {
                bundles.insert(name, bundle);
            }
        }
        let mut jsons = vec![self.package(&bundles)?];
        jsons.extend(self.channels(&bundles)?);
        for bundle in bundles.values() {
            jsons.push(self.bundle_document(bundle)?);
        }
        read.documents = jsons
            .iter()
            .map(|json| document(json, origin))
            .collect::<Result<_, _>>()?;
        Ok(read)
    }

    fn rows<T>(
        &self,
        sql: &str,
        params: impl Params,
        row: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.connection
            .prepare_cached(sql)?
            .query_map(params, row)?
            .collect()
    }

    fn bundle_names(&self) -> rusqlite::Result<Vec<String>> {
        self.rows(
            "select distinct operatorbundle_name
             from channel_entry
             where package_name = ?1
               and operatorbundle_name is not null
             order by operatorbundle_name",
            [self.package],
            |row| row.get(0),
        )
    }

    /// `None` for a bundle that is only referenced by others.
    fn bundle<E>(&self, name: &str) -> Result<Option<BundleRow>, ImportError<E>> {
        let rows = self.rows(
            "select bundle, csv, bundlepath, version, skiprange
             from operatorbundle
             where name = ?1",
            [name],
            |row| {
                let text = |index| row.get(index).map(|SqlText(text)| text);
                Ok([text(0)?, text(1)?, text(2)?, text(3)?, text(4)?])
            },
        )?;
        let Some([objects, csv, image, version, skip_range]) = rows.into_iter().next() else {
            return Ok(None);
        };
        if objects.is_empty() && csv.is_empty() && image.is_empty() {
            return Ok(None);
        }
        let wrong = |e: serde_json::Error| ImportError::Bundle {
            name: name.to_owned(),
            reason: format!("its objects are not JSON: {e}"),
        };
        let objects = serde_json::Deserializer::from_str(&objects)
            .into_iter::<&serde_json::value::RawValue>()
            .map(|object| object.map(|object| object.get().to_owned()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(wrong)?;
        let csvs = objects.iter().chain([&csv]);
        let csv = csvs
            .filter_map(|object| serde_json::from_str::<CsvFields>(object).ok())
            .find(|csv| csv.kind == "ClusterServiceVersion");
        let of_csv = || csv.as_ref()?.spec.version.clone();
        Ok(Some(BundleRow {
            name: name.to_owned(),
            image,
            version: Some(version)
                .filter(|version| !version.is_empty())
                .or_else(of_csv)
                .unwrap_or_default(),
            skip_range,
            objects,
            csv,
            properties: self.properties(name)?,
        }))
    }

    fn properties(&self, bundle: &str) -> rusqlite::Result<Vec<(String, String)>> {
        if !self.layout.has_properties() {
            return Ok(Vec::new());
        }
        self.rows(
            "select distinct type, value
             from properties
             where operatorbundle_name = ?1
             order by type, value",
            [bundle],
            pair,
        )
    }

    fn dependencies(&self, bundle: &str) -> rusqlite::Result<Vec<(String, String)>> {
        if !self.layout.has_dependencies() {
            return Ok(Vec::new());
        }
        self.rows(
            "select distinct type, value
             from dependencies
             where operatorbundle_name = ?1
             order by type, value",
            [bundle],
            pair,
        )
    }

    fn provided(&self, bundle: &str) -> rusqlite::Result<Vec<Value>> {
        let sql = if self.layout.has_apis_of_bundles() {
            "select distinct group_name, version, kind
             from api_provider
             where operatorbundle_name = ?1"
        } else {
            "select distinct api_provider.group_name, api_provider.version, api_provider.kind
             from api_provider
             join channel_entry on channel_entry.entry_id = api_provider.channel_entry_id
             where channel_entry.operatorbundle_name = ?1"
        };
        self.rows(sql, [bundle], gvk)
    }

    fn required(&self, bundle: &str) -> rusqlite::Result<Vec<Value>> {
        let sql = if self.layout.has_apis_of_bundles() {
            "select distinct group_name, version, kind
             from api_requirer
             where operatorbundle_name = ?1"
        } else {
            "select distinct api_requirer.group_name, api_requirer.version, api_requirer.kind
             from api_requirer
             join channel_entry on channel_entry.entry_id = api_requirer.channel_entry_id
             where channel_entry.operatorbundle_name = ?1"
        };
        self.rows(sql, [bundle], gvk)
    }

    /// The icon is that of the default channel's head.
    fn package(&self, bundles: &BTreeMap<String, BundleRow>) -> rusqlite::Result<Value> {
        let (SqlText(default), SqlText(head)) = self.connection.query_row(
            "select package.default_channel, channel.head_operatorbundle_name
             from package
             left join channel
               on channel.package_name = package.name
               and channel.name = package.default_channel
             where package.name = ?1",
            [self.package],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let csv = bundles.get(&head).and_then(|bundle| bundle.csv.as_ref());
        let icon = csv.and_then(|csv| csv.spec.icon.first()).and_then(|icon| {
            // Some published icons contain blanks.
            let data = icon.base64data.replace(char::is_whitespace, "");
            let is_fine = !data.is_empty() && BASE64_STANDARD.decode(&data).is_ok();
            is_fine.then(|| json!({"base64data": data, "mediatype": icon.mediatype}))
        });
        let mut package =
            json!({"schema": PACKAGE, "name": self.package, "defaultChannel": default});
        if let Some(icon) = icon {
            package["icon"] = icon;
        }
        Ok(package)
    }

    fn channels(&self, bundles: &BTreeMap<String, BundleRow>) -> rusqlite::Result<Vec<Value>> {
        let names: Vec<String> = self.rows(
            "select name from channel where package_name = ?1 order by name",
            [self.package],
            |row| row.get(0),
        )?;
        let mut channels = Vec::new();
        for name in names {
            let entries: Vec<Value> = self
                .edges(&name)?
                .into_iter()
                .filter_map(|(entry, targets)| Some(entry_of(bundles.get(&entry)?, &targets)))
                .collect();
            channels.push(
                json!({"schema": CHANNEL, "package": self.package, "name": name, "entries": entries}),
            );
        }
        Ok(channels)
    }

    /// Targets of each entry, nearest to the head first: the first is replaced, the others are skipped.
    fn edges(&self, channel: &str) -> rusqlite::Result<BTreeMap<String, Vec<String>>> {
        let rows = self.rows(
            "select entry.operatorbundle_name, target.operatorbundle_name
             from channel_entry as entry
             left join channel_entry as target on target.entry_id = entry.replaces
             where entry.package_name = ?1
               and entry.channel_name = ?2
             order by entry.depth, entry.entry_id",
            [self.package, channel],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let mut edges: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (SqlText(entry), SqlText(target)) in rows {
            let targets = edges.entry(entry).or_default();
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        Ok(edges)
    }

    fn bundle_document<E>(&self, bundle: &BundleRow) -> Result<Value, ImportError<E>> {
        let wrong = |reason| ImportError::Bundle {
            name: bundle.name.clone(),
            reason,
        };
        let mut properties = BTreeSet::new();
        let mut add = |kind: &str, value: &Value| {
            properties.insert((kind.to_owned(), value.to_string()));
        };
        for (kind, value) in &bundle.properties {
            let value = parsed(kind, value).map_err(wrong)?;
            let is_gvk = kind == kind::GVK;
            add(
                kind,
                &if is_gvk {
                    without_plural(&value)
                } else {
                    value
                },
            );
        }
        if !bundle
            .properties
            .iter()
            .any(|(kind, _)| kind == kind::PACKAGE)
        {
            let value = json!({"packageName": self.package, "version": bundle.version});
            add(kind::PACKAGE, &value);
        }
        for (kind, value) in self.dependencies(&bundle.name)? {
            let value = parsed(&kind, &value).map_err(wrong)?;
            if kind == kind::GVK {
                add(kind::GVK_REQUIRED, &without_plural(&value));
            } else if kind == kind::PACKAGE {
                let (name, range) = (&value["packageName"], &value["version"]);
                let value = json!({"packageName": name, "versionRange": range});
                add(kind::PACKAGE_REQUIRED, &value);
            }
        }
        for value in self.provided(&bundle.name)? {
            add(kind::GVK, &value);
        }
        for value in self.required(&bundle.name)? {
            add(kind::GVK_REQUIRED, &value);
        }
        let mut objects: Vec<String> = bundle
            .objects
            .iter()
            .map(|object| BASE64_STANDARD.encode(object))
            .collect();
        objects.sort_unstable();
        let objects = objects
            .iter()
            .map(|data| json!({"type": kind::BUNDLE_OBJECT, "value": {"data": data}}));
        let properties: Vec<Value> = properties
            .iter()
            .map(|(kind, value)| json!({"type": kind, "value": parsed(kind, value).unwrap_or_default()}))
            .chain(objects)
            .collect();
        Ok(json!({
            "schema": BUNDLE, "package": self.package, "name": bundle.name, "image": bundle.image,
            "properties": properties, "relatedImages": self.related_images(bundle)?,
        }))
    }

    /// Related images of the CSV, then further ones of the database.
    fn related_images(&self, bundle: &BundleRow) -> rusqlite::Result<Vec<Value>> {
        let rows = self.rows(
            "select distinct image
             from related_image
             where operatorbundle_name = ?1
               and image is not null
             order by image",
            [&bundle.name],
            |row| row.get(0),
        )?;
        let named = bundle.csv.iter().flat_map(|csv| &csv.spec.related_images);
        let mut images: Vec<(&str, &str)> = named.map(|it| (&*it.name, &*it.image)).collect();
        for SqlText(image) in &rows {
            if !images.iter().any(|(_, known)| known == image) {
                images.push(("", image));
            }
        }
        images.sort_by_key(|(_, image)| *image);
        let images = images.iter();
        Ok(images
            .map(|(name, image)| json!({"name": name, "image": image}))
            .collect())
    }
}

fn entry_of(bundle: &BundleRow, targets: &[String]) -> Value {
    let mut entry = json!({"name": bundle.name});
    let replaces = targets.first().filter(|target| !target.is_empty());
    if let Some(replaces) = replaces {
        entry["replaces"] = json!(replaces);
    }
    let mut skips = targets
        .iter()
        .skip(1)
        .filter(|target| !target.is_empty())
        .peekable();
    if skips.peek().is_some() {
        entry["skips"] = skips.map(String::as_str).collect();
    }
    if !bundle.skip_range.is_empty() {
        entry["skipRange"] = json!(bundle.skip_range);
    }
    entry
}

fn parsed(kind: &str, value: &str) -> Result<Value, String> {
    serde_json::from_str(value).map_err(|e| format!("its property {kind:?} is not JSON: {e}"))
}

fn without_plural(value: &Value) -> Value {
    json!({"group": value["group"], "kind": value["kind"], "version": value["version"]})
}

fn document<E>(json: &Value, origin: &DocumentOrigin) -> Result<Document, ImportError<E>> {
    let text = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
    let normal = normalised(&json.to_string()).map_err(|e| ImportError::Bundle {
        name: text("name"),
        reason: e.to_string(),
    })?;
    Ok(Document {
        schema: text("schema"),
        package: text("package"),
        name: text("name"),
        json: normal,
        origin: origin.clone(),
    })
}
