//! An archive set to be read: its files, and the places of its members.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::ops::Bound;
use std::path::Path;

use bytes::Bytes;
use model::Error;
use model::mirror_metadata::MirrorMetadata;
use oci::{Digest, Repository};
use oci_client::client::BlobSource;

use self::locate::Located;
use super::file::{ArchiveFile, failed};
use super::index::{self, SetIndex};
use super::name::{self, INDEX, METADATA};
use super::read::{FilePlace, METADATA_LIMIT_BYTES, metadata_of};
use super::source::ArchiveSource;
use super::storage_tree;
use super::walk::{self, FoundMember, walk};
use crate::blobs::BlobProvider;
use crate::content::SelectedImage;

mod content;
pub(super) mod locate;
mod v2;

/// The files of one run, of this tool or of the peer.
#[derive(Debug, Clone)]
pub struct Set {
    metadata: MirrorMetadata,
    stored: Bytes,
    files: Vec<ArchiveFile>,
    members: BTreeMap<String, Spot>,
    /// Digests from the index, of members whose names lack theirs.
    digests: BTreeMap<String, Digest>,
    /// Blobs of previous archives whose metadata does not list them, with the repositories that have each.
    previous_blobs: BTreeMap<Digest, BTreeSet<Repository>>,
    /// Selected images that the run could not mirror.
    absent: Vec<SelectedImage>,
}

#[derive(Debug, Clone)]
struct Spot {
    /// Index into the files.
    file: usize,
    offset: u64,
    size: u64,
    is_link: bool,
}

impl Set {
    /// Opens the set in a folder, or the one that a file belongs to. Content is not verified.
    ///
    /// Blocking. Errors: NotFound – no archives; Invalid – several sets, a file of another one, a missing or truncated
    /// file, no archive of images; Internal – it cannot be read; those of the web server.
    pub fn open(source: impl Into<ArchiveSource>) -> Result<Self, Error> {
        let located = Located::find(&source.into())?;
        located.check_numbers()?;
        let head = match head(&located)? {
            FirstMembers::Own(head) => head,
            FirstMembers::V2 => return Self::open_v2(&located),
        };
        let stored = head.metadata.read(METADATA_LIMIT_BYTES)?;
        let metadata = metadata_of(&stored)?;
        located.check_sequence(metadata.past_mirror.sequence)?;
        let mut set = Self::new(metadata);
        set.stored = stored;
        match head.index {
            Some(place) => {
                let index = SetIndex::parse(&place.read(index::LIMIT_BYTES)?)?;
                set.take_index(&index, &located)?;
            }
            None => set.take_headers(&located)?,
        }
        // Archives of ours in the manner of v2.
        let layers = set.name_content();
        set.take_history(&layers)?;
        Ok(set)
    }

    fn new(metadata: MirrorMetadata) -> Self {
        Self {
            metadata,
            stored: Bytes::new(),
            files: Vec::new(),
            members: BTreeMap::new(),
            digests: BTreeMap::new(),
            previous_blobs: BTreeMap::new(),
            absent: Vec::new(),
        }
    }

    /// The metadata.
    pub fn metadata(&self) -> &MirrorMetadata {
        &self.metadata
    }

    /// The metadata, serialised.
    pub fn stored_metadata(&self) -> &Bytes {
        &self.stored
    }

    /// The files, the first one first.
    pub fn files(&self) -> &[ArchiveFile] {
        &self.files
    }

    /// Place of a file of the archive.
    pub fn place(&self, path: &str) -> Option<FilePlace> {
        let spot = self.members.get(path)?;
        let is_file = !spot.is_link && !path.ends_with('/');
        is_file.then(|| self.place_of(spot))
    }

    /// Extracts a file of the archive into `to`.
    ///
    /// Blocking. Errors: NotFound – the archive does not have it; Internal – it cannot be read or written.
    pub(crate) fn extract(&self, path: &str, to: &Path) -> Result<(), Error> {
        let place = self.place(path);
        let place = place.ok_or_else(|| Error::not_found("file of the archive", path))?;
        let copied = place.open().and_then(|mut from| {
            let mut copy = || io::copy(&mut from, &mut File::create(to)?);
            copy().map_err(|e| failed(format!("writing {}", to.display()), e))
        });
        copied.map(drop)
    }

    /// Place of a blob or manifest; none when a previous archive of the set has it.
    pub fn blob(&self, digest: &Digest) -> Option<FilePlace> {
        self.place(&name::blob(digest))
    }

    /// Blobs of previous archives whose metadata does not list them, with the repositories that have each.
    pub(crate) fn previous_blobs(&self) -> &BTreeMap<Digest, BTreeSet<Repository>> {
        &self.previous_blobs
    }

    /// Selected images that the run could not mirror, where the archive says so: those of the peer's v2.
    pub(crate) fn absent(&self) -> &[SelectedImage] {
        &self.absent
    }

    /// Digests of all manifests, also of the entries of indexes.
    pub fn manifests(&self) -> impl Iterator<Item = Digest> {
        let digest = |path: &String| {
            let (_, id) = path.strip_prefix("v2/")?.split_once("/manifests/")?;
            id.parse().ok()
        };
        self.members.keys().filter_map(digest)
    }

    /// Compares members without a digest in their name with the index: metadata, pruned catalogs, charts, signatures.
    /// Readers of blobs and manifests compare those.
    ///
    /// Blocking. Errors: Invalid – a member is damaged; Internal – it cannot be read.
    pub fn check(&self) -> Result<(), Error> {
        for (path, digest) in &self.digests {
            if let Some(place) = self.place(path) {
                place.check(path, digest)?;
            }
        }
        Ok(())
    }

    /// The files below a folder, which is given with its slash, in the order of their paths.
    pub fn below(&self, folder: &str) -> impl Iterator<Item = (&str, FilePlace)> {
        let from = (Bound::Included(folder), Bound::Unbounded);
        let members = self.members.range::<str, _>(from);
        members
            .take_while(move |(path, _)| path.starts_with(folder))
            .filter(|(path, spot)| !spot.is_link && !path.ends_with('/'))
            .map(|(path, spot)| (path.as_str(), self.place_of(spot)))
    }

    fn place_of(&self, spot: &Spot) -> FilePlace {
        FilePlace {
            file: self.files[spot.file].clone(),
            offset: spot.offset,
            size: spot.size,
        }
    }

    fn has_link(&self, path: &str) -> bool {
        self.members.get(path).is_some_and(|spot| spot.is_link)
    }

    /// The first one of a name counts.
    fn insert(&mut self, file: usize, path: String, offset: u64, size: u64, is_link: bool) {
        let spot = Spot {
            file,
            offset,
            size,
            is_link,
        };
        self.members.entry(path).or_insert(spot);
    }

    fn take_index(&mut self, index: &SetIndex, located: &Located) -> Result<(), Error> {
        let MirrorMetadata {
            uid, past_mirror, ..
        } = &self.metadata;
        if (index.uid, index.sequence) != (*uid, past_mirror.sequence) {
            return Err(Error::invalid(
                INDEX,
                "it belongs to another set than the metadata",
            ));
        }
        for (number, file) in index.files.iter().enumerate() {
            let there = located.named(&file.name)?;
            check_file(there, file)?;
            self.files.push(there.clone());
            for member in &file.members {
                let end = member.offset.checked_add(member.size);
                if end.is_none_or(|end| end > file.size) {
                    let reason = format!("{} is outside of {}", member.path, file.name);
                    return Err(Error::invalid(INDEX, reason));
                }
                let is_link = member.target.is_some();
                // Nothing is read from links.
                let is_link_file = member.path.starts_with(storage_tree::ROOT);
                if name::promised(&member.path).is_none() && !is_link_file {
                    let digest = member.digest.clone();
                    self.digests
                        .extend(digest.map(|digest| (member.path.clone(), digest)));
                }
                self.insert(
                    number,
                    member.path.clone(),
                    member.offset,
                    member.size,
                    is_link,
                );
            }
        }
        Ok(())
    }

    fn take_headers(&mut self, located: &Located) -> Result<(), Error> {
        for (number, file) in located.files().enumerate() {
            self.files.push(file.clone());
            for found in walk::members(file)? {
                let is_link = found.target.is_some();
                if found.path == METADATA && self.members.contains_key(METADATA) {
                    self.check_same(&place(file, &found))?;
                }
                self.insert(number, found.path, found.offset, found.size, is_link);
            }
        }
        Ok(())
    }

    fn check_same(&self, other: &FilePlace) -> Result<(), Error> {
        let of = |metadata: &MirrorMetadata| (metadata.uid, metadata.past_mirror.sequence);
        let metadata = metadata_of(&other.read(METADATA_LIMIT_BYTES)?)?;
        if of(&metadata) == of(&self.metadata) {
            return Ok(());
        }
        let reason = format!(
            "it is of set {}, sequence {}, and another file of set {}, sequence {}: keep each set in a folder of its own",
            metadata.uid,
            metadata.past_mirror.sequence,
            self.metadata.uid,
            self.metadata.past_mirror.sequence
        );
        Err(Error::invalid(other.file.to_string(), reason))
    }
}

impl BlobProvider for Set {
    fn source(&self, digest: &Digest) -> Option<BlobSource> {
        self.blob(digest).map(|place| place.source())
    }
}

/// The metadata of a set; of our own archives, only the first member is read.
///
/// Blocking. Errors: as [`Set::open`], except those of later members.
pub fn describe(source: impl Into<ArchiveSource>) -> Result<MirrorMetadata, Error> {
    let located = Located::find(&source.into())?;
    match head(&located)? {
        FirstMembers::Own(head) => metadata_of(&head.metadata.read(METADATA_LIMIT_BYTES)?),
        FirstMembers::V2 => Set::open_v2(&located).map(|set| set.metadata),
    }
}

/// First members of a set, which show its format.
enum FirstMembers {
    /// Of this tool, or of the peer's v1.
    Own(SetHead),
    /// Of the peer's v2.
    V2,
}

/// First members of a set with metadata.
struct SetHead {
    metadata: FilePlace,
    index: Option<FilePlace>,
}

fn head(located: &Located) -> Result<FirstMembers, Error> {
    for file in located.files() {
        let (mut metadata, mut index, mut is_v2) = (None, None, false);
        walk(file, |found| {
            match found.path.as_str() {
                METADATA => metadata = Some(place(file, &found)),
                INDEX => index = Some(place(file, &found)),
                // Archives of ours in the manner of v2 have the metadata before these members.
                path => is_v2 |= metadata.is_none() && is_of_v2(path),
            }
            // In archives that others have packed again, it may be anywhere.
            Ok(!is_v2 && (metadata.is_none() || name::is_head(&found.path)))
        })?;
        if is_v2 {
            return Ok(FirstMembers::V2);
        }
        if let Some(metadata) = metadata {
            return Ok(FirstMembers::Own(SetHead { metadata, index }));
        }
    }
    let files = located.files().map(ToString::to_string);
    let files: Vec<_> = files.collect();
    Err(Error::invalid(
        files.join(", "),
        "metadata is not in archive",
    ))
}

/// Whether a member is of an archive of the peer's v2, and of no other.
fn is_of_v2(path: &str) -> bool {
    path.starts_with(storage_tree::ROOT)
}

/// Compares a file with its entry in the index, by size and first member.
fn check_file(there: &ArchiveFile, file: &index::IndexedFile) -> Result<(), Error> {
    let wrong = |reason: String| Error::invalid(there.to_string(), reason);
    let size = there.size();
    if size != file.size {
        let hint = "it was not copied completely, or is of another set";
        return Err(wrong(format!(
            "it has {size} bytes, {} are in the index: {hint}",
            file.size
        )));
    }
    let mut first = None;
    walk(there, |found| {
        if !index::is_own(&found.path) {
            first = Some((found.path, found.offset));
        }
        Ok(first.is_none())
    })?;
    let expected = file
        .members
        .first()
        .map(|member| (member.path.clone(), member.offset));
    if first == expected {
        return Ok(());
    }
    Err(wrong("its first member is not the one of the index: it is of another set, or two files were exchanged".into()))
}

pub(super) fn place(file: &ArchiveFile, found: &FoundMember) -> FilePlace {
    FilePlace {
        file: file.clone(),
        offset: found.offset,
        size: found.size,
    }
}
