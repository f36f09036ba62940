//! Audit of a folder: content, links, tags and the needs of manifests are compared with each other.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::examine::examine;
use super::inner::DiskInner;
use super::layout::FolderLayout;
use super::{compare, contents, scan};
use crate::{Result, StoreError};
use oci::{Algorithm, Digest, Manifest, Repository, Tag};

/// Contents per page.
const PAGE: usize = 1024;
const DOING: &str = "reading the storage folder";

/// Counts of an audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Audited {
    /// Blobs and manifests.
    pub contents: u64,
    /// Units: bytes. Of blobs and manifests.
    pub bytes: u64,
    /// Repositories.
    pub repositories: u64,
    /// Links in repositories.
    pub links: u64,
}

/// A defect of the folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Its kind.
    pub kind: FaultKind,
    /// The repository; `None` for content as such.
    pub repository: Option<Repository>,
    /// A digest, or a path below the folder.
    pub what: String,
    /// The defect, and its remedy.
    pub why: String,
}

/// Kinds of defects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultKind {
    /// Bytes whose digest differs from their name.
    Damaged,
    /// A link whose content is malformed or differs from its name.
    Link,
    /// A link or a tag whose target does not exist.
    Dangling,
    /// Content that a manifest needs and its repository does not have.
    Missing,
    /// Links that the index does not have yet: harmless, since the next start adopts them.
    Unindexed,
    /// Content without a repository: harmless garbage.
    Orphaned,
}

pub(super) fn audit(inner: &DiskInner, found: impl FnMut(Fault)) -> Result<Audited> {
    let mut audit = Audit {
        inner,
        found,
        audited: Audited::default(),
        linked: HashSet::new(),
    };
    // Links first: the holders of content are determined by the folder, not by the index.
    for repository in scan::repositories(inner.layout(), || true)? {
        audit.audited.repositories += 1;
        audit.repository(&repository)?;
    }
    audit.contents()?;
    Ok(audit.audited)
}

struct Audit<'a, F> {
    inner: &'a DiskInner,
    found: F,
    audited: Audited,
    /// Targets of all links.
    linked: HashSet<Digest>,
}

impl<F: FnMut(Fault)> Audit<'_, F> {
    fn layout(&self) -> &FolderLayout {
        self.inner.layout()
    }

    fn report(
        &mut self,
        kind: FaultKind,
        repository: Option<&Repository>,
        what: impl Into<String>,
        why: impl Into<String>,
    ) {
        (self.found)(Fault {
            kind,
            repository: repository.cloned(),
            what: what.into(),
            why: why.into(),
        });
    }

    fn contents(&mut self) -> Result<()> {
        let mut after = None;
        loop {
            let page = contents::list(self.inner, after.as_ref(), PAGE)?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = Some(last.digest.clone());
            for content in page {
                // Missing content is reported by its links.
                let Some(size) = content.size else { continue };
                self.audited.contents += 1;
                self.audited.bytes += size;
                let digest = content.digest;
                if let Some(condemned) = examine(self.layout(), &digest, || true)? {
                    self.report(FaultKind::Damaged, None, digest.to_string(), condemned.why);
                }
                if !self.linked.contains(&digest) {
                    self.report(
                        FaultKind::Orphaned,
                        None,
                        digest.to_string(),
                        "no repository has it",
                    );
                }
            }
        }
    }

    fn repository(&mut self, repository: &Repository) -> Result<()> {
        let (layers, revisions) = (
            self.layout().layers(repository),
            self.layout().revisions(repository),
        );
        if compare::differs(&self.inner.shared, repository)? {
            let why = "the index has other links of it: the next start adopts them, or `atoll registry reindex`";
            self.report(FaultKind::Unindexed, Some(repository), "links", why);
        }
        self.links(repository, &layers)?;
        for canonical in self.links(repository, &revisions)? {
            // A manifest that cannot be read is reported with its content.
            if let Ok(Some(manifest)) = scan::manifest(self.layout(), &canonical) {
                self.manifest(repository, &manifest);
            }
        }
        let tags = self.layout().tags(repository);
        for name in scan::folders(&tags).map_err(StoreError::io(DOING))? {
            if let Ok(tag) = name.parse::<Tag>() {
                self.tag(repository, &tag)?;
            }
        }
        Ok(())
    }

    /// Targets of the links below a folder.
    fn links(&mut self, repository: &Repository, folder: &Path) -> Result<Vec<Digest>> {
        let mut found = Vec::new();
        for algorithm in scan::folders(folder).map_err(StoreError::io(DOING))? {
            let below = folder.join(&algorithm);
            for hex in scan::folders(&below).map_err(StoreError::io(DOING))? {
                let path = below.join(&hex).join("link");
                if let Ok(name) = format!("{algorithm}:{hex}").parse::<Digest>() {
                    found.extend(self.link(repository, &path, &name)?);
                }
            }
        }
        Ok(found)
    }

    fn link(
        &mut self,
        repository: &Repository,
        path: &Path,
        name: &Digest,
    ) -> Result<Option<Digest>> {
        // A removed link leaves its folder.
        if !path.exists() {
            return Ok(None);
        }
        self.audited.links += 1;
        let Some(to) = scan::link(path)? else {
            let why = "it holds no digest; push the content again";
            self.report(FaultKind::Link, Some(repository), self.shown(path), why);
            return Ok(None);
        };
        // Only a SHA-512 can be an alias.
        if name.algorithm() == Algorithm::Sha256 && to != *name {
            let why = format!("it holds {to}; push the content again");
            self.report(FaultKind::Link, Some(repository), self.shown(path), why);
            return Ok(None);
        }
        if !self.layout().data(&to).is_file() {
            let why = format!("{to} is not there; push it again");
            self.report(FaultKind::Dangling, Some(repository), self.shown(path), why);
            return Ok(None);
        }
        self.linked.insert(to.clone());
        Ok(Some(to))
    }

    fn manifest(&mut self, repository: &Repository, manifest: &Manifest) {
        let blobs = manifest.required_blobs().map(|digest| {
            let link = self.layout().layer_link(repository, digest);
            (digest, link)
        });
        let manifests = manifest.required_manifests().map(|digest| {
            let link = self.layout().revision_link(repository, digest);
            (digest, link)
        });
        let needed: Vec<(&Digest, PathBuf)> = blobs.chain(manifests).collect();
        for (digest, link) in needed {
            if !link.is_file() {
                let why = format!("manifest {} needs it; push it again", manifest.digest);
                self.report(
                    FaultKind::Missing,
                    Some(repository),
                    digest.to_string(),
                    why,
                );
            }
        }
    }

    fn tag(&mut self, repository: &Repository, tag: &Tag) -> Result<()> {
        let path = self.layout().tag_current(repository, tag);
        if !path.is_file() {
            return Ok(());
        }
        self.audited.links += 1;
        let why = match scan::link(&path)? {
            None => (
                FaultKind::Link,
                "it holds no digest; push the tag again".to_owned(),
            ),
            Some(to) if !self.layout().revision_link(repository, &to).is_file() => {
                let why = format!("the repository has no manifest {to}; push the tag again");
                (FaultKind::Dangling, why)
            }
            Some(_) => return Ok(()),
        };
        self.report(why.0, Some(repository), self.shown(&path), why.1);
        Ok(())
    }

    fn shown(&self, path: &Path) -> String {
        let root = self.layout().root();
        path.strip_prefix(root)
            .unwrap_or(path)
            .display()
            .to_string()
    }
}
