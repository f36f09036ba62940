//! Keys of objects: the layout of distribution's S3 driver, so that its bucket can be adopted in place and handed back.
//!
//! Our own objects are below `.atoll`, or beside distribution's folders under names with `_`, which it skips.

use object_store::path::Path;
use uuid::Uuid;

use crate::{Result, StoreError};
use oci::{Digest, Repository, Tag};

/// Keys below the root directory.
#[derive(Debug, Clone)]
pub(super) struct BucketLayout {
    content: String,
    own: String,
}

impl BucketLayout {
    /// Errors: Damaged – the bucket would encode the folder's name.
    pub(super) fn new(root: &str) -> Result<Self> {
        let root = root.trim_matches('/');
        if Path::parse(root).is_err() || Path::from(root).as_ref() != root {
            return Err(StoreError::Damaged {
                what: format!("the root directory {root:?}"),
                why: "expected letters, digits and -_.! in folders that are joined by /".to_owned(),
            });
        }
        let root = match root {
            "" => String::new(),
            root => format!("{root}/"),
        };
        Ok(Self {
            content: format!("{root}docker/registry/v2/"),
            own: format!("{root}.atoll/"),
        })
    }

    fn content(&self, below: &str) -> Path {
        Path::from(format!("{}{below}", self.content))
    }

    fn own(&self, below: &str) -> Path {
        Path::from(format!("{}{below}", self.own))
    }

    /// Written and removed at each start.
    pub(super) fn probe(&self) -> Path {
        self.own(&format!("probe/{}", Uuid::new_v4()))
    }

    /// A record of the registry.
    pub(super) fn record(&self, name: &str) -> Path {
        self.own(&format!("records/{name}"))
    }

    /// Marker: the referrers of manifests by other programs are listed.
    pub(super) fn adopted(&self) -> Path {
        self.own("adopted")
    }

    /// Prefix of the marks of collections that remove objects now.
    pub(super) fn collections(&self) -> String {
        format!("{}collections/", self.own)
    }

    pub(super) fn collection(&self, id: &str) -> Path {
        self.own(&format!("collections/{id}"))
    }

    /// Prefix of touches: one object for each content that was recently linked.
    pub(super) fn touches(&self, first: u8) -> String {
        format!("{}touched/{first:02x}/", self.own)
    }

    pub(super) fn touch(&self, canonical: &Digest) -> Path {
        let hex = canonical.hex();
        self.own(&format!("touched/{}/{hex}", &hex[..2]))
    }

    /// Prefix of the content whose digest begins with a byte.
    pub(super) fn shard(&self, first: u8) -> String {
        format!("{}blobs/sha256/{first:02x}/", self.content)
    }

    /// Prefix of notes about missing or damaged content that repositories link to.
    pub(super) fn missing_notes(&self, first: u8) -> String {
        format!("{}lost/{first:02x}/", self.own)
    }

    pub(super) fn noted_missing(&self, canonical: &Digest) -> Path {
        let hex = canonical.hex();
        self.own(&format!("lost/{}/{hex}", &hex[..2]))
    }

    /// Holds the SHA-256 of content that was pushed by a SHA-512; never removed, since it stays true.
    pub(super) fn alias(&self, digest: &Digest) -> Path {
        let (algorithm, hex) = (digest.algorithm().as_str(), digest.hex());
        self.own(&format!("aliases/{algorithm}/{}/{hex}", &hex[..2]))
    }

    /// Quarantined bytes.
    pub(super) fn set_aside(&self, canonical: &Digest) -> Path {
        self.own(&format!("damaged/{}", canonical.hex()))
    }

    /// Bytes of a blob or manifest, stored under the SHA-256 alone; other digests are links to it.
    pub(super) fn data(&self, canonical: &Digest) -> Path {
        let hex = canonical.hex();
        let algorithm = canonical.algorithm().as_str();
        self.content(&format!("blobs/{algorithm}/{}/{hex}/data", &hex[..2]))
    }

    pub(super) fn repositories(&self) -> String {
        format!("{}repositories/", self.content)
    }

    /// Prefix of a repository, and of those below it.
    pub(super) fn repository(&self, repository: &Repository) -> String {
        format!("{}{repository}/", self.repositories())
    }

    pub(super) fn layers(&self, repository: &Repository) -> String {
        format!("{}_layers/", self.repository(repository))
    }

    pub(super) fn layer_link(&self, repository: &Repository, digest: &Digest) -> Path {
        Path::from(format!("{}{}", self.layers(repository), link(digest)))
    }

    pub(super) fn manifests(&self, repository: &Repository) -> String {
        format!("{}_manifests/", self.repository(repository))
    }

    /// Marker of a repository whose last manifest was deleted.
    pub(super) fn known(&self, repository: &Repository) -> Path {
        Path::from(format!("{}known", self.manifests(repository)))
    }

    pub(super) fn revisions(&self, repository: &Repository) -> String {
        format!("{}revisions/", self.manifests(repository))
    }

    pub(super) fn revision_link(&self, repository: &Repository, digest: &Digest) -> Path {
        Path::from(format!("{}{}", self.revisions(repository), link(digest)))
    }

    /// A manifest of schema 1 with its signatures; like distribution, the object under its digest has none.
    pub(super) fn signed(&self, repository: &Repository, digest: &Digest) -> Path {
        let revisions = self.revisions(repository);
        Path::from(format!("{revisions}{}/signed", folder(digest)))
    }

    pub(super) fn tags(&self, repository: &Repository) -> String {
        format!("{}tags/", self.manifests(repository))
    }

    /// Prefix of a tag.
    pub(super) fn tag(&self, repository: &Repository, tag: &Tag) -> String {
        format!("{}{tag}/", self.tags(repository))
    }

    pub(super) fn tag_current(&self, repository: &Repository, tag: &Tag) -> Path {
        Path::from(format!("{}current/link", self.tag(repository, tag)))
    }

    /// Link in the history of a tag's digests.
    pub(super) fn tag_history(&self, repository: &Repository, tag: &Tag, digest: &Digest) -> Path {
        Path::from(format!(
            "{}index/{}",
            self.tag(repository, tag),
            link(digest)
        ))
    }

    pub(super) fn all_referrers(&self, repository: &Repository) -> String {
        format!("{}_referrers/", self.repository(repository))
    }

    /// Prefix of the referrers of `subject`.
    pub(super) fn referrers(&self, repository: &Repository, subject: &Digest) -> String {
        format!("{}{}/", self.all_referrers(repository), folder(subject))
    }

    pub(super) fn referrer_link(
        &self,
        repository: &Repository,
        subject: &Digest,
        digest: &Digest,
    ) -> Path {
        Path::from(format!(
            "{}{}",
            self.referrers(repository, subject),
            link(digest)
        ))
    }

    pub(super) fn orphans(&self, repository: &Repository) -> String {
        format!("{}_freed/", self.repository(repository))
    }

    /// Records since when a manifest is an orphan.
    pub(super) fn orphan(&self, repository: &Repository, digest: &Digest) -> Path {
        Path::from(format!("{}{}", self.orphans(repository), link(digest)))
    }

    pub(super) fn uploads(&self, repository: &Repository) -> String {
        format!("{}_uploads/", self.repository(repository))
    }

    /// Prefix of an upload.
    pub(super) fn upload(&self, repository: &Repository, upload: Uuid) -> String {
        format!("{}{upload}/", self.uploads(repository))
    }
}

fn folder(digest: &Digest) -> String {
    format!("{}/{}", digest.algorithm().as_str(), digest.hex())
}

fn link(digest: &Digest) -> String {
    format!("{}/link", folder(digest))
}

/// The first byte of a digest.
pub(super) fn first_byte(digest: &Digest) -> u8 {
    u8::from_str_radix(&digest.hex()[..2], 16).expect("a digest is hexadecimal")
}

/// The digest in a link's key, relative to the folder of links.
pub(super) fn linked(below: &str) -> Option<Digest> {
    let (algorithm, hex) = below.strip_suffix("/link")?.split_once('/')?;
    format!("{algorithm}:{hex}").parse().ok()
}

/// The digest in a key of content, relative to its shard.
pub(super) fn stored(below: &str) -> Option<Digest> {
    format!("sha256:{}", below.strip_suffix("/data")?)
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_distribution() {
        let layout = BucketLayout::new("/some/root/").unwrap();
        let (repository, digest) = ("a/b".parse().unwrap(), Digest::sha256(b""));
        let hex = digest.hex();
        let base = "some/root/docker/registry/v2";
        assert_eq!(
            layout.data(&digest).as_ref(),
            format!("{base}/blobs/sha256/e3/{hex}/data")
        );
        let key = layout.tag_current(&repository, &"v1.0-x".parse().unwrap());
        let expected = format!("{base}/repositories/a/b/_manifests/tags/v1.0-x/current/link");
        assert_eq!(key.as_ref(), expected);
        let key = layout.layer_link(&repository, &digest);
        let below = key.as_ref().strip_prefix(&layout.layers(&repository));
        assert_eq!(linked(below.unwrap()), Some(digest));
        assert_eq!(
            BucketLayout::new("").unwrap().content,
            "docker/registry/v2/"
        );
    }

    #[test]
    fn folders_that_would_be_encoded_are_refused() {
        for wrong in ["a//b", "a/../b", "a b%", "a#"] {
            assert!(BucketLayout::new(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn keys_of_other_objects_are_no_links() {
        for wrong in ["", "sha256", "sha256/abc/link", "sha256/abc", "x/link"] {
            assert_eq!(linked(wrong), None, "{wrong}");
        }
    }
}
