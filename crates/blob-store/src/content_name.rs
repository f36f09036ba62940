//! What content is called.

use serde::{Deserialize, Serialize};

use oci::Digest;

/// What content is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Name {
    /// Its SHA-256: bytes lie under this one.
    pub(super) canonical: Digest,
    /// The other digest that a client gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) alias: Option<Digest>,
}

impl Name {
    /// Content that is known by `name`, and by `canonical`.
    pub(super) fn new(canonical: Digest, name: &Digest) -> Self {
        let alias = Some(name.clone()).filter(|name| *name != canonical);
        Self { canonical, alias }
    }

    /// The digest that a client gave.
    pub(super) fn told(&self) -> &Digest {
        self.alias.as_ref().unwrap_or(&self.canonical)
    }

    /// Both digests, the canonical one first.
    pub(super) fn digests(&self) -> impl Iterator<Item = &Digest> {
        [Some(&self.canonical), self.alias.as_ref()]
            .into_iter()
            .flatten()
    }
}
