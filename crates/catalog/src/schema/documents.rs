//! Records of the four core schemas.

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::Property;

/// Go's base64: padded; surplus bits of the last letter are ignored.
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

/// Icon of a package.
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

/// Entry of a channel: a bundle and its upgrade edges.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ChannelEntry<'a> {
    /// Name of the bundle.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// The bundle it replaces; empty for none.
    #[serde(borrow)]
    pub replaces: Cow<'a, str>,
    /// Bundles that upgrades to it skip.
    pub skips: Vec<Cow<'a, str>>,
    /// Range of versions that upgrade to it directly; empty for none.
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

/// Related image of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct RelatedImage<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Empty in some published catalogs.
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

/// Reference to the deprecated package, channel or bundle.
#[derive(Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub(crate) struct Reference<'a> {
    #[serde(borrow)]
    pub(crate) schema: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
}

/// Decodes base64 with line breaks anywhere, as Go does.
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
