//! Target of a run.

use std::path::PathBuf;
use std::str::FromStr;

use ::mirror::target_name::TargetName;
use oci::Registry;

/// Target of a run. Source of schemes and error texts: oc-mirror v1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    /// `file://FOLDER`: the folder of an archive set.
    ArchiveSet(PathBuf),
    Target(TargetName),
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
        rest.parse().map(Self::Target)
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
