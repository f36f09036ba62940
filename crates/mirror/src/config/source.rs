//! What the references of a configuration name.

use std::path::PathBuf;
use std::str::FromStr;

use model::Error;
use oci::Reference;
use oci::image::Layout;

/// What an image in a folder begins with.
pub(crate) const LAYOUT_PREFIX: &str = "oci:";

/// Where an image comes from: `docker://` and a reference, a reference alone, or `oci://` and a folder, which a tag may
/// follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Registry(Reference),
    Layout(Layout),
}

impl FromStr for Source {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let Some(path) = text.strip_prefix(LAYOUT_PREFIX) else {
            let reference = text.strip_prefix("docker://").unwrap_or(text);
            return reference.parse().map(Self::Registry);
        };
        let path = path.strip_prefix("//").unwrap_or(path);
        let (folder, tag) = match path.rsplit_once(':') {
            Some((folder, tag)) if !tag.contains('/') => (folder, Some(tag.parse()?)),
            _ => (path, None),
        };
        if folder.is_empty() {
            let reason = format!("{text:?} names no folder: expected oci:// and its path");
            return Err(Error::invalid("image layout", reason));
        }
        let folder = PathBuf::from(folder);
        Ok(Self::Layout(Layout { folder, tag }))
    }
}
