//! Paths of the store: the layout of distribution's filesystem driver, so that its data directory can be adopted in
//! place and handed back.

use std::path::{Path, PathBuf};

use uuid::Uuid;

use oci::{Digest, Repository, Tag};

/// Paths below the root directory.
#[derive(Debug)]
pub(super) struct FolderLayout {
    root: PathBuf,
    content: PathBuf,
    own: PathBuf,
}

impl FolderLayout {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            content: root.join("docker/registry/v2"),
            own: root.join(".atoll"),
        }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// In our own folder, as are the lock, the journal, the index and the quarantine: outside distribution's layout, so
    /// that it ignores them.
    pub(super) fn temporary_dir(&self) -> PathBuf {
        self.own.join("tmp")
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.own.join("lock")
    }

    /// The folder of files outside distribution's layout.
    pub(super) fn own(&self) -> &Path {
        &self.own
    }

    pub(super) fn reserve(&self) -> PathBuf {
        self.own.join("reserve")
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.own.join("journal")
    }

    /// A record of the registry.
    pub(super) fn record(&self, name: &str) -> PathBuf {
        self.own.join("records").join(name)
    }

    pub(super) fn index(&self) -> PathBuf {
        self.own.join("index.redb")
    }

    /// Quarantined content.
    pub(super) fn quarantine_dir(&self) -> PathBuf {
        self.own.join("quarantine")
    }

    pub(super) fn quarantine(&self, digest: &Digest) -> PathBuf {
        let below = self.quarantine_dir().join(digest.algorithm().as_str());
        below.join(digest.hex())
    }

    /// The note beside quarantined content.
    pub(super) fn quarantine_note(&self, digest: &Digest) -> PathBuf {
        self.quarantine(digest).with_extension("json")
    }

    pub(super) fn temporary(&self) -> PathBuf {
        self.temporary_dir().join(Uuid::new_v4().to_string())
    }

    pub(super) fn repositories(&self) -> PathBuf {
        self.content.join("repositories")
    }

    pub(super) fn blobs(&self) -> PathBuf {
        self.content.join("blobs")
    }

    /// Bytes of a blob or manifest, stored under the SHA-256 alone; other digests are links to it.
    pub(super) fn data(&self, digest: &Digest) -> PathBuf {
        let hex = digest.hex();
        let below = format!("{}/{}/{hex}/data", digest.algorithm().as_str(), &hex[..2]);
        self.blobs().join(below)
    }

    pub(super) fn layers(&self, repository: &Repository) -> PathBuf {
        self.repository(repository).join("_layers")
    }

    pub(super) fn layer_link(&self, repository: &Repository, digest: &Digest) -> PathBuf {
        self.layers(repository).join(link(digest))
    }

    pub(super) fn manifests(&self, repository: &Repository) -> PathBuf {
        self.repository(repository).join("_manifests")
    }

    pub(super) fn revisions(&self, repository: &Repository) -> PathBuf {
        self.manifests(repository).join("revisions")
    }

    pub(super) fn revision_link(&self, repository: &Repository, digest: &Digest) -> PathBuf {
        self.revisions(repository).join(link(digest))
    }

    /// A manifest of schema 1 with its signatures; like distribution, the file under its digest has none.
    pub(super) fn signed(&self, repository: &Repository, digest: &Digest) -> PathBuf {
        self.revision_link(repository, digest)
            .with_file_name("signed")
    }

    pub(super) fn tags(&self, repository: &Repository) -> PathBuf {
        self.manifests(repository).join("tags")
    }

    pub(super) fn tag(&self, repository: &Repository, tag: &Tag) -> PathBuf {
        self.tags(repository).join(tag.as_str())
    }

    pub(super) fn tag_current(&self, repository: &Repository, tag: &Tag) -> PathBuf {
        self.tag(repository, tag).join("current/link")
    }

    /// The history of a tag's digests.
    pub(super) fn tag_digests(&self, repository: &Repository, tag: &Tag) -> PathBuf {
        self.tag(repository, tag).join("index")
    }

    pub(super) fn tag_history(
        &self,
        repository: &Repository,
        tag: &Tag,
        digest: &Digest,
    ) -> PathBuf {
        self.tag_digests(repository, tag).join(link(digest))
    }

    pub(super) fn uploads(&self, repository: &Repository) -> PathBuf {
        self.repository(repository).join("_uploads")
    }

    pub(super) fn upload(&self, repository: &Repository, upload: Uuid) -> PathBuf {
        self.uploads(repository).join(upload.to_string())
    }

    pub(super) fn repository(&self, repository: &Repository) -> PathBuf {
        self.repositories().join(repository.as_str())
    }
}

fn link(digest: &Digest) -> String {
    format!("{}/{}/link", digest.algorithm().as_str(), digest.hex())
}
