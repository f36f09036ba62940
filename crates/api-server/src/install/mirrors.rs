//! Registry mirrors: the mirrors of each registry location.
//!
//! Source: containers-registries.conf(5), version 2.

use std::io;
use std::path::Path;

use model::Error;
use serde::Deserialize;

/// Path of the mirror configuration.
pub const REGISTRIES_CONF: &str = "/etc/containers/registries.conf";
/// Paths of the mirrors' certificates; the first existing one is used.
pub const CA_BUNDLES: &[&str] = &[
    "/etc/pki/ca-trust/extracted/pem/user-registry-ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
];

/// A parsed mirror configuration, with its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryMirrors {
    /// The TOML text, for discovery images.
    pub registries_conf: String,
    /// Certificates of the mirrors, PEM.
    pub ca_bundle: Option<String>,
    /// Mirrored locations, in the order of the file.
    pub sources: Vec<MirrorSource>,
}

/// One mirrored location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorSource {
    /// Prefix of image references: registry, with or without a path.
    pub location: String,
    /// Mirrors, most preferred first.
    pub mirrors: Vec<String>,
}

#[derive(Deserialize)]
struct RegistriesConf {
    #[serde(default)]
    registry: Vec<RegistryEntry>,
}

#[derive(Deserialize)]
struct RegistryEntry {
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    location: String,
    #[serde(default)]
    mirror: Vec<MirrorEntry>,
}

#[derive(Deserialize)]
struct MirrorEntry {
    location: String,
}

impl RegistryMirrors {
    /// Reads the configuration from its files; none without `registries_conf`, or if it is blank.
    ///
    /// Errors: `Invalid` – the TOML; `Internal` – a file that exists cannot be read.
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
    /// Errors: `Invalid` – not TOML, or an entry without a location.
    pub fn parse(text: &str, ca_bundle: Option<String>) -> Result<Self, Error> {
        let file: RegistriesConf = toml::from_str(text).map_err(|error| {
            Error::invalid(
                "registries.conf",
                error.to_string().trim().replace('\n', " "),
            )
        })?;
        let mut sources = Vec::with_capacity(file.registry.len());
        for (index, registry) in file.registry.into_iter().enumerate() {
            let location = if registry.location.is_empty() {
                registry.prefix
            } else {
                registry.location
            };
            if location.is_empty() {
                return Err(Error::invalid(
                    format!("registries.conf: registry {}", index + 1),
                    "has neither location nor prefix",
                ));
            }
            sources.push(MirrorSource {
                location,
                mirrors: registry
                    .mirror
                    .into_iter()
                    .map(|mirror| mirror.location)
                    .collect(),
            });
        }
        Ok(Self {
            registries_conf: text.to_owned(),
            ca_bundle,
            sources,
        })
    }

    /// References under which `image` (`host/path@digest`) may exist: mirrors first, the image itself last.
    ///
    /// The longest matching location applies, as in container engines.
    pub fn candidates(&self, image: &str) -> Vec<String> {
        let best = self
            .sources
            .iter()
            .filter(|source| covers(&source.location, image))
            .max_by_key(|source| source.location.len());
        let mut candidates: Vec<String> = best
            .into_iter()
            .flat_map(|source| {
                let rest = &image[source.location.len()..];
                source
                    .mirrors
                    .iter()
                    .map(move |mirror| format!("{mirror}{rest}"))
            })
            .collect();
        candidates.push(image.to_owned());
        candidates
    }
}

/// Whether `image` starts with `location` and the next character ends an element of its path.
fn covers(location: &str, image: &str) -> bool {
    image
        .strip_prefix(location)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '@', ':']))
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

    #[test]
    fn longest_location_applies() {
        let mirrors = RegistryMirrors::parse(CONF, None).unwrap();
        assert_eq!(
            mirrors.candidates("quay.io/openshift-release-dev/ocp-release@sha256:0"),
            [
                "mirror.lab:5000/release-images@sha256:0",
                "quay.io/openshift-release-dev/ocp-release@sha256:0"
            ]
        );
        assert_eq!(
            mirrors.candidates("quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:0"),
            [
                "mirror.lab:5000/a/ocp-v4.0-art-dev@sha256:0",
                "mirror.lab:5000/b/ocp-v4.0-art-dev@sha256:0",
                "quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:0"
            ]
        );
    }

    #[test]
    fn locations_match_whole_elements() {
        let mirrors = RegistryMirrors::parse(CONF, None).unwrap();
        let image = "quay.io/openshift-release-development/x@sha256:0";
        assert_eq!(mirrors.candidates(image), [image]);
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
        assert_eq!(mirrors.sources.len(), 2);
    }
}
