//! Registry mirrors of the service: their configuration and certificates.

use std::io;
use std::path::Path;

use model::Error;
use oci_client::Mirrors;

/// The machine's certificate authorities, where no file names those of the mirrors.
pub const SYSTEM_CA_BUNDLE: &str = "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem";

/// A mirror configuration, with its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryMirrors {
    /// The TOML text, for discovery images.
    pub registries_conf: String,
    /// Certificates of the mirrors, PEM.
    pub ca_bundle: Option<String>,
    /// The parsed text.
    pub mirrors: Mirrors,
}

impl RegistryMirrors {
    /// Reads the configuration from its files; none without `registries_conf`, or if it is blank.
    ///
    /// Errors: as [`Mirrors::parse`]; Internal – a file that exists cannot be read.
    pub fn load(registries_conf: &Path, ca_bundles: &[&Path]) -> Result<Option<Self>, Error> {
        let Some(text) = read(registries_conf)? else {
            return Ok(None);
        };
        if text.trim().is_empty() {
            return Ok(None);
        }
        let mut ca_bundle = None;
        for path in ca_bundles {
            ca_bundle = read(path)?.filter(|pem| !pem.trim().is_empty());
            if ca_bundle.is_some() {
                break;
            }
        }
        Self::parse(&text, ca_bundle).map(Some)
    }

    /// Parses the TOML text.
    ///
    /// Errors: as [`Mirrors::parse`].
    pub fn parse(text: &str, ca_bundle: Option<String>) -> Result<Self, Error> {
        Ok(Self {
            mirrors: Mirrors::parse(text)?,
            registries_conf: text.to_owned(),
            ca_bundle,
        })
    }
}

fn read(path: &Path) -> Result<Option<String>, Error> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::internal(
            format!("reading {}", path.display()),
            error,
        )),
    }
}

#[cfg(test)]
mod tests {
    use oci::{Digest, Reference};

    use super::*;

    const CONF: &str = r#"
        unqualified-search-registries = ["registry.access.redhat.com"]
        [[registry]]
        prefix = ""
        location = "quay.io/openshift-release-dev"
        mirror-by-digest-only = true
        [[registry.mirror]]
        location = "mirror.lab:5000/a"
        [[registry.mirror]]
        location = "mirror.lab:5000/b"
        [[registry]]
        location = "quay.io/openshift-release-dev/ocp-release"
        [[registry.mirror]]
        location = "mirror.lab:5000/release-images"
    "#;

    /// The candidates of an image that is named by digest, without the digest.
    fn candidates(name: &str) -> Vec<String> {
        let mirrors = RegistryMirrors::parse(CONF, None).unwrap().mirrors;
        let image: Reference = name.parse().unwrap();
        let image = image.with_digest(Digest::sha256(b""));
        let candidates = mirrors.candidates(&image).unwrap().into_iter();
        assert!(candidates.clone().all(|it| it.digest == image.digest));
        candidates
            .map(|it| it.without_version().to_string())
            .collect()
    }

    #[test]
    fn longest_location_applies() {
        assert_eq!(
            candidates("quay.io/openshift-release-dev/ocp-release"),
            [
                "mirror.lab:5000/release-images",
                "quay.io/openshift-release-dev/ocp-release"
            ]
        );
        assert_eq!(
            candidates("quay.io/openshift-release-dev/ocp-v4.0-art-dev"),
            [
                "mirror.lab:5000/a/ocp-v4.0-art-dev",
                "mirror.lab:5000/b/ocp-v4.0-art-dev",
                "quay.io/openshift-release-dev/ocp-v4.0-art-dev"
            ]
        );
    }

    #[test]
    fn locations_match_whole_elements() {
        let image = "quay.io/openshift-release-development/x";
        assert_eq!(candidates(image), [image]);
    }

    #[test]
    fn errors_name_the_entry() {
        let error = RegistryMirrors::parse("[[registry]]\nblocked = true", None).unwrap_err();
        assert!(error.to_string().contains("registry 1"), "{error}");
        assert!(RegistryMirrors::parse("[[registry", None).is_err());
    }

    #[test]
    fn missing_or_blank_files_mean_no_mirror() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registries.conf");
        assert_eq!(RegistryMirrors::load(&path, &[]).unwrap(), None);
        std::fs::write(&path, " \n").unwrap();
        assert_eq!(RegistryMirrors::load(&path, &[]).unwrap(), None);
        let ca = folder.path().join("ca.pem");
        std::fs::write(&path, CONF).unwrap();
        std::fs::write(&ca, "PEM").unwrap();
        let mirrors = RegistryMirrors::load(&path, &[Path::new("/nowhere"), &ca])
            .unwrap()
            .unwrap();
        assert_eq!(mirrors.ca_bundle.as_deref(), Some("PEM"));
        assert_eq!(mirrors.mirrors.sources().count(), 2);
    }
}
