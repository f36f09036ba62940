//! Properties of bundles and channels.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// Property types that the server interprets.
pub(crate) mod kind {
    pub(crate) const PACKAGE: &str = "olm.package";
    pub(crate) const PACKAGE_REQUIRED: &str = "olm.package.required";
    pub(crate) const GVK: &str = "olm.gvk";
    pub(crate) const GVK_REQUIRED: &str = "olm.gvk.required";
    pub(crate) const BUNDLE_OBJECT: &str = "olm.bundle.object";
    pub(crate) const CSV_METADATA: &str = "olm.csv.metadata";
    pub(crate) const CHANNEL: &str = "olm.channel";
}

/// A typed property.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Property<'a> {
    #[serde(rename = "type", borrow)]
    pub kind: Cow<'a, str>,
    #[serde(
        borrow,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    value: Option<&'a RawValue>,
}

impl<'a> Property<'a> {
    /// The value in the normal form; empty when absent, which validation refuses.
    pub fn value(&self) -> &'a str {
        self.value.map_or("", RawValue::get)
    }

    /// The property with the value `{}`.
    pub(crate) fn emptied(&self) -> Self {
        Self {
            kind: self.kind.clone(),
            value: serde_json::from_str("{}").ok(),
        }
    }
}

/// Decodes a raw value; `null` counts as one.
pub(crate) fn text<'de, D: Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PackageProperty<'a> {
    #[serde(borrow)]
    pub(crate) package_name: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) version: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) release: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct RequiredPackage<'a> {
    #[serde(borrow)]
    pub(crate) package_name: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) version_range: Cow<'a, str>,
}

/// Group, version and kind of an API.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(default)]
pub struct Gvk<'a> {
    #[serde(borrow)]
    pub group: Cow<'a, str>,
    #[serde(borrow)]
    pub version: Cow<'a, str>,
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct BundleObject {
    #[serde(deserialize_with = "super::documents::bytes")]
    pub(crate) data: Vec<u8>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ChannelProperty<'a> {
    #[serde(borrow)]
    channel_name: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    priority: Option<&'a RawValue>,
}

impl ChannelProperty<'_> {
    /// Priority as replacement of a filtered default channel: the highest wins. Some catalogs write it as a string.
    pub(crate) fn priority(&self) -> Option<i64> {
        self.priority?.get().trim_matches('"').parse().ok()
    }
}
