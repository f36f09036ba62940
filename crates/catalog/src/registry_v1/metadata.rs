//! Metadata of a bundle: annotations, dependencies, properties. Each is the first file of its kind, under any name.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::folder::BundleFile;
use super::yaml::first_document;
use crate::schema::decode::decode;

/// The metadata of a bundle.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Metadata {
    pub(super) package: String,
    pub(super) dependencies: Vec<RawProperty>,
    pub(super) properties: Vec<RawProperty>,
}

/// A property with its value as it is in its file; empty when absent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct RawProperty {
    pub(super) kind: String,
    pub(super) value: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AnnotationsFile {
    annotations: Annotations,
}

#[derive(Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "operators.operatorframework.io.bundle.package.v1")]
    package: String,
    #[serde(rename = "operators.operatorframework.io.bundle.channels.v1")]
    channels: String,
    #[serde(rename = "operators.operatorframework.io.bundle.channel.default.v1")]
    default_channel: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DependenciesFile {
    dependencies: Vec<PropertyMember>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PropertiesFile {
    properties: Vec<PropertyMember>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PropertyMember {
    #[serde(rename = "type")]
    kind: String,
    value: Option<Box<RawValue>>,
}

impl Metadata {
    /// Reads the files.
    ///
    /// Errors: no annotations.
    pub(super) fn read(files: &[BundleFile]) -> Result<Self, String> {
        let jsons: Vec<Result<String, String>> =
            files.iter().map(|it| first_document(&it.content)).collect();
        let annotations =
            first::<AnnotationsFile>(&jsons, |it| it.annotations != Annotations::default());
        let annotations = annotations.ok_or_else(|| {
            let unread = files.iter().zip(&jsons).filter_map(|(file, json)| {
                let wrong = json.as_ref().err()?;
                Some(format!("; {}: {wrong}", file.path))
            });
            format!(
                "no annotations found in metadata{}",
                unread.collect::<String>()
            )
        })?;
        let dependencies =
            first::<DependenciesFile>(&jsons, |it| !it.dependencies.is_empty()).unwrap_or_default();
        let properties =
            first::<PropertiesFile>(&jsons, |it| !it.properties.is_empty()).unwrap_or_default();
        Ok(Self {
            package: annotations.annotations.package,
            dependencies: raw(dependencies.dependencies),
            properties: raw(properties.properties),
        })
    }
}

/// Properties of a JSON list.
///
/// Errors: not such a list.
pub(super) fn properties_of(json: &str) -> Result<Vec<RawProperty>, String> {
    decode::<Vec<PropertyMember>>(json).map(raw)
}

fn raw(members: Vec<PropertyMember>) -> Vec<RawProperty> {
    let each = members.into_iter().map(|it| RawProperty {
        kind: it.kind,
        value: it.value.map(|it| it.get().to_owned()).unwrap_or_default(),
    });
    each.collect()
}

fn first<T: DeserializeOwned>(
    jsons: &[Result<String, String>],
    is_filled: impl Fn(&T) -> bool,
) -> Option<T> {
    let mut decoded = jsons.iter().flatten().filter_map(|json| decode(json).ok());
    decoded.find(is_filled)
}
