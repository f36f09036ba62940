//! Validation of manifests beyond the protocol.

use model::Error;
use oci::{Digest, Kind, Manifest, Platform};
use serde::Deserialize;

use crate::settings::Settings;
use crate::settings::{Patterns, PlatformChecks};

/// The rules of one registry.
#[derive(Debug)]
pub(crate) struct Validation {
    is_disabled: bool,
    allowed: Patterns,
    denied: Patterns,
    checks: PlatformChecks,
    platforms: Vec<Platform>,
}

/// Content that has to exist before a manifest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Needed {
    /// All it names.
    Everything,
    Nothing,
    /// These manifests.
    Manifests(Vec<Digest>),
    /// One of these manifests.
    OneOf(Vec<Digest>),
}

#[derive(Deserialize)]
struct Layers {
    #[serde(default)]
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
struct Layer {
    #[serde(default)]
    urls: Vec<String>,
}

impl Validation {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            is_disabled: settings.registry_validation_disabled,
            allowed: settings.registry_validation_manifests_urls_allow.clone(),
            denied: settings.registry_validation_manifests_urls_deny.clone(),
            checks: settings.registry_validation_manifests_indexes_platforms,
            platforms: settings
                .registry_validation_manifests_indexes_platformlist
                .0
                .clone(),
        }
    }

    /// Errors: Invalid – a layer has a URL that may not stand there.
    pub(crate) fn check_urls(&self, manifest: &Manifest) -> Result<(), Error> {
        let is_free = self.allowed.is_empty() && self.denied.is_empty();
        if self.is_disabled || is_free {
            return Ok(());
        }
        let Layers { layers } = serde_json::from_slice(&manifest.bytes)
            .map_err(|error| Error::invalid("layers", error.to_string()))?;
        let urls = layers.iter().flat_map(|layer| &layer.urls);
        match urls.into_iter().find(|url| !self.may_stand(url)) {
            None => Ok(()),
            Some(url) => Err(Error::invalid(
                "urls",
                format!("{url:?} is not allowed: REGISTRY_VALIDATION_MANIFESTS_URLS_ALLOW, _DENY"),
            )),
        }
    }

    fn may_stand(&self, url: &str) -> bool {
        let is_web = url.starts_with("http://") || url.starts_with("https://");
        let is_allowed = self.allowed.is_empty() || self.allowed.is_match(url);
        is_web && is_allowed && !self.denied.is_match(url)
    }

    /// Content that has to exist before `manifest`.
    pub(crate) fn needed(&self, manifest: &Manifest) -> Needed {
        match (&manifest.kind, self.checks) {
            _ if self.is_disabled => Needed::Nothing,
            (Kind::Image { .. } | Kind::Schema1 { .. }, _) | (_, PlatformChecks::All) => {
                Needed::Everything
            }
            (Kind::Index { .. }, PlatformChecks::None) => Needed::Nothing,
            (Kind::Index { manifests }, PlatformChecks::Any) => {
                Needed::OneOf(manifests.iter().map(|it| it.digest.clone()).collect())
            }
            (Kind::Index { manifests }, PlatformChecks::List) => {
                // Entries without a platform are needed on all.
                let is_wanted = |platform: &Option<Platform>| {
                    platform
                        .as_ref()
                        .is_none_or(|platform| self.platforms.contains(platform))
                };
                let wanted = manifests.iter().filter(|entry| is_wanted(&entry.platform));
                Needed::Manifests(wanted.map(|entry| entry.digest.clone()).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use service::settings::Setting as _;

    use super::*;

    fn validation(change: impl FnOnce(&mut Settings)) -> Validation {
        let mut settings = Settings::default();
        change(&mut settings);
        Validation::new(&settings)
    }

    fn manifest(body: &Value) -> Manifest {
        Manifest::parse(body.to_string().into(), None).unwrap()
    }

    fn with_urls(urls: &[&str]) -> Manifest {
        let digest = Digest::sha256(b"");
        let blob = json!({"mediaType": "application/vnd.oci.image.layer.nondistributable.v1.tar", "digest": digest, "size": 0, "urls": urls});
        manifest(
            &json!({"schemaVersion": 2, "mediaType": oci::media_type::OCI_MANIFEST, "config": blob, "layers": [blob]}),
        )
    }

    #[test]
    fn urls_have_to_be_allowed_and_not_denied() {
        let free = validation(|_| {});
        assert!(free.check_urls(&with_urls(&["anything"])).is_ok());
        let strict = validation(|settings| {
            let patterns = |text| Patterns::parse(text).unwrap();
            settings.registry_validation_manifests_urls_allow = patterns("^https?://good/");
            settings.registry_validation_manifests_urls_deny = patterns("secret");
        });
        for (url, is_allowed) in [
            ("https://good/a", true),
            ("https://good/secret", false),
            ("https://bad/a", false),
            ("ftp://good/a", false),
        ] {
            let checked = strict.check_urls(&with_urls(&["https://good/x", url]));
            assert_eq!(checked.is_ok(), is_allowed, "{url}");
        }
        assert!(strict.check_urls(&with_urls(&[])).is_ok());
    }

    #[test]
    fn an_index_needs_the_platforms_that_are_asked_for() {
        let entry = |n: u8, architecture: Option<&str>| {
            let platform = architecture.map(|name| json!({"os": "linux", "architecture": name}));
            json!({"mediaType": oci::media_type::OCI_MANIFEST, "digest": Digest::sha256(&[n]), "size": 1, "platform": platform})
        };
        let entries = [
            entry(0, Some("amd64")),
            entry(1, Some("arm64")),
            entry(2, None),
        ];
        let index = manifest(
            &json!({"schemaVersion": 2, "mediaType": oci::media_type::OCI_INDEX, "manifests": entries}),
        );
        let needed = |checks| {
            let validation = validation(|settings| {
                settings.registry_validation_manifests_indexes_platforms = checks;
                let list = &mut settings.registry_validation_manifests_indexes_platformlist;
                list.0 = vec![Platform::linux("arm64")];
            });
            validation.needed(&index)
        };
        assert_eq!(needed(PlatformChecks::All), Needed::Everything);
        assert_eq!(needed(PlatformChecks::None), Needed::Nothing);
        let all = [0, 1, 2].map(|n| Digest::sha256(&[n]));
        assert_eq!(needed(PlatformChecks::Any), Needed::OneOf(all.into()));
        let listed = [Digest::sha256(&[1]), Digest::sha256(&[2])];
        assert_eq!(
            needed(PlatformChecks::List),
            Needed::Manifests(listed.into())
        );
        let image = with_urls(&[]);
        let none = validation(|settings| {
            settings.registry_validation_manifests_indexes_platforms = PlatformChecks::None;
        });
        assert_eq!(none.needed(&image), Needed::Everything);
        let off = validation(|settings| settings.registry_validation_disabled = true);
        assert_eq!(off.needed(&image), Needed::Nothing);
    }
}
