//! Properties of a rendered bundle.

use std::collections::{BTreeSet, HashSet};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::csv::{Api, Csv, Definition};
use super::manifests::Manifests;
use super::metadata::{Metadata, RawProperty, properties_of};
use crate::csv::to_json;
use crate::schema::decode::decode;
use crate::schema::{Gvk, kind};

/// Annotation of a CSV with properties.
const ANNOTATION: &str = "olm.properties";

/// Properties by type and value, manifests last.
#[derive(Debug)]
pub(super) struct Properties(BTreeSet<(String, String)>, Vec<(String, String)>);

/// A property of the document.
#[derive(Serialize)]
pub(super) struct PropertyOutput<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'a str,
    pub(super) value: Box<RawValue>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct PackageValue {
    package_name: String,
    version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    release: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RequiredValue<'a> {
    package_name: &'a str,
    version_range: &'a str,
}

/// In the order of Go's struct, which decides about the order of the properties.
#[derive(Serialize)]
struct ApiValue<'a> {
    group: &'a str,
    kind: &'a str,
    version: &'a str,
}

#[derive(Serialize)]
struct ObjectValue {
    data: String,
}

impl Properties {
    /// Source: operator-registry, `ObjectsAndPropertiesFromBundle`.
    ///
    /// Errors: a value of a known type that cannot be read.
    pub(super) fn of(
        manifests: &Manifests,
        csv: &Csv<'_>,
        metadata: &Metadata,
    ) -> Result<Self, String> {
        let (mut all, mut others) = (BTreeSet::new(), Vec::new());
        let mut package = PackageValue {
            package_name: metadata.package.clone(),
            version: csv.spec.version.to_string(),
            release: csv.release()?,
        };
        for (index, property) in stated(csv, metadata).into_iter().enumerate() {
            let RawProperty { kind, value } = &property;
            let wrong = |e: String| format!("parse property[{index}] of type {kind:?}: {e}");
            match kind.as_str() {
                kind::GVK => {
                    let gvk: Gvk<'_> = decode(value).map_err(wrong)?;
                    all.insert((
                        kind::GVK.to_owned(),
                        api(&gvk.group, &gvk.version, &gvk.kind),
                    ));
                }
                // The last one counts.
                kind::PACKAGE => package = decode(value).map_err(wrong)?,
                _ => others.push((property.kind, property.value)),
            }
        }
        for (index, property) in metadata.dependencies.iter().enumerate() {
            let RawProperty { kind, value } = property;
            let wrong = |e: String| format!("parse dependency[{index}] of type {kind:?}: {e}");
            match kind.as_str() {
                kind::GVK => {
                    let gvk: Gvk<'_> = decode(value).map_err(wrong)?;
                    let value = api(&gvk.group, &gvk.version, &gvk.kind);
                    all.insert((kind::GVK_REQUIRED.to_owned(), value));
                }
                kind::PACKAGE => {
                    let required: PackageValue = decode(value).map_err(wrong)?;
                    let value = RequiredValue {
                        package_name: &required.package_name,
                        version_range: &required.version,
                    };
                    others.push((kind::PACKAGE_REQUIRED.to_owned(), to_json(&value)));
                }
                _ => others.push((kind.clone(), value.clone())),
            }
        }
        let owned = csv.spec.services.owned.iter().map(Definition::api);
        for it in owned.chain(manifests.crds.iter().cloned()) {
            all.insert((kind::GVK.to_owned(), api(&it.group, &it.version, &it.kind)));
        }
        for it in required(csv)? {
            let value = api(&it.group, &it.version, &it.kind);
            all.insert((kind::GVK_REQUIRED.to_owned(), value));
        }
        all.insert((kind::PACKAGE.to_owned(), to_json(&package)));
        for object in &manifests.objects {
            let data = BASE64_STANDARD.encode(object);
            let value = to_json(&ObjectValue { data });
            others.push((kind::BUNDLE_OBJECT.to_owned(), value));
        }
        Ok(Self(all, others))
    }

    /// The properties in the order of `opm render`.
    ///
    /// Errors: a value that is no JSON.
    pub(super) fn output(&self) -> Result<Vec<PropertyOutput<'_>>, String> {
        let mut all: Vec<_> = self.0.iter().chain(&self.1).collect();
        let is_last = |kind: &str| [kind::BUNDLE_OBJECT, kind::CSV_METADATA].contains(&kind);
        all.sort_by(|a, b| (is_last(&a.0), a).cmp(&(is_last(&b.0), b)));
        let each = all.into_iter().map(|(kind, value)| {
            let value = if value.is_empty() { "null" } else { value };
            let value = RawValue::from_string(value.to_owned());
            let value = value.map_err(|e| format!("property of type {kind:?}: {e}"))?;
            Ok(PropertyOutput { kind, value })
        });
        each.collect()
    }
}

/// Properties of the metadata and of the CSV's annotation, each once.
fn stated(csv: &Csv<'_>, metadata: &Metadata) -> Vec<RawProperty> {
    let annotated = csv.metadata.annotations.get(ANNOTATION);
    let annotated = annotated.map(|json| properties_of(json).unwrap_or_default());
    let package = PackageValue {
        package_name: metadata.package.clone(),
        version: csv.spec.version.to_string(),
        release: csv.release().unwrap_or_default(),
    };
    // It is derived from the annotations, and so wins over the file with properties.
    let package = (!metadata.package.is_empty()).then(|| RawProperty {
        kind: kind::PACKAGE.to_owned(),
        value: to_json(&package),
    });
    let mut seen = HashSet::new();
    let stated = metadata.properties.iter().cloned().chain(package);
    stated
        .chain(annotated.unwrap_or_default())
        .filter(|it| seen.insert(it.clone()))
        .collect()
}

/// APIs that the CSV requires.
fn required(csv: &Csv<'_>) -> Result<Vec<Api>, String> {
    let crds = csv.spec.crds.required.iter().map(|it| {
        let (plural, group) = it
            .name
            .split_once('.')
            .ok_or_else(|| format!("{:?} is no name of a CRD: expected plural.group", it.name))?;
        Ok(Api {
            group: group.to_owned(),
            version: it.version.to_string(),
            kind: it.kind.to_string(),
            plural: plural.to_owned(),
        })
    });
    let services = csv.spec.services.required.iter().map(|it| Ok(it.api()));
    crds.chain(services).collect()
}

fn api(group: &str, version: &str, kind: &str) -> String {
    to_json(&ApiValue {
        group,
        kind,
        version,
    })
}
