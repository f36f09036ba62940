//! The four kinds of documents.

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::Property;

/// As the clients' decoder takes it: padded, what the last letter has too many is ignored.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical)
        .with_decode_allow_trailing_bits(true),
);

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PackageDocument<'a> {
    #[serde(borrow)]
    pub(crate) default_channel: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) icon: Option<Icon<'a>>,
    #[serde(borrow)]
    pub(crate) description: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) properties: Vec<Property<'a>>,
}

/// A picture of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Icon<'a> {
    #[serde(rename = "base64data", deserialize_with = "bytes")]
    pub data: Vec<u8>,
    #[serde(rename = "mediatype", borrow)]
    pub media_type: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ChannelDocument<'a> {
    #[serde(borrow)]
    pub(crate) entries: Vec<ChannelEntry<'a>>,
    #[serde(borrow)]
    pub(crate) properties: Vec<Property<'a>>,
}

/// A bundle's place in a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ChannelEntry<'a> {
    /// Of the bundle.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// The bundle that it follows; empty where there is none.
    #[serde(borrow)]
    pub replaces: Cow<'a, str>,
    /// Bundles that are left out on the way to it.
    pub skips: Vec<Cow<'a, str>>,
    /// Versions that are left out on the way to it; empty where there are none.
    #[serde(borrow)]
    pub skip_range: Cow<'a, str>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct BundleDocument<'a> {
    #[serde(borrow)]
    pub(crate) image: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) properties: Vec<Property<'a>>,
    #[serde(borrow)]
    pub(crate) related_images: Vec<RelatedImage<'a>>,
}

/// An image that a bundle needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct RelatedImage<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Empty in some catalogs that are in use.
    #[serde(borrow)]
    pub image: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct DeprecationsDocument<'a> {
    #[serde(borrow)]
    pub(crate) entries: Vec<DeprecationEntry<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct DeprecationEntry<'a> {
    #[serde(borrow)]
    pub(crate) reference: Reference<'a>,
    #[serde(borrow)]
    pub(crate) message: Cow<'a, str>,
}

/// What is deprecated.
#[derive(Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub(crate) struct Reference<'a> {
    #[serde(borrow)]
    pub(crate) schema: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
}

/// Bytes written in base64, with line breaks wherever somebody likes them.
pub(super) fn bytes<'de, D: Deserializer<'de>>(value: D) -> Result<Vec<u8>, D::Error> {
    value.deserialize_str(Base64)
}

struct Base64;

impl Visitor<'_> for Base64 {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<u8>, E> {
        let text = if memchr::memchr2(b'\r', b'\n', text.as_bytes()).is_some() {
            Cow::Owned(text.replace(['\r', '\n'], ""))
        } else {
            Cow::Borrowed(text)
        };
        BASE64
            .decode(text.as_bytes())
            .map_err(|e| E::custom(format_args!("illegal base64 data: {e}")))
    }
}
