//! Mirrors and other locations of images, by `registries.conf`.
//!
//! Source: containers-registries.conf(5), version 2. Short names and settings of logins are ignored.

use std::collections::BTreeMap;

use model::Error;
use serde::Deserialize;

use oci::{Reference, Tag, Target};

/// The parsed file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mirrors(Vec<RegistryEntry>);

/// A mirrored location, as cluster resources name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorSource<'a> {
    /// Registry, with or without a path; the prefix of an entry without a location.
    pub location: &'a str,
    /// Mirrors for pulls by digest, most preferred first.
    pub mirrors: Vec<&'a str>,
}

/// Kind of a request, by which mirrors are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// The manifest of a reference, by digest or tag.
    Named,
    /// Content of an image that was found in any location: its blobs, and lists.
    Rest,
}

impl RequestKind {
    /// Whether a reference is an attached artifact: a signature, or the tag of a referrers list.
    pub(crate) fn is_extra(reference: &Reference) -> bool {
        matches!(reference.target(), Target::Tag(tag) if is_of_digest(&tag))
    }
}

#[derive(Deserialize)]
struct RegistriesConf {
    #[serde(default)]
    registry: Vec<RegistryEntry>,
}

/// An entry for all names with a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RegistryEntry {
    /// The prefix, if it differs from the location.
    #[serde(default)]
    prefix: String,
    /// Replacement of the prefix.
    #[serde(default)]
    location: String,
    #[serde(default)]
    insecure: bool,
    #[serde(default)]
    blocked: bool,
    #[serde(default)]
    mirror_by_digest_only: bool,
    #[serde(default)]
    mirror: Vec<MirrorEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct MirrorEntry {
    location: String,
    #[serde(default)]
    insecure: bool,
    #[serde(default, rename = "pull-from-mirror")]
    pulls: MirrorPulls,
}

/// The pulls that use a mirror.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum MirrorPulls {
    #[default]
    All,
    DigestOnly,
    TagOnly,
}

impl Mirrors {
    /// Parses the file.
    ///
    /// Errors: Invalid – malformed TOML, or an entry without a valid location.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let file: RegistriesConf =
            toml::from_str(text).map_err(|e| Error::invalid("registries.conf", e.to_string()))?;
        let mut registries = file.registry;
        for (index, registry) in registries.iter_mut().enumerate() {
            let entry = || format!("registries.conf: registry {}", index + 1);
            let completed = registry.complete();
            completed.map_err(|reason| Error::invalid(entry(), reason))?;
        }
        Ok(Self(registries))
    }

    /// Hosts, with their ports, whose TLS is not verified.
    pub fn insecure(&self) -> impl Iterator<Item = &str> {
        let registries = self.0.iter();
        let locations = registries.flat_map(|registry| {
            let own = (&registry.location, registry.insecure);
            let mirrors = registry.mirror.iter().map(|it| (&it.location, it.insecure));
            mirrors.chain([own])
        });
        let insecure =
            locations.filter(|(location, is_insecure)| *is_insecure && !location.is_empty());
        insecure.map(|(location, _)| {
            location
                .split_once('/')
                .map_or(location.as_str(), |it| it.0)
        })
    }

    /// Hosts of all mirrors, with their ports, each with the locations whose images it has.
    pub fn mirror_hosts(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut hosts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for registry in &self.0 {
            let source = match registry.prefix.as_str() {
                "" => registry.location.as_str(),
                prefix => prefix,
            };
            for mirror in &registry.mirror {
                let location = mirror.location.as_str();
                let host = location.split_once('/').map_or(location, |it| it.0);
                let sources = hosts.entry(host).or_default();
                if !sources.contains(&source) {
                    sources.push(source);
                }
            }
        }
        hosts
    }

    /// All entries, in the order of the file.
    ///
    /// Source: openshift/assisted-service, `pkg/mirrorregistries`: mirrors for tags alone are none of an
    /// `ImageDigestMirrorSet`.
    pub fn sources(&self) -> impl Iterator<Item = MirrorSource<'_>> {
        self.0.iter().map(|registry| MirrorSource {
            location: match registry.location.as_str() {
                "" => &registry.prefix,
                location => location,
            },
            mirrors: registry
                .mirror
                .iter()
                .filter(|it| registry.uses(it, true))
                .map(|it| it.location.as_str())
                .collect(),
        })
    }

    /// Whether an entry is for this name.
    pub fn has_entry(&self, image: &Reference) -> bool {
        self.entry(image).is_some()
    }

    /// The references of an image, in order: those of its mirrors, and the one of its own location.
    ///
    /// Errors: Forbidden – every location is blocked; Invalid – a location that does not fit this name.
    pub fn candidates(&self, image: &Reference) -> Result<Vec<Reference>, Error> {
        self.places(image, RequestKind::Named)
    }

    /// As [`Self::candidates`], for a kind of request.
    pub(crate) fn places(
        &self,
        reference: &Reference,
        sought: RequestKind,
    ) -> Result<Vec<Reference>, Error> {
        let Some((registry, rest)) = self.entry(reference) else {
            return Ok(vec![reference.clone()]);
        };
        let place = |location: &str| {
            let place: Reference = format!("{location}{rest}").parse()?;
            Ok(Reference {
                registry: place.registry,
                repository: place.repository,
                ..reference.clone()
            })
        };
        let is_by_digest = reference.digest.is_some() || RequestKind::is_extra(reference);
        let mirrors = registry.mirror.iter();
        let mirrors = mirrors
            .filter(|it| sought == RequestKind::Rest || registry.uses(it, is_by_digest))
            .map(|it| place(&it.location));
        let mut places = mirrors.collect::<Result<Vec<_>, Error>>()?;
        if !registry.blocked {
            places.push(match registry.location.as_str() {
                "" => reference.clone(),
                location => place(location)?,
            });
        }
        // A block is of the location, not of its mirrors: `NeverContactSource` of mirror sets becomes a blocked entry with
        // mirrors. Source: containers/image, `newDockerClient`, which looks up the entry of each location.
        places.retain(|place| !self.entry(place).is_some_and(|(it, _)| it.blocked));
        if places.is_empty() {
            let (name, prefix) = (reference.without_version(), &registry.prefix);
            let reason = format!("{name}: registries.conf blocks {prefix}");
            return Err(Error::Forbidden { reason });
        }
        Ok(places)
    }

    /// The entry with the longest prefix of a name, and the rest of the name. Names of Docker Hub are completed first, as
    /// container tools do: the mirror of `docker.io/redis` is asked for `library/redis`.
    fn entry(&self, reference: &Reference) -> Option<(&RegistryEntry, String)> {
        let named = reference.canonical();
        let name = format!("{}/{}", named.registry.host()?, named.repository);
        let fitting = self.0.iter();
        let fitting = fitting.filter_map(|it| Some((it, it.rest(&name)?.to_owned())));
        // The first one of equal prefixes counts.
        fitting.rev().max_by_key(|(it, _)| it.prefix.len())
    }
}

impl RegistryEntry {
    /// Whether a mirror is for pulls by digest, or for those by tag.
    fn uses(&self, mirror: &MirrorEntry, is_by_digest: bool) -> bool {
        match mirror.pulls {
            _ if self.mirror_by_digest_only => is_by_digest,
            MirrorPulls::All => true,
            MirrorPulls::DigestOnly => is_by_digest,
            MirrorPulls::TagOnly => !is_by_digest,
        }
    }

    /// Normalizes the names. Errors: the reason of an invalid entry.
    fn complete(&mut self) -> Result<(), String> {
        let mirrors = self.mirror.iter_mut().map(|it| &mut it.location);
        for name in mirrors.chain([&mut self.location, &mut self.prefix]) {
            name.truncate(name.trim_end_matches('/').len());
        }
        if self.prefix.is_empty() {
            self.prefix.clone_from(&self.location);
        }
        let prefix = &self.prefix;
        if prefix.is_empty() {
            return Err("has neither prefix nor location".into());
        }
        let own = Some(&self.location).filter(|it| !it.is_empty());
        for location in self.mirror.iter().map(|it| &it.location).chain(own) {
            if format!("{location}/a").parse::<Reference>().is_err() {
                return Err(format!(
                    "{prefix}: {location:?} is not a location: expected HOST[:PORT][/PATH]"
                ));
            }
        }
        Ok(())
    }

    /// The part of a name after the prefix; `None` without the prefix.
    fn rest<'a>(&self, name: &'a str) -> Option<&'a str> {
        let rest = match self.prefix.strip_prefix('*') {
            None => name.strip_prefix(self.prefix.as_str())?,
            Some(end) => {
                let (host, rest) = name.split_once(end)?;
                (!host.contains('/')).then_some(rest)?
            }
        };
        // A pattern that names a host may be followed by a port.
        let is_whole = rest.is_empty() || rest.starts_with('/') || rest.starts_with(':');
        is_whole.then_some(rest)
    }
}

/// Whether a tag names an artifact that is attached to the manifest of a digest.
fn is_of_digest(tag: &Tag) -> bool {
    let tag = tag.as_str();
    tag.starts_with("sha256-") || tag.starts_with("sha512-")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        unqualified-search-registries = ["docker.io"]

        [[registry]]
        location = "quay.io"
        [[registry.mirror]]
        location = "near.example:5000/quay/"
        pull-from-mirror = "digest-only"
        [[registry.mirror]]
        location = "far.example"
        insecure = true

        [[registry]]
        prefix = "quay.io/acme"
        location = "other.example/a/b"
        insecure = true
        mirror-by-digest-only = true
        [[registry.mirror]]
        location = "near.example:5000/acme"

        [[registry]]
        prefix = "*.wild.example"
        [[registry.mirror]]
        location = "near.example:5000/wild"
        pull-from-mirror = "tag-only"

        [[registry]]
        prefix = "*.wild.example"
        location = "shadowed.example"

        [[registry]]
        prefix = "bad.example"
        blocked = true

        [[registry]]
        location = "never.example"
        blocked = true
        [[registry.mirror]]
        location = "bad.example/never"
        [[registry.mirror]]
        location = "near.example:5000/never"
    "#;

    fn places(name: &str, sought: RequestKind) -> Vec<String> {
        let mirrors = Mirrors::parse(FILE).unwrap();
        let places = mirrors.places(&name.parse().unwrap(), sought).unwrap();
        places.iter().map(Reference::to_string).collect()
    }

    #[test]
    fn the_longest_prefix_selects_the_locations() {
        let digest = oci::Digest::sha256(b"");
        for (name, expected) in [
            ("x.example/a:t", vec!["x.example/a:t".to_owned()]),
            (
                "quay.io/a/b:t",
                vec!["far.example/a/b:t".into(), "quay.io/a/b:t".into()],
            ),
            (
                &format!("quay.io/a@{digest}"),
                vec![
                    format!("near.example:5000/quay/a@{digest}"),
                    format!("far.example/a@{digest}"),
                    format!("quay.io/a@{digest}"),
                ],
            ),
            ("quay.io/acme/tool", vec!["other.example/a/b/tool".into()]),
            (
                "quay.io/acme/tool:sha256-00.sig",
                vec![
                    "near.example:5000/acme/tool:sha256-00.sig".into(),
                    "other.example/a/b/tool:sha256-00.sig".into(),
                ],
            ),
            (
                "quay.io/acmes/tool",
                vec!["far.example/acmes/tool".into(), "quay.io/acmes/tool".into()],
            ),
            (
                "a.wild.example/b:t",
                vec![
                    "near.example:5000/wild/b:t".into(),
                    "a.wild.example/b:t".into(),
                ],
            ),
            ("wild.example/b:t", vec!["wild.example/b:t".into()]),
            (
                "never.example/a:t",
                vec!["near.example:5000/never/a:t".into()],
            ),
        ] {
            assert_eq!(places(name, RequestKind::Named), expected, "{name}");
        }
        assert_eq!(places("quay.io/a", RequestKind::Rest).len(), 3);
    }

    #[test]
    fn names_of_docker_hub_are_completed() {
        let file = r#"
            [[registry]]
            location = "docker.io"
            [[registry.mirror]]
            location = "near.example:5000/hub"

            [[registry]]
            prefix = "docker.io/library/nginx"
            location = "near.example/nginx"
        "#;
        let mirrors = Mirrors::parse(file).unwrap();
        for (name, expected) in [
            ("docker.io/redis:7", "near.example:5000/hub/library/redis:7"),
            (
                "docker.io/library/redis:7",
                "near.example:5000/hub/library/redis:7",
            ),
            (
                "index.docker.io/redis:7",
                "near.example:5000/hub/library/redis:7",
            ),
            (
                "docker.io/bitnami/redis:7",
                "near.example:5000/hub/bitnami/redis:7",
            ),
            ("docker.io/nginx:1", "near.example/nginx:1"),
        ] {
            let places = mirrors.candidates(&name.parse().unwrap()).unwrap();
            assert_eq!(places[0].to_string(), expected, "{name}");
        }
    }

    #[test]
    fn sources_have_the_mirrors_for_digests() {
        let mirrors = Mirrors::parse(FILE).unwrap();
        let sources: Vec<_> = mirrors.sources().collect();
        let source = |location, mirrors: &[&'static str]| MirrorSource {
            location,
            mirrors: mirrors.to_vec(),
        };
        assert_eq!(
            sources[..4],
            [
                source("quay.io", &["near.example:5000/quay", "far.example"]),
                source("other.example/a/b", &["near.example:5000/acme"]),
                source("*.wild.example", &[]),
                source("shadowed.example", &[]),
            ]
        );
    }

    #[test]
    fn blocked_names_are_refused() {
        let mirrors = Mirrors::parse(FILE).unwrap();
        let refused = mirrors.places(&"bad.example/a:t".parse().unwrap(), RequestKind::Named);
        assert!(
            matches!(refused, Err(Error::Forbidden { .. })),
            "{refused:?}"
        );
        assert!(mirrors.insecure().eq(["far.example", "other.example"]));
    }

    #[test]
    fn malformed_files_are_refused_with_a_reason() {
        for (text, expected) in [
            ("[[registry]", "TOML"),
            (
                "[[registry]]\ninsecure = true",
                "neither prefix nor location",
            ),
            (
                "[[registry]]\nlocation = \"nowhere\"",
                "\"nowhere\" is not a location",
            ),
            (
                "[[registry]]\nprefix = \"a.b\"\n[[registry.mirror]]\nlocation = \"\"",
                "\"\" is not a location",
            ),
            (
                "[[registry]]\nprefix = \"a.b\"\n[[registry.mirror]]\nlocation = \"c.d\"\npull-from-mirror = \"some\"",
                "digest-only",
            ),
        ] {
            let message = Mirrors::parse(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
            let is_of_entry = expected.contains("location");
            assert_eq!(message.contains("registry 1: "), is_of_entry, "{message}");
        }
    }
}
