//! The value of `olm.csv.metadata`: display fields of a ClusterServiceVersion, without its install strategy.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Quoted, to_json};
use crate::schema::decode::decode;
use crate::schema::{Gvk, text};

pub(super) type QuotedMap<'a> = BTreeMap<Cow<'a, str>, Quoted<'a>>;

#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct CsvMetadata<'a> {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) annotations: QuotedMap<'a>,
    #[serde(borrow)]
    pub(super) api_service_definitions: Apis<ApiService<'a>>,
    #[serde(borrow)]
    pub(super) crd_descriptions: Apis<Crd<'a>>,
    #[serde(borrow, skip_serializing_if = "Quoted::is_empty")]
    pub(super) description: Quoted<'a>,
    #[serde(borrow, skip_serializing_if = "Quoted::is_empty")]
    pub(super) display_name: Quoted<'a>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    pub(super) install_modes: Vec<InstallMode<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) keywords: Vec<Quoted<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) labels: QuotedMap<'a>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    pub(super) links: Vec<Link<'a>>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    pub(super) maintainers: Vec<Maintainer<'a>>,
    #[serde(borrow, skip_serializing_if = "Quoted::is_empty")]
    pub(super) maturity: Quoted<'a>,
    #[serde(borrow, skip_serializing_if = "Quoted::is_empty")]
    pub(super) min_kube_version: Quoted<'a>,
    #[serde(borrow, rename = "nativeAPIs", skip_serializing_if = "Vec::is_empty")]
    pub(super) native_apis: Vec<Gvk<'a>>,
    #[serde(borrow)]
    pub(super) provider: Link<'a>,
}

/// The value of the property for a CSV.
///
/// Errors: a mismatch, with its path.
/// Source: operator-registry, `alpha/property/property.go`.
pub(crate) fn metadata_of_csv(csv: &str) -> Result<String, String> {
    let CsvManifest { metadata, spec } = decode(csv)?;
    Ok(to_json(&CsvMetadata {
        annotations: metadata.annotations,
        api_service_definitions: spec.api_services,
        crd_descriptions: spec.crds,
        description: spec.description,
        display_name: spec.display_name,
        install_modes: spec.install_modes,
        keywords: spec.keywords,
        labels: metadata.labels,
        links: spec.links,
        maintainers: spec.maintainers,
        maturity: spec.maturity,
        min_kube_version: spec.min_kube_version,
        native_apis: spec.native_apis,
        provider: spec.provider,
    }))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CsvManifest<'a> {
    #[serde(borrow)]
    metadata: CsvManifestMeta<'a>,
    #[serde(borrow)]
    spec: CsvManifestSpec<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CsvManifestMeta<'a> {
    #[serde(borrow)]
    annotations: QuotedMap<'a>,
    #[serde(borrow)]
    labels: QuotedMap<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CsvManifestSpec<'a> {
    #[serde(borrow, rename = "apiservicedefinitions")]
    api_services: Apis<ApiService<'a>>,
    #[serde(borrow, rename = "customresourcedefinitions")]
    crds: Apis<Crd<'a>>,
    #[serde(borrow)]
    description: Quoted<'a>,
    #[serde(borrow)]
    display_name: Quoted<'a>,
    #[serde(borrow)]
    install_modes: Vec<InstallMode<'a>>,
    keywords: Vec<Quoted<'a>>,
    #[serde(borrow)]
    links: Vec<Link<'a>>,
    #[serde(borrow)]
    maintainers: Vec<Maintainer<'a>>,
    #[serde(borrow)]
    maturity: Quoted<'a>,
    #[serde(borrow)]
    min_kube_version: Quoted<'a>,
    #[serde(borrow, rename = "nativeAPIs")]
    native_apis: Vec<Gvk<'a>>,
    #[serde(borrow)]
    provider: Link<'a>,
}

#[derive(Deserialize, Serialize)]
#[serde(default, bound(deserialize = "T: Deserialize<'de>"))]
pub(super) struct Apis<T> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    owned: Vec<T>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    required: Vec<T>,
}

impl<T> Default for Apis<T> {
    fn default() -> Self {
        Self {
            owned: Vec::new(),
            required: Vec::new(),
        }
    }
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Crd<'a> {
    #[serde(borrow)]
    name: Quoted<'a>,
    #[serde(borrow)]
    version: Quoted<'a>,
    #[serde(borrow)]
    kind: Quoted<'a>,
    #[serde(borrow, skip_serializing_if = "Quoted::is_empty")]
    display_name: Quoted<'a>,
    #[serde(borrow, skip_serializing_if = "Quoted::is_empty")]
    description: Quoted<'a>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    resources: Vec<Resource<'a>>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    status_descriptors: Vec<Descriptor<'a>>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    spec_descriptors: Vec<Descriptor<'a>>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    action_descriptors: Vec<Descriptor<'a>>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ApiService<'a> {
    #[serde(borrow)]
    name: Quoted<'a>,
    #[serde(borrow)]
    group: Quoted<'a>,
    #[serde(borrow)]
    version: Quoted<'a>,
    #[serde(borrow)]
    kind: Quoted<'a>,
    #[serde(borrow, skip_serializing_if = "Quoted::is_empty")]
    deployment_name: Quoted<'a>,
    #[serde(skip_serializing_if = "is_zero")]
    container_port: i32,
    #[serde(borrow, skip_serializing_if = "Quoted::is_empty")]
    display_name: Quoted<'a>,
    #[serde(borrow, skip_serializing_if = "Quoted::is_empty")]
    description: Quoted<'a>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    resources: Vec<Resource<'a>>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    status_descriptors: Vec<Descriptor<'a>>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    spec_descriptors: Vec<Descriptor<'a>>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    action_descriptors: Vec<Descriptor<'a>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &i32) -> bool {
    *number == 0
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Resource<'a> {
    #[serde(borrow)]
    name: Quoted<'a>,
    #[serde(borrow)]
    kind: Quoted<'a>,
    #[serde(borrow)]
    version: Quoted<'a>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct Descriptor<'a> {
    #[serde(borrow)]
    path: Quoted<'a>,
    #[serde(borrow, skip_serializing_if = "Quoted::is_empty")]
    display_name: Quoted<'a>,
    #[serde(borrow, skip_serializing_if = "Quoted::is_empty")]
    description: Quoted<'a>,
    #[serde(rename = "x-descriptors", skip_serializing_if = "Vec::is_empty")]
    x_descriptors: Vec<Quoted<'a>>,
    #[serde(
        borrow,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    value: Option<&'a RawValue>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct InstallMode<'a> {
    #[serde(borrow, rename = "type")]
    kind: Quoted<'a>,
    supported: bool,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Maintainer<'a> {
    #[serde(borrow, skip_serializing_if = "Quoted::is_empty")]
    name: Quoted<'a>,
    #[serde(borrow, skip_serializing_if = "Quoted::is_empty")]
    email: Quoted<'a>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Link<'a> {
    #[serde(borrow, skip_serializing_if = "Quoted::is_empty")]
    name: Quoted<'a>,
    #[serde(borrow, skip_serializing_if = "Quoted::is_empty")]
    url: Quoted<'a>,
}
