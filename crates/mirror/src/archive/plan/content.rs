//! The members of a set, in their order.

use std::collections::{BTreeMap, BTreeSet};

use model::Error;
use oci::{Digest, Manifest};

use super::extra::Extra;
use crate::archive::member::{MemberKind, PlannedMember};
use crate::archive::name::{self, FOLDERS, RESERVED};
use crate::content::{ImageContent, ResolvedImage};

/// Members without their places.
#[derive(Debug, Default)]
pub(super) struct Drafts<'a> {
    pub(super) members: Vec<PlannedMember>,
    /// Manifests of images, in the order of insertion.
    manifests: Vec<&'a Manifest>,
    /// Digests, by the names of manifests and tags.
    names: BTreeMap<String, &'a Digest>,
}

impl<'a> Drafts<'a> {
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
        let of_all = FOLDERS.map(|folder| (folder.to_owned(), directory(folder)));
        let mut sorted = BTreeMap::from(of_all);
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
        carried: &BTreeSet<Digest>,
    ) -> Result<(), Error> {
        for image in &content.images {
            self.add_manifests(image, content)?;
        }
        let mut seen = carried.clone();
        let manifests = std::mem::take(&mut self.manifests);
        for manifest in &manifests {
            if seen.insert(manifest.digest.clone()) {
                let path = name::blob(&manifest.digest);
                self.add(Extra::inline(path, manifest.bytes.clone()));
            }
        }
        for digest in manifests
            .iter()
            .flat_map(|it| it.blobs())
            .map(|it| &it.digest)
        {
            // Non-distributable blobs are absent.
            if let Some(blob) = content.blobs.get(digest)
                && seen.insert(digest.clone())
            {
                self.add(Extra::blob(name::blob(digest), digest.clone(), blob.size));
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
                self.add(Extra::inline(path, manifest.bytes.clone()));
                self.manifests.push(manifest);
            }
        }
        let path = name::manifest(repository, &image.wanted.tag);
        match self.names.insert(path.clone(), &image.digest) {
            None => self.add(symlink(path, &image.digest)),
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
