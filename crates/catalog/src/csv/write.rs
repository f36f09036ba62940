//! Serialises the CSV: members in the order of operator-framework/api's structs.

use std::collections::BTreeMap;

use serde::Serialize;

use super::json::to_html_safe_json;
use super::metadata::{ApiService, Apis, Crd, InstallMode, Link, Maintainer, QuotedMap};
use super::package_metadata::Picture;
use super::{CsvMetadata, PackageMetadata, Quoted};
use crate::content::bundle::Bundle;
use crate::schema::{Gvk, RelatedImage};

/// The CSV of a bundle of `package`.
pub(crate) fn write(
    metadata: &CsvMetadata<'_>,
    bundle: &Bundle<'_>,
    package: &PackageMetadata,
) -> String {
    let csv = ServedCsv {
        kind: "ClusterServiceVersion",
        api_version: "operators.coreos.com/v1alpha1",
        metadata: Meta {
            name: bundle.name,
            labels: &metadata.labels,
            annotations: &metadata.annotations,
        },
        spec: ServedSpec::new(metadata, bundle, package),
        status: Status {
            cleanup: Nothing {},
        },
    };
    to_html_safe_json(&csv)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServedCsv<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Meta<'a>,
    spec: ServedSpec<'a>,
    status: Status,
}

#[derive(Serialize)]
struct Meta<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: &'a QuotedMap<'a>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a QuotedMap<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServedSpec<'a> {
    install: Install,
    version: String,
    #[serde(skip_serializing_if = "Quoted::is_empty")]
    maturity: Quoted<'a>,
    customresourcedefinitions: &'a Apis<Crd<'a>>,
    apiservicedefinitions: &'a Apis<ApiService<'a>>,
    #[serde(rename = "nativeAPIs", skip_serializing_if = "<[_]>::is_empty")]
    native_apis: &'a [Gvk<'a>],
    #[serde(skip_serializing_if = "Quoted::is_empty")]
    min_kube_version: Quoted<'a>,
    display_name: Quoted<'a>,
    #[serde(skip_serializing_if = "Quoted::is_empty")]
    description: Quoted<'a>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    keywords: &'a [Quoted<'a>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    maintainers: &'a [Maintainer<'a>],
    provider: &'a Link<'a>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    links: &'a [Link<'a>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    icon: &'a [Picture],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    install_modes: &'a [InstallMode<'a>],
    cleanup: Cleanup,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    related_images: &'a [RelatedImage<'a>],
}

/// packageserver drops channels whose CSV has no install strategy.
#[derive(Serialize)]
struct Install {
    strategy: &'static str,
    spec: Deployments,
}

#[derive(Serialize)]
struct Deployments {
    deployments: (),
}

#[derive(Serialize)]
struct Cleanup {
    enabled: bool,
}

#[derive(Serialize)]
struct Status {
    cleanup: Nothing,
}

#[derive(Serialize)]
struct Nothing {}

impl<'a> ServedSpec<'a> {
    fn new(
        metadata: &'a CsvMetadata<'a>,
        bundle: &'a Bundle<'a>,
        package: &'a PackageMetadata,
    ) -> Self {
        Self {
            install: Install {
                strategy: "deployment",
                spec: Deployments { deployments: () },
            },
            version: bundle.version.to_string(),
            maturity: metadata.maturity,
            customresourcedefinitions: &metadata.crd_descriptions,
            apiservicedefinitions: &metadata.api_service_definitions,
            native_apis: &metadata.native_apis,
            min_kube_version: metadata.min_kube_version,
            display_name: metadata.display_name,
            description: metadata.description.or(package.description()),
            keywords: &metadata.keywords,
            maintainers: &metadata.maintainers,
            provider: &metadata.provider,
            links: &metadata.links,
            icon: &package.icon,
            install_modes: &metadata.install_modes,
            cleanup: Cleanup { enabled: false },
            related_images: &bundle.related_images,
        }
    }
}
