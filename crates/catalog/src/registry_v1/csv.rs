//! The members of a ClusterServiceVersion that a bundle's document has. Source: operator-registry,
//! `pkg/registry/csv.go`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::schema::decode::decode;
use crate::schema::{Icon, RelatedImage, text};

/// The only install strategy.
const DEPLOYMENT: &str = "deployment";

/// A ClusterServiceVersion.
#[derive(Debug, Default)]
pub(super) struct Csv<'a> {
    pub(super) metadata: CsvObjectMeta<'a>,
    pub(super) spec: CsvSpec<'a>,
}

/// Icon of a CSV.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvIcon {
    pub data: Vec<u8>,
    pub media_type: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CsvObject<'a> {
    #[serde(borrow)]
    metadata: CsvObjectMeta<'a>,
    #[serde(borrow, deserialize_with = "text")]
    spec: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CsvObjectMeta<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    pub(super) annotations: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CsvSpec<'a> {
    #[serde(borrow)]
    pub(super) version: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    release: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "text")]
    description: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "text")]
    icon: Option<&'a RawValue>,
    #[serde(borrow)]
    related_images: Vec<RelatedImage<'a>>,
    #[serde(borrow, rename = "customresourcedefinitions")]
    pub(super) crds: Definitions<'a>,
    #[serde(borrow, rename = "apiservicedefinitions")]
    pub(super) services: Definitions<'a>,
    #[serde(borrow)]
    install: Install<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Definitions<'a> {
    #[serde(borrow)]
    pub(super) owned: Vec<Definition<'a>>,
    #[serde(borrow)]
    pub(super) required: Vec<Definition<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Definition<'a> {
    #[serde(borrow)]
    pub(super) group: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) version: Cow<'a, str>,
}

/// An API with its plural name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Api {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) plural: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Install<'a> {
    #[serde(borrow)]
    strategy: Cow<'a, str>,
    #[serde(borrow)]
    spec: InstallSpec<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InstallSpec<'a> {
    #[serde(borrow)]
    deployments: Vec<Deployment<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Deployment<'a> {
    #[serde(borrow)]
    spec: DeploymentSpec<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DeploymentSpec<'a> {
    #[serde(borrow)]
    template: PodTemplate<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PodTemplate<'a> {
    #[serde(borrow)]
    spec: PodSpec<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec<'a> {
    #[serde(borrow)]
    containers: Vec<CsvContainer<'a>>,
    #[serde(borrow)]
    init_containers: Vec<CsvContainer<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CsvContainer<'a> {
    #[serde(borrow)]
    image: Cow<'a, str>,
}

impl<'a> Csv<'a> {
    /// Decodes a CSV.
    ///
    /// Errors: a mismatch, with its path.
    pub(super) fn read(json: &'a str) -> Result<Self, String> {
        let CsvObject { metadata, spec } = decode(json)?;
        let spec = spec.ok_or("the CSV has no spec")?;
        let spec = decode(spec.get()).map_err(|e| format!("spec: {e}"))?;
        Ok(Self { metadata, spec })
    }

    /// Release of the version: a text or a number; empty for none.
    ///
    /// Errors: another type.
    pub(super) fn release(&self) -> Result<String, String> {
        let Some(release) = self.spec.release else {
            return Ok(String::new());
        };
        let text: Option<String> = serde_json::from_str(release.get()).ok().flatten();
        let number = || serde_json::from_str::<f64>(release.get()).is_ok();
        match text {
            Some(text) => Ok(text),
            None if release.get() == "null" => Ok(String::new()),
            None if number() => Ok(release.get().to_owned()),
            None => Err("spec.release must be a string or number".to_owned()),
        }
    }

    /// The description; empty when absent.
    pub(super) fn description(&self) -> String {
        let text = self.spec.description.map(RawValue::get).unwrap_or_default();
        serde_json::from_str(text).unwrap_or_default()
    }

    /// The first icon, where all are valid.
    pub(super) fn icon(&self) -> Option<CsvIcon> {
        let icons: Vec<Icon<'_>> = decode(self.spec.icon?.get()).ok()?;
        let first = icons.into_iter().next()?;
        Some(CsvIcon {
            data: first.data,
            media_type: first.media_type.into_owned(),
        })
    }

    /// Images of the CSV and the bundle `image` by their references.
    pub(super) fn related_images<'b>(&'b self, image: &'b str) -> Vec<RelatedImage<'b>> {
        let mut all = self.spec.related_images.clone();
        let named: BTreeSet<_> = all.iter().map(|it| it.image.clone()).collect();
        let mut others: BTreeSet<&str> = self.operator_images();
        if !image.is_empty() {
            others.insert(image);
        }
        all.extend(
            others
                .into_iter()
                .filter(|it| !named.contains(*it))
                .map(|it| RelatedImage {
                    name: Cow::Borrowed(""),
                    image: Cow::Borrowed(it),
                }),
        );
        all.sort_by(|a, b| a.image.cmp(&b.image));
        all
    }

    fn operator_images(&self) -> BTreeSet<&str> {
        let Install { strategy, spec } = &self.spec.install;
        if strategy != DEPLOYMENT {
            return BTreeSet::new();
        }
        let pods = spec.deployments.iter().map(|it| &it.spec.template.spec);
        let containers = pods.flat_map(|it| it.containers.iter().chain(&it.init_containers));
        containers.map(|it| &*it.image).collect()
    }
}

impl Definition<'_> {
    /// The API of an aggregated service.
    pub(super) fn api(&self) -> Api {
        Api {
            group: self.group.to_string(),
            version: self.version.to_string(),
            kind: self.kind.to_string(),
            plural: self.name.to_string(),
        }
    }
}
