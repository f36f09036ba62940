//! Target of a run.

use std::path::PathBuf;
use std::str::FromStr;

use oci::{Reference, Registry};

/// Target of a run. Source of schemes and error texts: oc-mirror v1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    /// `file://FOLDER`: the folder of an archive set.
    ArchiveSet(PathBuf),
    Target(TargetName),
}

/// Destination that images are published to: `docker://HOST[:PORT][/NAMESPACE]` or `oci://FOLDER`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TargetName {
    pub(crate) registry: Registry,
    /// Empty in an image layout.
    pub(crate) namespace: String,
}

impl TargetName {
    /// The whole registry.
    pub(crate) fn whole(registry: Registry) -> Self {
        let namespace = String::new();
        Self {
            registry,
            namespace,
        }
    }
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(format!(
                "no scheme delimiter in destination argument {text:?}: write file://FOLDER, oci://FOLDER or docker://HOST[:PORT][/NAMESPACE]"
            ));
        };
        match scheme {
            "docker" => {}
            "file" if rest.is_empty() => return Err(format!("{text:?} names no folder")),
            "file" => return Ok(Self::ArchiveSet(rest.into())),
            "oci" if rest.is_empty() || rest.contains(':') => {
                return Err(format!(
                    "{text:?}: expected a folder, whose path has no colon"
                ));
            }
            "oci" => {
                return Ok(Self::Target(TargetName::whole(Registry::Layout(
                    rest.into(),
                ))));
            }
            _ => {
                return Err(format!(
                    "unknown destination scheme {scheme:?}: it is file, oci or docker"
                ));
            }
        }
        let rest = rest.trim_end_matches('/');
        let (host, namespace) = rest.split_once('/').unwrap_or((rest, ""));
        // A repository name after the host makes the reference parser check the host.
        let probe = match namespace {
            "" => format!("{host}/a"),
            namespace => format!("{host}/{namespace}"),
        };
        match probe.parse::<Reference>() {
            Ok(reference) if reference.tag.is_none() && reference.digest.is_none() => {
                Ok(Self::Target(TargetName {
                    registry: reference.registry,
                    namespace: namespace.to_owned(),
                }))
            }
            Ok(_) => Err(format!(
                "{text:?}: the target must not include an image tag or digest"
            )),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_called_oci_is_a_registry() {
        let parsed = |text: &str| text.parse::<Destination>();
        let registry = |host: &str, namespace: &str| {
            Ok(Destination::Target(TargetName {
                registry: Registry::Host(host.into()),
                namespace: namespace.into(),
            }))
        };
        assert_eq!(
            parsed("docker://oci:5000/repo"),
            registry("oci:5000", "repo")
        );
        assert_eq!(parsed("docker://oci.io"), registry("oci.io", ""));
        // A host without port has a dot.
        assert!(parsed("docker://oci/repo").is_err());
        let layout = TargetName::whole(Registry::Layout("/srv/a".into()));
        assert_eq!(layout.registry.to_string(), "oci:///srv/a");
        assert_eq!(parsed("oci:///srv/a"), Ok(Destination::Target(layout)));
        assert_eq!(
            parsed("file://out"),
            Ok(Destination::ArchiveSet("out".into()))
        );
    }
}
