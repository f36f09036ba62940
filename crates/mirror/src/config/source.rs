//! What the references of a configuration name.

use std::str::FromStr;

use model::Error;
use oci::Reference;
use oci_client::image::Layout;

/// What an image in a folder begins with.
pub(crate) const LAYOUT_PREFIX: &str = "oci:";

/// Where an image comes from: `docker://` and a reference, a reference alone, or `oci://` and a folder, which the
/// name of an image there may follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Registry(Reference),
    Layout(Layout),
}

impl FromStr for Source {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some(path) = text.strip_prefix(LAYOUT_PREFIX) {
            let path = path.strip_prefix("//").unwrap_or(path);
            return path.parse().map(Self::Layout);
        }
        let reference = text.strip_prefix("docker://").unwrap_or(text);
        reference.parse().map(Self::Registry)
    }
}
