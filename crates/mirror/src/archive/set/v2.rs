//! Archives of the peer's v2, read as a set of a single run without history: the images that its configuration selects, under
//! the names that v2 gives them.
//!
//! Each archive has the whole tree of its cache, with the links of all tags, and the bytes of the new blobs alone. Images
//! without a manifest are in an archive before it.
//!
//! Source: oc-mirror v2, `internal/pkg/archive` and the collectors of its mode from disk to registry.

mod catalogs;
mod charts;
mod releases;
mod select;
mod selection;
mod tree;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use model::Error;
use model::image_set::ImageSet;
use model::mirror_metadata::{Association, MirrorMetadata};
use model::time::Timestamp;
use oci::{Digest, Manifest, Repository, Tag};
use oci_client::signature::Signatures;
use uuid::Uuid;

use self::select::select;
use self::selection::Selection;
use self::tree::StorageTree;
use super::{Set, Spot};
use crate::archive::name;
use crate::archive::set::locate::Located;
use crate::archive::storage_tree::{self, TreeFile};
use crate::archive::v2_paths::{self, CHARTS, CONFIGURATION, HISTORY, SIGNATURES};
use crate::config::{self, Configuration};
use crate::content::ResolvedImage;
use crate::{helm, history};
use oci::artifact_tag;

const CONFIGURATION_LIMIT_BYTES: u64 = 16 << 20;
/// Some four million digests. Units: bytes.
const HISTORY_LIMIT_BYTES: u64 = 256 << 20;
const SIGNATURE_LIMIT_BYTES: u64 = 1 << 20;

/// The configuration of an archive.
struct ArchivedConfiguration {
    set: ImageSet,
    /// Time of the run; 0 where the name does not say it. Units: seconds since 1970.
    time: i64,
}

impl Set {
    /// Opens an archive of v2.
    ///
    /// Blocking. Errors: Invalid – it lacks the configuration, or a file is malformed or damaged; Internal – it cannot be
    /// read; those of the web server.
    pub(super) fn open_v2(located: &Located) -> Result<Self, Error> {
        let mut set = Self::new(MirrorMetadata::new(Uuid::nil(), true));
        set.take_headers(located)?;
        let tree = StorageTree::read(&set)?;
        let layers = set.name_content();
        set.take_history(&layers)?;
        let configured = set.configuration()?;
        let selection = select(&set, &tree, &configured.set.mirror)?;
        let Selection { images, absent, .. } = selection;
        set.absent = absent;
        let mut archived = ArchivedV2 {
            tree: &tree,
            associations: Vec::new(),
            previous: Vec::new(),
            seen: BTreeSet::new(),
        };
        for image in images {
            archived.add(&mut set, &image)?;
        }
        let ArchivedV2 {
            associations,
            previous,
            ..
        } = archived;
        let past_associations = [associations.clone(), previous].concat();
        let metadata = &mut set.metadata;
        metadata.past_mirror.sequence = 1;
        metadata.past_mirror.timestamp = configured.time;
        metadata.past_mirror.mirror = configured.set.mirror;
        metadata.past_mirror.associations = associations;
        metadata.past_associations = past_associations;
        let stored = serde_json::to_vec(&set.metadata);
        set.stored = stored
            .map_err(|e| Error::internal("writing metadata", e))?
            .into();
        Ok(set)
    }

    /// Gives charts and the content of a storage tree the names that they have in archives without one. Answers which
    /// repositories have each blob.
    pub(super) fn name_content(&mut self) -> BTreeMap<Digest, BTreeSet<Repository>> {
        let mut layers: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        let charts = self.below(CHARTS).map(|(path, _)| path.to_owned());
        for path in charts.collect::<Vec<_>>() {
            let name = path.trim_start_matches(CHARTS);
            self.rename(&path, format!("{}{name}", helm::FOLDER));
        }
        let files = self.below(storage_tree::ROOT);
        let files = files.filter_map(|(path, _)| Some((TreeFile::parse(path)?, path.to_owned())));
        // Blobs are in front of the manifests among them.
        for (file, path) in files.collect::<Vec<_>>() {
            match file {
                TreeFile::Blob(digest) => self.rename(&path, name::blob(&digest)),
                TreeFile::Manifest(repository, digest) => {
                    let named = name::manifest(&repository, &digest);
                    self.rename(&name::blob(&digest), named);
                }
                TreeFile::Tag(repository, tag) => self.add_link(&repository, &tag),
                TreeFile::Layer(repository, digest) => {
                    layers.entry(digest).or_default().insert(repository);
                }
                TreeFile::TagHistory(..) => {}
            }
        }
        layers
    }

    /// Gives a member a further name.
    fn rename(&mut self, path: &str, name: String) {
        if let Some(spot) = self.members.get(path).cloned() {
            self.members.insert(name, spot);
        }
    }

    /// Reads which blobs previous archives had.
    pub(super) fn take_history(
        &mut self,
        layers: &BTreeMap<Digest, BTreeSet<Repository>>,
    ) -> Result<(), Error> {
        let files: Vec<_> = self.below(HISTORY).map(|(_, place)| place).collect();
        for place in files {
            let bytes = place.read(HISTORY_LIMIT_BYTES)?;
            let lines = String::from_utf8_lossy(&bytes);
            for digest in lines.lines().filter_map(|line| line.trim().parse().ok()) {
                let there = layers.get(&digest).cloned().unwrap_or_default();
                self.previous_blobs.insert(digest, there);
            }
        }
        Ok(())
    }

    /// Signatures of releases, as the workspace has them: each in a file with the digest in its name.
    ///
    /// Blocking. Errors: Internal – the archive cannot be read.
    pub(crate) fn detached_signatures(&self) -> Result<Vec<Signatures>, Error> {
        let mut found: BTreeMap<Digest, Vec<Bytes>> = BTreeMap::new();
        for (path, place) in self.below(SIGNATURES) {
            if let Some(digest) = v2_paths::signed(path) {
                let signature = place.read(SIGNATURE_LIMIT_BYTES)?;
                found.entry(digest).or_default().push(signature);
            }
        }
        let signed = found.into_iter();
        let signed = signed.map(|(digest, signatures)| Signatures { digest, signatures });
        Ok(signed.collect())
    }

    fn configuration(&self) -> Result<ArchivedConfiguration, Error> {
        let Some((path, place)) = self.below(CONFIGURATION).last() else {
            let files = self.files.iter().map(ToString::to_string);
            let files: Vec<_> = files.collect();
            let reason = "the configuration, isc_<time>, is not in this archive of oc-mirror v2: a file of it is missing";
            return Err(Error::invalid(files.join(", "), reason));
        };
        let bytes = place.read(CONFIGURATION_LIMIT_BYTES)?;
        match config::parse(&bytes) {
            Ok(Configuration::Mirror(set)) => {
                let time = path.trim_start_matches(CONFIGURATION);
                let time = time.parse::<Timestamp>().map_or(0, |it| it.timestamp());
                Ok(ArchivedConfiguration { set, time })
            }
            Ok(Configuration::Delete(_)) => {
                let reason =
                    "expected an ImageSetConfiguration, found a DeleteImageSetConfiguration";
                Err(Error::invalid(path.to_owned(), reason))
            }
            Err(problems) => Err(Error::invalid(path.to_owned(), problems.to_string())),
        }
    }

    /// Adds a tag: the tree has it, or its image is published under another one.
    fn add_link(&mut self, repository: &Repository, tag: &Tag) {
        let path = name::manifest(repository, tag);
        self.members.entry(path).or_insert(Spot {
            file: 0,
            offset: 0,
            size: 0,
            is_link: true,
        });
    }
}

/// The images of an archive, and those of archives before it.
struct ArchivedV2<'a> {
    tree: &'a StorageTree,
    associations: Vec<Association>,
    previous: Vec<Association>,
    /// Keys of associations.
    seen: BTreeSet<(String, String, String)>,
}

impl ArchivedV2<'_> {
    /// Adds an image, with the artifacts that are attached to it and its parts.
    fn add(&mut self, set: &mut Set, image: &ResolvedImage) -> Result<(), Error> {
        let manifests = manifests_of(set, &image.digest)?;
        self.associate(set, image, &manifests);
        let digests = manifests.iter().map(|manifest| &manifest.digest);
        let subjects: BTreeSet<_> = digests.chain([&image.digest]).collect();
        for subject in subjects {
            for suffix in artifact_tag::SUFFIXES {
                let attached = self
                    .tree
                    .attached(&image.wanted.repository, subject, suffix);
                let Some((tag, digest)) = attached else {
                    continue;
                };
                let mut artifact = image.clone();
                artifact.digest = digest;
                artifact.wanted.source.tag = Some(tag.clone());
                artifact.wanted.source.digest = None;
                artifact.wanted.tag = tag;
                let manifests = manifests_of(set, &artifact.digest)?;
                self.associate(set, &artifact, &manifests);
            }
        }
        Ok(())
    }

    fn associate(&mut self, set: &mut Set, image: &ResolvedImage, manifests: &[Manifest]) {
        let ResolvedImage { wanted, digest } = image;
        let named = |manifest: Option<&Manifest>| Association {
            name: history::name(image),
            path: wanted.repository.to_string(),
            id: digest.to_string(),
            tag_symlink: wanted.tag.to_string(),
            kind: wanted.kind,
            manifest_digests: manifest.map(|it| parts(it, manifests)).unwrap_or_default(),
            layer_digests: manifest.map(history::layers).unwrap_or_default(),
        };
        set.add_link(&wanted.repository, &wanted.tag);
        let Some((whole, others)) = manifests.split_first() else {
            self.previous.push(named(None));
            return;
        };
        let all = others.iter().map(|part| Association {
            name: part.digest.to_string(),
            path: wanted.repository.to_string(),
            id: part.digest.to_string(),
            tag_symlink: String::new(),
            kind: wanted.kind,
            manifest_digests: parts(part, manifests),
            layer_digests: history::layers(part),
        });
        for it in [named(Some(whole))].into_iter().chain(all) {
            let key = (it.name.clone(), it.path.clone(), it.tag_symlink.clone());
            if self.seen.insert(key) {
                self.associations.push(it);
            }
        }
    }
}

/// The manifest of an image and those of its parts, as far as the archive has them.
fn manifests_of(set: &Set, digest: &Digest) -> Result<Vec<Manifest>, Error> {
    let mut found: Vec<Manifest> = Vec::new();
    let mut open = vec![digest.clone()];
    while let Some(next) = open.pop() {
        let is_known = found.iter().any(|manifest| manifest.digest == next);
        let Some(place) = set.blob(&next).filter(|_| !is_known) else {
            continue;
        };
        let manifest = place.manifest(&next)?;
        open.extend(manifest.required_manifests().cloned());
        found.push(manifest);
    }
    Ok(found)
}

/// The parts of an index that the archive has.
fn parts(manifest: &Manifest, there: &[Manifest]) -> Vec<String> {
    let is_there = |digest: &&Digest| there.iter().any(|it| it.digest == **digest);
    let parts = manifest.required_manifests().filter(is_there);
    parts.map(Digest::to_string).collect()
}
