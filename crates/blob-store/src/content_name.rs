//! Digests under which content is known.

use serde::{Deserialize, Serialize};

use oci::Digest;

/// The digests of content: its SHA-256, and the one that a client used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ContentName {
    /// Its SHA-256, under which its bytes are stored.
    pub(super) canonical: Digest,
    /// The SHA-512 that a client used instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) alias: Option<Digest>,
}

impl ContentName {
    /// Content with the SHA-256 `canonical` that a client named `name`.
    pub(super) fn new(canonical: Digest, name: &Digest) -> Self {
        let alias = Some(name.clone()).filter(|name| *name != canonical);
        Self { canonical, alias }
    }

    /// The digest that a client used.
    pub(super) fn requested(&self) -> &Digest {
        self.alias.as_ref().unwrap_or(&self.canonical)
    }

    /// Both digests, the canonical one first.
    pub(super) fn digests(&self) -> impl Iterator<Item = &Digest> {
        [Some(&self.canonical), self.alias.as_ref()]
            .into_iter()
            .flatten()
    }
}
