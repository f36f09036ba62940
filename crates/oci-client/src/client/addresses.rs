//! Requests about a reference: paths, scopes, names in messages.

use oci::{Digest, Reference, Repository};

/// The scope of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    pub(super) registry: String,
    /// `None` for the registry as a whole.
    pub(super) repository: Option<Repository>,
    /// `pull`, `pull,push`, `delete`, or `*` for the catalog.
    pub(super) actions: &'static str,
}

impl Scope {
    /// The repository with its registry, for messages.
    pub(super) fn place(&self) -> String {
        match &self.repository {
            Some(repository) => format!("{}/{repository}", self.registry),
            None => self.registry.clone(),
        }
    }

    pub(super) fn text(&self) -> String {
        match &self.repository {
            Some(repository) => format!("repository:{repository}:{}", self.actions),
            None => format!("registry:catalog:{}", self.actions),
        }
    }
}

/// Paths and scopes of the repository of a reference.
pub(super) trait Addresses {
    /// The scope of a token for `actions` in the repository.
    fn scope(&self, actions: &'static str) -> Scope;

    /// The name of a blob of the repository, in messages.
    fn blob_id(&self, digest: &Digest) -> String;

    /// The path of `resource` in the repository.
    fn path(&self, resource: &str) -> String;
}

impl Addresses for Reference {
    fn scope(&self, actions: &'static str) -> Scope {
        Scope {
            registry: self.registry.to_string(),
            repository: Some(self.canonical().repository),
            actions,
        }
    }

    fn blob_id(&self, digest: &Digest) -> String {
        format!("{digest} of {}", self.without_version())
    }

    fn path(&self, resource: &str) -> String {
        format!("/v2/{}/{resource}", self.canonical().repository)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn official_images_of_docker_hub_are_in_library() {
        for (reference, path) in [
            ("docker.io/redis:7", "/v2/library/redis/tags/list"),
            ("index.docker.io/redis", "/v2/library/redis/tags/list"),
            ("docker.io/library/redis", "/v2/library/redis/tags/list"),
            ("docker.io/bitnami/redis", "/v2/bitnami/redis/tags/list"),
            ("quay.io/redis", "/v2/redis/tags/list"),
        ] {
            let parsed: Reference = reference.parse().unwrap();
            assert_eq!(parsed.path("tags/list"), path, "{reference}");
            let scope = parsed.scope("pull").text();
            let name = path
                .trim_start_matches("/v2/")
                .trim_end_matches("/tags/list");
            assert_eq!(scope, format!("repository:{name}:pull"));
        }
    }
}
