//! What documents and properties say, member by member, as it stands there; whether it makes sense is for
//! [`crate::content`] to find.

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

/// Whether documents of this schema have a meaning here; all others are their author's own.
pub fn is_core(schema: &str) -> bool {
    [PACKAGE, CHANNEL, BUNDLE, DEPRECATIONS].contains(&schema)
}
