//! The value of `olm.csv.metadata`: display fields of a ClusterServiceVersion, without its install strategy.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Quoted;
use crate::schema::{Gvk, text};

pub(super) type QuotedMap<'a> = BTreeMap<Cow<'a, str>, Quoted<'a>>;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct CsvMetadata<'a> {
    pub(super) annotations: QuotedMap<'a>,
    #[serde(borrow)]
    pub(super) api_service_definitions: Apis<ApiService<'a>>,
    #[serde(borrow)]
    pub(super) crd_descriptions: Apis<Crd<'a>>,
    #[serde(borrow)]
    pub(super) description: Quoted<'a>,
    #[serde(borrow)]
    pub(super) display_name: Quoted<'a>,
    #[serde(borrow)]
    pub(super) install_modes: Vec<InstallMode<'a>>,
    pub(super) keywords: Vec<Quoted<'a>>,
    pub(super) labels: QuotedMap<'a>,
    #[serde(borrow)]
    pub(super) links: Vec<Link<'a>>,
    #[serde(borrow)]
    pub(super) maintainers: Vec<Maintainer<'a>>,
    #[serde(borrow)]
    pub(super) maturity: Quoted<'a>,
    #[serde(borrow)]
    pub(super) min_kube_version: Quoted<'a>,
    #[serde(borrow, rename = "nativeAPIs")]
    pub(super) native_apis: Vec<Gvk<'a>>,
    #[serde(borrow)]
    pub(super) provider: Link<'a>,
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
