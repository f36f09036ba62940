//! Requests about a reference: paths, scopes, names in messages.

use oci::{Digest, Reference};

use super::access::Scope;

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
            repository: Some(self.repository.clone()),
            actions,
        }
    }

    fn blob_id(&self, digest: &Digest) -> String {
        format!("{digest} of {}", self.without_version())
    }

    fn path(&self, resource: &str) -> String {
        format!("/v2/{}/{resource}", self.repository)
    }
}
