//! Sources of images in a configuration.

use std::fmt;
use std::str::FromStr;

use model::Error;
use oci::{Reference, Transport};
use oci_client::image::Layout;

/// The source of an image: `docker://` and a reference, a reference alone, or `oci://FOLDER[:NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageSource {
    Registry(Reference),
    Layout(Layout),
}

impl ImageSource {
    /// Whether a name is that of an image layout.
    pub(crate) fn is_layout(name: &str) -> bool {
        Transport::split(name).0 == Some(Transport::Oci)
    }
}

impl FromStr for ImageSource {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match Transport::split(text) {
            (Some(Transport::Oci), path) => path.parse().map(Self::Layout),
            (Some(Transport::Docker) | None, reference) => reference.parse().map(Self::Registry),
        }
    }
}

impl fmt::Display for ImageSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry(reference) => reference.fmt(f),
            Self::Layout(layout) => write!(f, "{}//{layout}", Transport::Oci),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_called_oci_is_no_layout() {
        for name in [
            "docker://oci:5000/repo",
            "oci:5000/repo:tag",
            "docker://oci.io/repo",
            "oci.io/repo:tag",
        ] {
            let source: ImageSource = name.parse().unwrap();
            assert!(matches!(source, ImageSource::Registry(_)), "{name}");
        }
        // Without a port or dot, `oci` is a namespace of the default registry, which configurations have to name.
        for name in ["docker://oci/repo", "oci/repo:tag"] {
            assert!(!ImageSource::is_layout(name), "{name}");
            assert!(name.parse::<ImageSource>().is_err(), "{name}");
        }
        for name in ["oci:///srv/a", "oci://a/b:v1"] {
            let source: ImageSource = name.parse().unwrap();
            assert!(matches!(source, ImageSource::Layout(_)), "{name}");
            assert_eq!(source.to_string(), name);
        }
    }
}
