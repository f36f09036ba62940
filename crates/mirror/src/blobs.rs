//! Sources of blobs.

use std::collections::BTreeMap;

use net::web::Web;
use oci::{Descriptor, Digest, Reference, Tag};
use oci_client::Client;
use oci_client::client::{BlobSource, RemoteBlob, WebBlob};

use crate::content::{SourceBlob, SourceRepository};

/// Provides the bytes of blobs.
pub trait BlobProvider: Sync {
    /// The source of a blob; none where its bytes are unavailable.
    fn source(&self, digest: &Digest) -> Option<BlobSource>;
}

/// In the registries where they were found, or on web servers.
#[derive(Debug)]
pub struct Registries<'a> {
    pub client: &'a Client,
    pub web: &'a Web,
    pub blobs: &'a BTreeMap<Digest, SourceBlob>,
}

impl Registries<'_> {
    /// The sources of a blob, in the order of attempts.
    pub(crate) fn all(&self, digest: &Digest) -> impl Iterator<Item = BlobSource> {
        let known = self.blobs.get_key_value(digest).into_iter();
        known.flat_map(|(digest, blob)| {
            let file = blob.file.iter().map(|url| {
                BlobSource::Web(Box::new(WebBlob {
                    web: self.web.clone(),
                    url: url.clone(),
                    blob: blob.descriptor(digest),
                }))
            });
            // The repository of such a blob lacks it.
            let repositories = blob.sources.iter().filter(|_| blob.file.is_none());
            file.chain(repositories.map(|origin| {
                BlobSource::Remote(Box::new(RemoteBlob {
                    client: self.client.clone(),
                    reference: origin.reference(digest),
                    blob: blob.descriptor(digest),
                }))
            }))
        })
    }
}

impl BlobProvider for Registries<'_> {
    fn source(&self, digest: &Digest) -> Option<BlobSource> {
        self.all(digest).next()
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
