//! References to images, as users and manifests write them.

use std::fmt;
use std::str::FromStr;

use model::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::registry::{LAYOUT_SCHEME, is_host};
use crate::{Digest, Registry, Repository, Tag};

/// Default tag of a reference.
const DEFAULT_TAG: &str = "latest";

/// The transport before the name of an image.
///
/// Source: containers-transports(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// `docker://`: an image in a registry.
    Docker,
    /// `oci:`: an image in an image layout.
    Oci,
}

/// An image in a registry: `host[:port]/repository[:tag][@digest]`. Or one in an image layout, which takes the place of a
/// registry: `oci://folder:repository[:tag][@digest]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The registry, or the image layout in its place.
    pub registry: Registry,
    /// Repository within the registry.
    pub repository: Repository,
    /// The tag, if given.
    pub tag: Option<Tag>,
    /// The digest, if given. It selects the manifest; the tag is then informative only.
    pub digest: Option<Digest>,
}

/// A manifest of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// The manifest that a tag points at.
    Tag(Tag),
    /// The manifest with this digest.
    Digest(Digest),
}

impl Reference {
    /// The requested manifest: the digest, else the tag, else `latest`.
    pub fn target(&self) -> Target {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => Target::Digest(digest.clone()),
            (None, Some(tag)) => Target::Tag(tag.clone()),
            (None, None) => Target::Tag(
                DEFAULT_TAG
                    .parse()
                    .expect("the default tag fits the grammar"),
            ),
        }
    }

    /// Parses a reference, also one to a folder. Only for input of local users: remote input must not name folders of
    /// this machine.
    ///
    /// Errors: Invalid – neither form.
    pub fn parse_local(text: &str) -> Result<Self, Error> {
        let Some(rest) = text.strip_prefix(LAYOUT_SCHEME) else {
            return text.parse();
        };
        let wrong = || {
            Error::invalid(
                "image reference",
                format!("{text:?}: expected oci://folder:repository[:tag][@digest]"),
            )
        };
        let (folder, named) = rest
            .split_once(':')
            .filter(|it| !it.0.is_empty())
            .ok_or_else(wrong)?;
        let registry = Registry::Layout(folder.into());
        // The same grammar follows a folder and a host.
        let hosted: Self = format!("localhost/{named}").parse()?;
        Ok(Self { registry, ..hosted })
    }

    /// The repository alone.
    #[must_use]
    pub fn without_version(&self) -> Self {
        Self {
            tag: None,
            digest: None,
            ..self.clone()
        }
    }

    /// Another manifest of the same repository.
    #[must_use]
    pub fn with_digest(&self, digest: Digest) -> Self {
        Self {
            tag: None,
            digest: Some(digest),
            ..self.clone()
        }
    }
}

impl Transport {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Docker => "docker://",
            Self::Oci => "oci:",
        }
    }

    /// Splits the transport off a name; none of a bare reference, also of one in a namespace called `oci`.
    ///
    /// A path after `oci:` may follow `//`, as in image-set configurations: `oci://a` is the relative path `a`. A port and
    /// a `/` after `oci:` make it a host. Source: oc-mirror; skopeo, which has no bare references, takes such a port for a
    /// folder.
    pub fn split(name: &str) -> (Option<Self>, &str) {
        let host = name.split_once('/').filter(|(first, _)| is_host(first));
        if host.is_some() {
            (None, name)
        } else if let Some(image) = name.strip_prefix(Self::Docker.prefix()) {
            (Some(Self::Docker), image)
        } else if let Some(path) = name.strip_prefix(Self::Oci.prefix()) {
            (Some(Self::Oci), path.strip_prefix("//").unwrap_or(path))
        } else {
            (None, name)
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.prefix())
    }
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.contains(':') {
            text.parse().map(Self::Digest)
        } else {
            text.parse().map(Self::Tag)
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => tag.fmt(f),
            Self::Digest(digest) => fmt::Display::fmt(digest, f),
        }
    }
}

impl FromStr for Reference {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong =
            |reason: String| Error::invalid("image reference", format!("{text:?}: {reason}"));
        let (named, digest) = match text.split_once('@') {
            Some((named, digest)) => (named, Some(digest)),
            None => (text, None),
        };
        let (registry, path) = named
            .split_once('/')
            .filter(|(host, _)| is_host(host))
            .ok_or_else(|| {
                wrong(
                    "expected host[:port]/repository[:tag][@digest], with the registry's host"
                        .to_owned(),
                )
            })?;
        let (repository, tag) = match path.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (path, None),
        };
        Ok(Self {
            registry: Registry::Host(registry.to_owned()),
            repository: repository
                .parse()
                .map_err(|e: Error| wrong(e.to_string()))?,
            tag: tag
                .map(str::parse)
                .transpose()
                .map_err(|e: Error| wrong(e.to_string()))?,
            digest: digest
                .map(str::parse)
                .transpose()
                .map_err(|e: Error| wrong(e.to_string()))?,
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = match self.registry {
            Registry::Host(_) => '/',
            Registry::Layout(_) => ':',
        };
        write!(f, "{}{separator}{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

impl Serialize for Reference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts() {
        let digest = Digest::sha256(b"");
        let text = format!("127.0.0.1:5000/ocp4/release:4.14.1-x86_64@{digest}");
        let reference: Reference = text.parse().unwrap();
        assert_eq!(reference.registry.host(), Some("127.0.0.1:5000"));
        assert_eq!(reference.repository.as_str(), "ocp4/release");
        assert_eq!(reference.tag.as_ref().unwrap().as_str(), "4.14.1-x86_64");
        assert_eq!(reference.target(), Target::Digest(digest));
        assert_eq!(reference.to_string(), text);
        let plain: Reference = "localhost/a".parse().unwrap();
        assert_eq!(plain.target().to_string(), "latest");
        let numeric: Reference = "[::1]:5000/a".parse().unwrap();
        assert_eq!(numeric.registry.to_string(), "[::1]:5000");
    }

    #[test]
    fn layouts_take_the_place_of_registries() {
        for text in ["oci:///srv/Images:acme/tool:v1", "oci://images:tool"] {
            let reference = Reference::parse_local(text).unwrap();
            assert_eq!(reference.to_string(), text);
            assert!(reference.registry.folder().is_some(), "{text}");
            // References from other sources cannot name folders.
            assert!(text.parse::<Reference>().is_err(), "{text}");
        }
        for wrong in ["oci:///srv/images", "oci://:a", "oci://a:B", "oci://a:"] {
            assert!(Reference::parse_local(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn registries_called_oci_are_no_layouts() {
        for (name, transport, rest) in [
            ("docker://oci/repo", Some(Transport::Docker), "oci/repo"),
            ("docker://oci:5000/a", Some(Transport::Docker), "oci:5000/a"),
            ("oci:5000/a:tag", None, "oci:5000/a:tag"),
            ("oci/repo:tag", None, "oci/repo:tag"),
            ("oci.io/repo:tag", None, "oci.io/repo:tag"),
        ] {
            assert_eq!(Transport::split(name), (transport, rest), "{name}");
        }
        let hosted: Reference = "oci:5000/repo:tag".parse().unwrap();
        assert_eq!(hosted.registry, Registry::Host("oci:5000".to_owned()));
    }

    #[test]
    fn layouts_have_absolute_or_relative_paths() {
        for (name, path) in [
            ("oci:///srv/a", "/srv/a"),
            ("oci:/srv/a", "/srv/a"),
            ("oci://srv/a:v1", "srv/a:v1"),
            ("oci:srv/a", "srv/a"),
            // Folders whose names are no port, or may be none.
            ("oci:5000a/b", "5000a/b"),
            ("oci:70000/b", "70000/b"),
            ("oci:5000:v1", "5000:v1"),
            ("oci:./5000/b", "./5000/b"),
            ("oci://5000/b", "5000/b"),
        ] {
            let layout = (Some(Transport::Oci), path);
            assert_eq!(Transport::split(name), layout, "{name}");
        }
    }

    #[test]
    fn malformed_references_are_refused() {
        for wrong in [
            "",
            "a",
            "a/b",
            "quay.io",
            "quay.io/",
            "quay.io/A",
            "quay.io/a:",
            "quay.io/a@",
            "quay.io/a@sha256:1",
            "quay.io:x/a",
            "quay.io:70000/a",
            "https://quay.io/a",
            "quay.io/a:b:c",
            "[::1/a",
            "-/ a",
            "..//a",
            "a b.c/d",
        ] {
            assert!(wrong.parse::<Reference>().is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn parsed_text_is_printed_unchanged(text in "[a-z0-9.:/@\\[\\]-]{0,60}") {
            if let Ok(reference) = text.parse::<Reference>() {
                prop_assert_eq!(reference.to_string(), text);
            }
        }

        #[test]
        fn printed_references_parse(
            registry in "[a-z]{1,8}\\.[a-z]{2,3}(:[1-9][0-9]{0,3})?", repository in "[a-z0-9]{1,9}(/[a-z]+){0,3}",
            tag in prop::option::of("[a-zA-Z0-9_][a-zA-Z0-9._-]{0,20}"), content in prop::option::of(any::<u64>()),
        ) {
            let reference = Reference {
                registry: Registry::Host(registry),
                repository: repository.parse().unwrap(),
                tag: tag.map(|tag| tag.parse().unwrap()),
                digest: content.map(|n| Digest::sha256(&n.to_be_bytes())),
            };
            prop_assert_eq!(reference.to_string().parse::<Reference>().unwrap(), reference);
        }
    }
}
