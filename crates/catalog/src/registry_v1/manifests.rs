//! Manifests of a bundle: its CSV, the CRDs that it defines, and others.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::csv::{Api, Csv, Definition};
use super::folder::BundleFile;
use super::yaml::{as_go_prints, first_document};
use crate::schema::decode::decode;

pub(super) const CSV: &str = "ClusterServiceVersion";
const CRD: &str = "CustomResourceDefinition";
/// Versions of CRDs that are read. Source: operator-registry, `pkg/registry/bundle.go`.
const CRD_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The manifests of a bundle.
#[derive(Debug)]
pub(super) struct Manifests {
    /// JSON of all objects, in the order of their files.
    pub(super) objects: Vec<String>,
    csv: usize,
    /// Path of the CSV's file.
    csv_path: String,
    pub(super) crds: BTreeSet<Api>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ObjectHead {
    api_version: Option<String>,
    kind: Option<String>,
}

/// A manifest.
struct ManifestObject {
    /// Without its group.
    version: String,
    kind: String,
    json: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Crd {
    spec: CrdSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CrdSpec {
    group: String,
    names: CrdNames,
    version: String,
    versions: Vec<CrdVersion>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CrdNames {
    kind: String,
    plural: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CrdVersion {
    name: String,
}

impl Manifests {
    /// Reads the first document of each file. Files without an object are left out with a note, as is each CSV but the
    /// first.
    ///
    /// Errors: no CSV; a CRD that cannot be read.
    pub(super) fn read(files: &[BundleFile], notes: &mut Vec<String>) -> Result<Self, String> {
        let (mut objects, mut crds, mut csv) = (Vec::new(), BTreeSet::new(), None);
        for BundleFile { path, content } in files {
            let ManifestObject {
                version,
                kind,
                json,
            } = match object(content) {
                Ok(object) => object,
                Err(why) => {
                    notes.push(format!("{path} is left out: {why}"));
                    continue;
                }
            };
            if kind == CSV {
                if csv.is_some() {
                    notes.push(format!(
                        "{path} is left out: it is the bundle's second {CSV}"
                    ));
                    continue;
                }
                csv = Some((objects.len(), path.clone()));
            }
            if kind == CRD && CRD_VERSIONS.contains(&version.as_str()) {
                let crd: Crd = decode(&json).map_err(|e| format!("{path}: {e}"))?;
                crds.extend(crd.apis());
            }
            objects.push(json);
        }
        if objects.is_empty() {
            return Err(with_notes("no bundle objects found in manifests", notes));
        }
        let (csv, csv_path) =
            csv.ok_or_else(|| with_notes(&format!("no {CSV} in manifests"), notes))?;
        Ok(Self {
            objects,
            csv,
            csv_path,
            crds,
        })
    }

    /// The CSV, whose own CRDs are all defined.
    ///
    /// Errors: a CSV that cannot be read, or that owns a CRD which is not there.
    pub(super) fn csv(&self) -> Result<Csv<'_>, String> {
        let wrong = |why: String| format!("{}: {why}", self.csv_path);
        let csv = Csv::read(&self.objects[self.csv]).map_err(wrong)?;
        for Definition {
            name,
            version,
            kind,
            ..
        } in &csv.spec.crds.owned
        {
            let (plural, group) = name.split_once('.').ok_or_else(|| {
                wrong(format!(
                    "{name:?} is no name of a CRD: expected plural.group"
                ))
            })?;
            let api = Api {
                group: group.to_owned(),
                version: version.to_string(),
                kind: kind.to_string(),
                plural: plural.to_owned(),
            };
            if !self.provides(&api, &csv) {
                let text = format!(
                    "the CSV owns {kind} {version} ({name}), and no CRD of the bundle defines it"
                );
                return Err(wrong(text));
            }
        }
        Ok(csv)
    }

    fn provides(&self, api: &Api, csv: &Csv<'_>) -> bool {
        self.crds.contains(api) || csv.spec.services.owned.iter().any(|it| it.api() == *api)
    }
}

impl Crd {
    fn apis(self) -> impl Iterator<Item = Api> {
        let CrdSpec {
            group,
            names,
            version,
            versions,
        } = self.spec;
        let versions = versions.into_iter().map(|it| it.name);
        let version = Some(version).filter(|it| !it.is_empty());
        versions.chain(version).map(move |version| Api {
            group: group.clone(),
            version,
            kind: names.kind.clone(),
            plural: names.plural.clone(),
        })
    }
}

/// An error with the files that are left out: one of them may be the cause.
fn with_notes(error: &str, notes: &[String]) -> String {
    let all = std::iter::once(error).chain(notes.iter().map(String::as_str));
    all.collect::<Vec<_>>().join("; ")
}

/// The object of a file.
fn object(content: &[u8]) -> Result<ManifestObject, String> {
    let json = as_go_prints(&first_document(content)?)?;
    if !json.starts_with('{') {
        return Err("its first document is no object".to_owned());
    }
    let ObjectHead { api_version, kind } =
        serde_json::from_str(&json).map_err(|e| e.to_string())?;
    let api_version = api_version.unwrap_or_default();
    Ok(ManifestObject {
        version: api_version
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned(),
        kind: kind
            .filter(|kind| !kind.is_empty())
            .ok_or("its first document has no kind")?,
        json,
    })
}
