//! Schemas of documents and properties, member by member and verbatim; [`crate::content`] validates them.

pub(crate) mod decode;
mod documents;
mod property;

pub(crate) use documents::{
    BundleDocument, ChannelDocument, DeprecationEntry, DeprecationsDocument, PackageDocument,
    Reference,
};
pub use documents::{ChannelEntry, Icon, RelatedImage};
pub(crate) use property::{
    BundleObject, ChannelProperty, PackageProperty, RequiredPackage, kind, text,
};
pub use property::{Gvk, Property};

pub use crate::document::PACKAGE;

/// The schema of channels.
pub const CHANNEL: &str = "olm.channel";
/// The schema of bundles.
pub const BUNDLE: &str = "olm.bundle";
/// The schema of deprecations.
pub const DEPRECATIONS: &str = "olm.deprecations";

/// Whether the schema is one of operator-registry's four; all others are custom.
pub fn is_core(schema: &str) -> bool {
    [PACKAGE, CHANNEL, BUNDLE, DEPRECATIONS].contains(&schema)
}
