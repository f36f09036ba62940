//! Registry mirrors of the service: their configuration and certificates.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

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

/// The mirrors of a site: those of its configuration, and those that its registry was found to be. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct SiteMirrors(Arc<SharedMirrors>);

#[derive(Debug, Default)]
struct SharedMirrors {
    /// Blank for none.
    registries_conf: String,
    ca_bundle: Option<String>,
    current: RwLock<Option<Arc<RegistryMirrors>>>,
}

impl SiteMirrors {
    /// Reads the configuration from its files; it has no mirrors without `registries_conf`, or if that is blank. The
    /// certificates are those of the first file of `ca_bundles` that has any.
    ///
    /// Errors: as [`Mirrors::parse`]; Internal – a file that exists cannot be read.
    pub fn load(registries_conf: &Path, ca_bundles: &[&Path]) -> Result<Self, Error> {
        let text = read(registries_conf)?.unwrap_or_default();
        let mut ca_bundle = None;
        for path in ca_bundles {
            ca_bundle = read(path)?.filter(|pem| !pem.trim().is_empty());
            if ca_bundle.is_some() {
                break;
            }
        }
        Self::parse(&text, ca_bundle)
    }

    /// Parses the configuration.
    ///
    /// Errors: as [`Mirrors::parse`].
    pub fn parse(registries_conf: &str, ca_bundle: Option<String>) -> Result<Self, Error> {
        let text = registries_conf;
        let own =
            (!text.trim().is_empty()).then(|| RegistryMirrors::parse(text, ca_bundle.clone()));
        let own = own.transpose()?;
        Ok(Self(Arc::new(SharedMirrors {
            registries_conf: text.to_owned(),
            ca_bundle,
            current: RwLock::new(own.map(Arc::new)),
        })))
    }

    /// The mirrors now; none if there are none.
    pub fn get(&self) -> Option<Arc<RegistryMirrors>> {
        let current = self.0.current.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has these mirrors of repositories beside those of the configuration, whose entries win, in place of those that were
    /// found before.
    ///
    /// Errors: Invalid – the configuration is written so that entries cannot be added; its own mirrors stay.
    pub fn set_found(&self, found: &BTreeMap<String, BTreeSet<String>>) -> Result<(), Error> {
        let own = &self.0.registries_conf;
        let configured = Mirrors::parse(own)?;
        let mut text = own.clone();
        for (source, mirrors) in found {
            if configured.has_entry(&source.parse()?) {
                continue;
            }
            // Names of repositories have no characters that TOML takes for something else. Writing to a text does not fail.
            let _ = writeln!(text, "\n[[registry]]\nlocation = \"{source}\"");
            let _ = writeln!(text, "mirror-by-digest-only = true");
            for mirror in mirrors {
                let _ = writeln!(text, "\n[[registry.mirror]]\nlocation = \"{mirror}\"");
            }
        }
        let combined = Self::parse(&text, self.0.ca_bundle.clone())?;
        let mut current = self
            .0
            .current
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *current = combined.get();
        Ok(())
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
        assert_eq!(SiteMirrors::load(&path, &[]).unwrap().get(), None);
        std::fs::write(&path, " \n").unwrap();
        assert_eq!(SiteMirrors::load(&path, &[]).unwrap().get(), None);
        let ca = folder.path().join("ca.pem");
        std::fs::write(&path, CONF).unwrap();
        std::fs::write(&ca, "PEM").unwrap();
        let mirrors = SiteMirrors::load(&path, &[Path::new("/nowhere"), &ca]).unwrap();
        let mirrors = mirrors.get().unwrap();
        assert_eq!(mirrors.ca_bundle.as_deref(), Some("PEM"));
        assert_eq!(mirrors.mirrors.sources().count(), 2);
    }

    #[test]
    fn found_mirrors_are_beside_those_of_the_configuration() {
        let mirrors = SiteMirrors::parse(CONF, None).unwrap();
        let shared = mirrors.clone();
        let release = "mirror.lab:5000/openshift/release".to_owned();
        let found = |source: &str| {
            let mirrors = BTreeSet::from([release.clone()]);
            BTreeMap::from([(source.to_owned(), mirrors)])
        };
        // Its entry wins.
        let own = shared.get();
        let source = "quay.io/openshift-release-dev/ocp-v4.0-art-dev";
        mirrors.set_found(&found(source)).unwrap();
        assert_eq!(shared.get(), own);
        mirrors.set_found(&found("quay.io/okd/content")).unwrap();
        let current = shared.get().unwrap();
        assert!(current.registries_conf.starts_with(CONF));
        let source = current.mirrors.sources().last().unwrap();
        assert_eq!(source.location, "quay.io/okd/content");
        assert_eq!(source.mirrors, [release.as_str()]);
        // Replaced, also without a configuration.
        mirrors.set_found(&BTreeMap::new()).unwrap();
        assert_eq!(shared.get(), own);
        let none = SiteMirrors::default();
        none.set_found(&found("quay.io/okd/content")).unwrap();
        assert_eq!(none.get().unwrap().mirrors.sources().count(), 1);
        none.set_found(&BTreeMap::new()).unwrap();
        assert_eq!(none.get(), None);

        let inline = SiteMirrors::parse("registry = []", None).unwrap();
        assert!(inline.set_found(&found("quay.io/okd/content")).is_err());
    }
}
