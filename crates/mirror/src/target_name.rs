//! Name of a target that images are published to.

use std::str::FromStr;

use oci::{Reference, Registry};

/// `HOST[:PORT][/NAMESPACE]`, or the folder of an image layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetName {
    pub registry: Registry,
    /// Prefix of all repositories; empty in an image layout.
    pub namespace: String,
}

impl TargetName {
    /// The whole registry.
    pub fn whole(registry: Registry) -> Self {
        let namespace = String::new();
        Self {
            registry,
            namespace,
        }
    }
}

impl FromStr for TargetName {
    type Err = String;

    /// Source of error texts: oc-mirror v1.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim_end_matches('/');
        let (host, namespace) = text.split_once('/').unwrap_or((text, ""));
        // A repository name after the host makes the reference parser check the host.
        let probe = match namespace {
            "" => format!("{host}/a"),
            namespace => format!("{host}/{namespace}"),
        };
        match probe.parse::<Reference>() {
            Ok(reference) if reference.tag.is_none() && reference.digest.is_none() => Ok(Self {
                registry: reference.registry,
                namespace: namespace.to_owned(),
            }),
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
    fn a_host_has_a_port_or_a_dot() {
        let parsed = |text: &str| text.parse::<TargetName>();
        let name = |host: &str, namespace: &str| {
            Ok(TargetName {
                registry: Registry::Host(host.into()),
                namespace: namespace.into(),
            })
        };
        assert_eq!(parsed("registry:5000"), name("registry:5000", ""));
        assert_eq!(parsed("a.example/b/c/"), name("a.example", "b/c"));
        for wrong in ["registry", "", "a.example/b:tag", "a.example/UPPER"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
