//! Sources of blobs.

use std::collections::BTreeMap;

use oci::{Descriptor, Digest, Reference, Tag};
use oci_client::Client;
use oci_client::client::{BlobSource, RemoteBlob};

use crate::content::{SourceBlob, SourceRepository};

/// Provides the bytes of blobs.
pub trait BlobProvider: Sync {
    /// The source of a blob; none where its bytes are unavailable.
    fn source(&self, digest: &Digest) -> Option<BlobSource>;
}

/// In the registries where they were found.
#[derive(Debug)]
pub struct Registries<'a> {
    pub client: &'a Client,
    pub blobs: &'a BTreeMap<Digest, SourceBlob>,
}

impl BlobProvider for Registries<'_> {
    fn source(&self, digest: &Digest) -> Option<BlobSource> {
        let blob = self.blobs.get(digest)?;
        let origin = blob.sources.first()?;
        Some(BlobSource::Remote(Box::new(RemoteBlob {
            client: self.client.clone(),
            reference: origin.reference(digest),
            blob: blob.descriptor(digest),
        })))
    }
}

/// Built blobs, then those of another provider.
pub struct Made<'a> {
    pub made: BTreeMap<Digest, BlobSource>,
    pub elsewhere: &'a dyn BlobProvider,
}

impl BlobProvider for Made<'_> {
    fn source(&self, digest: &Digest) -> Option<BlobSource> {
        let made = self.made.get(digest).cloned();
        made.or_else(|| self.elsewhere.source(digest))
    }
}

impl SourceBlob {
    /// As manifests name it.
    pub(crate) fn descriptor(&self, digest: &Digest) -> Descriptor {
        Descriptor {
            media_type: String::new(),
            digest: digest.clone(),
            size: self.size,
            platform: None,
            annotations: None,
        }
    }
}

impl SourceRepository {
    /// That of an image.
    pub(crate) fn of(reference: &Reference) -> Self {
        Self {
            registry: reference.registry.clone(),
            repository: reference.repository.clone(),
        }
    }

    /// Its name.
    pub(crate) fn named(&self) -> Reference {
        Reference {
            registry: self.registry.clone(),
            repository: self.repository.clone(),
            tag: None,
            digest: None,
        }
    }

    /// The image with that tag there.
    pub(crate) fn tagged(&self, tag: &Tag) -> Reference {
        Reference {
            tag: Some(tag.clone()),
            ..self.named()
        }
    }

    /// A manifest or blob there.
    pub(crate) fn reference(&self, digest: &Digest) -> Reference {
        self.named().with_digest(digest.clone())
    }
}
