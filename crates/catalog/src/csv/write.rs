//! What is written: the members in the order of the peer's records.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;

use super::metadata::{ApiService, Apis, Crd, InstallMode, Link, Maintainer};
use super::{Metadata, to_json};
use crate::normal::html_escaped;
use crate::schema::{Gvk, Icon, RelatedImage};
use crate::version::Version;

/// What the served text takes from elsewhere.
pub(crate) struct Around<'a> {
    pub(crate) bundle: &'a str,
    pub(crate) version: &'a Version,
    pub(crate) related_images: &'a [RelatedImage<'a>],
    /// Of the package.
    pub(crate) description: &'a str,
    /// Of the package.
    pub(crate) icon: Option<&'a Icon<'a>>,
}

/// The text that is served.
pub(crate) fn write(metadata: &Metadata<'_>, around: &Around<'_>) -> String {
    let csv = Csv {
        kind: "ClusterServiceVersion",
        api_version: "operators.coreos.com/v1alpha1",
        metadata: Meta {
            name: around.bundle,
            labels: &metadata.labels,
            annotations: &metadata.annotations,
        },
        spec: Spec::new(metadata, around),
        status: Status {
            cleanup: Nothing {},
        },
    };
    html_escaped(&to_json(&csv)).into_owned()
}

type Texts<'a> = BTreeMap<Cow<'a, str>, Cow<'a, str>>;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Csv<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Meta<'a>,
    spec: Spec<'a>,
    status: Status,
}

#[derive(Serialize)]
struct Meta<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: &'a Texts<'a>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a Texts<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    install: Install,
    version: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    maturity: &'a str,
    customresourcedefinitions: &'a Apis<Crd<'a>>,
    apiservicedefinitions: &'a Apis<ApiService<'a>>,
    #[serde(rename = "nativeAPIs", skip_serializing_if = "<[_]>::is_empty")]
    native_apis: &'a [Gvk<'a>],
    #[serde(skip_serializing_if = "str::is_empty")]
    min_kube_version: &'a str,
    display_name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    keywords: &'a [Cow<'a, str>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    maintainers: &'a [Maintainer<'a>],
    provider: &'a Link<'a>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    links: &'a [Link<'a>],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    icon: Vec<Picture<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    install_modes: &'a [InstallMode<'a>],
    cleanup: Cleanup,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    related_images: &'a [RelatedImage<'a>],
}

/// Clients that show packages fail without a strategy.
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
struct Picture<'a> {
    base64data: String,
    mediatype: &'a str,
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

impl<'a> Spec<'a> {
    fn new(metadata: &'a Metadata<'a>, around: &Around<'a>) -> Self {
        let description = if metadata.description.is_empty() {
            around.description
        } else {
            &metadata.description
        };
        let picture = |icon: &'a Icon<'a>| Picture {
            base64data: BASE64_STANDARD.encode(&icon.data),
            mediatype: &icon.media_type,
        };
        Self {
            install: Install {
                strategy: "deployment",
                spec: Deployments { deployments: () },
            },
            version: around.version.to_string(),
            maturity: &metadata.maturity,
            customresourcedefinitions: &metadata.crd_descriptions,
            apiservicedefinitions: &metadata.api_service_definitions,
            native_apis: &metadata.native_apis,
            min_kube_version: &metadata.min_kube_version,
            display_name: &metadata.display_name,
            description,
            keywords: &metadata.keywords,
            maintainers: &metadata.maintainers,
            provider: &metadata.provider,
            links: &metadata.links,
            icon: around.icon.map(picture).into_iter().collect(),
            install_modes: &metadata.install_modes,
            cleanup: Cleanup { enabled: false },
            related_images: around.related_images,
        }
    }
}
