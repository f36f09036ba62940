//! Names of Docker Hub, the only registry whose name is not its host.
//!
//! Source: distribution/reference, normalize.go.

use crate::{Reference, Registry};

const NAME: &str = "docker.io";
const FORMER_NAME: &str = "index.docker.io";
const HOST: &str = "registry-1.docker.io";
/// Namespace of repositories without one.
const NAMESPACE: &str = "library";

/// Whether a registry is Docker Hub.
pub fn is_docker_hub(registry: &str) -> bool {
    [NAME, FORMER_NAME, HOST].contains(&registry)
}

impl Reference {
    /// The reference as container tools complete it: repositories of Docker Hub without a namespace are in `library`.
    #[must_use]
    pub fn canonical(&self) -> Self {
        let Some(host) = self.registry.host().filter(|host| is_docker_hub(host)) else {
            return self.clone();
        };
        let registry = match host {
            FORMER_NAME => Registry::Host(NAME.to_owned()),
            _ => self.registry.clone(),
        };
        let is_official = !self.repository.as_str().contains('/');
        let official = is_official.then(|| format!("{NAMESPACE}/{}", self.repository).parse().ok());
        let repository = official.flatten();
        let repository = repository.unwrap_or_else(|| self.repository.clone());
        Self {
            registry,
            repository,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn official_images_are_in_library() {
        for (name, expected) in [
            ("docker.io/redis:7", "docker.io/library/redis:7"),
            ("index.docker.io/redis", "docker.io/library/redis"),
            (
                "registry-1.docker.io/redis",
                "registry-1.docker.io/library/redis",
            ),
            ("docker.io/library/redis", "docker.io/library/redis"),
            ("docker.io/bitnami/redis", "docker.io/bitnami/redis"),
            ("quay.io/redis", "quay.io/redis"),
        ] {
            let reference: Reference = name.parse().unwrap();
            assert_eq!(reference.canonical().to_string(), expected, "{name}");
        }
    }
}
