//! Target of a run.

use std::path::PathBuf;
use std::str::FromStr;

/// Target of a run. Source of schemes and error texts: oc-mirror v1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    Folder(PathBuf),
    /// A registry, or an image layout when `registry` is `oci://FOLDER`.
    Registry {
        registry: String,
        namespace: String,
    },
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
            "file" => return Ok(Self::Folder(rest.into())),
            "oci" if rest.is_empty() || rest.contains(':') => {
                return Err(format!(
                    "{text:?}: expected a folder, whose path has no colon"
                ));
            }
            "oci" => {
                return Ok(Self::Registry {
                    registry: text.to_owned(),
                    namespace: String::new(),
                });
            }
            _ => {
                return Err(format!(
                    "unknown destination scheme {scheme:?}: it is file, oci or docker"
                ));
            }
        }
        let rest = rest.trim_end_matches('/');
        let (registry, namespace) = rest.split_once('/').unwrap_or((rest, ""));
        // A repository name after the host makes the reference parser check the host.
        let probe = match namespace {
            "" => format!("{registry}/a"),
            namespace => format!("{registry}/{namespace}"),
        };
        match probe.parse::<oci::Reference>() {
            Ok(reference) if reference.tag.is_none() && reference.digest.is_none() => {
                Ok(Self::Registry {
                    registry: registry.to_owned(),
                    namespace: namespace.to_owned(),
                })
            }
            Ok(_) => Err(format!(
                "{text:?}: the target must not include an image tag or digest"
            )),
            Err(error) => Err(error.to_string()),
        }
    }
}
