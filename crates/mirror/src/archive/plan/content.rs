//! The members of a set, in their order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use bytes::Bytes;
use model::Error;
use oci::{Digest, Manifest, Repository};

use super::extra::Extra;
use crate::archive::member::{MemberKind, PlannedMember};
use crate::archive::name::{self, ArchiveFormat, RESERVED};
use crate::archive::storage_tree::TreeFile;
use crate::content::{ImageContent, ResolvedImage};

/// A blob whose bytes are on this machine.
#[derive(Debug, Clone)]
pub enum LocalBlob {
    Bytes(Bytes),
    File(PathBuf),
}

/// Members without their places.
#[derive(Debug)]
pub(super) struct Drafts<'a> {
    format: ArchiveFormat,
    pub(super) members: Vec<PlannedMember>,
    /// Manifests of images, in the order of insertion.
    manifests: Vec<&'a Manifest>,
    /// Digests, by the names of manifests and tags.
    names: BTreeMap<String, &'a Digest>,
}

impl<'a> Drafts<'a> {
    pub(super) fn new(format: ArchiveFormat) -> Self {
        Self {
            format,
            members: Vec::new(),
            manifests: Vec::new(),
            names: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, extra: Extra) {
        let Extra {
            path,
            kind,
            size,
            digest,
        } = extra;
        self.members.push(PlannedMember {
            path,
            kind,
            size,
            digest,
            start: 0,
            offset: 0,
        });
    }

    /// In the order of their paths, each after its folders.
    pub(super) fn add_extras(&mut self, extras: Vec<Extra>) -> Result<(), Error> {
        let of_all = self.format.folders().iter();
        let of_all = of_all.map(|&folder| (folder.to_owned(), directory(folder)));
        let mut sorted: BTreeMap<_, _> = of_all.collect();
        for extra in extras {
            check(&extra.path)?;
            for (end, _) in extra.path.match_indices('/') {
                let folder = &extra.path[..=end];
                sorted.insert(folder.to_owned(), directory(folder));
            }
            if let Some(other) = sorted.insert(extra.path.clone(), extra) {
                return Err(Error::conflict(format!(
                    "two files are to be {} in the archive",
                    other.path
                )));
            }
        }
        for extra in sorted.into_values() {
            self.add(extra);
        }
        Ok(())
    }

    /// Manifests and tags of all images, then their blobs in the order in which they are needed.
    pub(super) fn add_images(
        &mut self,
        content: &'a ImageContent,
        local: &BTreeMap<Digest, LocalBlob>,
        carried: &BTreeSet<Digest>,
    ) -> Result<(), Error> {
        let format = self.format;
        for image in &content.images {
            self.add_manifests(image, content)?;
        }
        // Repositories of v1 have their manifests besides, those of v2 have links alone.
        let mut seen = match format {
            ArchiveFormat::V1 => carried.clone(),
            ArchiveFormat::V2 { .. } => BTreeSet::new(),
        };
        let manifests = std::mem::take(&mut self.manifests);
        for manifest in &manifests {
            if seen.insert(manifest.digest.clone()) {
                let path = format.blob(&manifest.digest);
                self.add(Extra::inline(path, manifest.bytes.clone()));
            }
        }
        seen.extend(carried.iter().cloned());
        for digest in manifests
            .iter()
            .flat_map(|it| it.blobs())
            .map(|it| &it.digest)
        {
            // Non-distributable blobs are absent.
            if let Some(blob) = content.blobs.get(digest)
                && seen.insert(digest.clone())
            {
                let path = format.blob(digest);
                self.add(match local.get(digest) {
                    Some(LocalBlob::Bytes(bytes)) => Extra::inline(path, bytes.clone()),
                    Some(LocalBlob::File(file)) => Extra::local(path, file.clone())?,
                    None => Extra::blob(path, digest.clone(), blob.size),
                });
            }
        }
        Ok(())
    }

    fn add_manifests(
        &mut self,
        image: &'a ResolvedImage,
        content: &'a ImageContent,
    ) -> Result<(), Error> {
        let repository = &image.wanted.repository;
        let manifests = content.manifests_of(&image.digest);
        if manifests.is_empty() {
            return Err(Error::not_found("manifest", image.pinned()));
        }
        for manifest in manifests {
            let path = name::manifest(repository, &manifest.digest);
            if self.names.insert(path.clone(), &manifest.digest).is_none() {
                self.add_manifest(path, repository, manifest, content);
            }
        }
        let path = name::manifest(repository, &image.wanted.tag);
        match self.names.insert(path.clone(), &image.digest) {
            None => self.add_tag(path, image),
            Some(other) if *other == image.digest => {}
            Some(other) => {
                let tag = &image.wanted.tag;
                let reason = format!(
                    "{other} and {} are both to be {repository}:{tag}",
                    image.pinned()
                );
                return Err(Error::conflict(reason));
            }
        }
        Ok(())
    }

    /// Adds a manifest of a repository: its bytes, or a link to them and to its blobs.
    fn add_manifest(
        &mut self,
        path: String,
        repository: &Repository,
        manifest: &'a Manifest,
        content: &'a ImageContent,
    ) {
        if self.format == ArchiveFormat::V1 {
            self.add(Extra::inline(path, manifest.bytes.clone()));
            self.manifests.push(manifest);
            return;
        }
        self.add_link(
            &TreeFile::Manifest(repository.clone(), manifest.digest.clone()),
            &manifest.digest,
        );
        for blob in manifest.blobs() {
            let link = TreeFile::Layer(repository.clone(), blob.digest.clone());
            let path = link.path();
            if content.blobs.contains_key(&blob.digest)
                && self.names.insert(path, &blob.digest).is_none()
            {
                self.add_link(&link, &blob.digest);
            }
        }
        self.manifests.push(manifest);
    }

    fn add_tag(&mut self, path: String, image: &ResolvedImage) {
        if self.format == ArchiveFormat::V1 {
            return self.add(symlink(path, &image.digest));
        }
        let (repository, tag) = (&image.wanted.repository, &image.wanted.tag);
        let digest = &image.digest;
        let current = TreeFile::Tag(repository.clone(), tag.clone());
        let history = TreeFile::TagHistory(repository.clone(), tag.clone(), digest.clone());
        self.add_link(&current, digest);
        self.add_link(&history, digest);
    }

    fn add_link(&mut self, link: &TreeFile, digest: &Digest) {
        self.add(Extra::inline(link.path(), digest.to_string()));
    }
}

fn check(path: &str) -> Result<(), Error> {
    let wrong = |reason| Error::invalid("path in the archive", format!("{path:?}: {reason}"));
    if path.split('/').any(|part| ["", ".", ".."].contains(&part)) {
        return Err(wrong("it is no plain relative path"));
    }
    if path
        .split('/')
        .next()
        .is_some_and(|top| RESERVED.contains(&top))
    {
        return Err(wrong("that folder is reserved for images"));
    }
    Ok(())
}

fn directory(path: &str) -> Extra {
    Extra {
        path: path.to_owned(),
        kind: MemberKind::Directory,
        size: 0,
        digest: None,
    }
}

fn symlink(path: String, target: &Digest) -> Extra {
    Extra {
        path,
        kind: MemberKind::Symlink(target.to_string()),
        size: 0,
        digest: None,
    }
}
