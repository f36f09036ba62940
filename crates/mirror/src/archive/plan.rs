//! The layout of a set: the place of every byte, decided before anything is fetched, from sizes and digests alone.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use model::Error;
use model::mirror_metadata::MirrorMetadata;
use oci::{Algorithm, Digest, Hasher};
use uuid::Uuid;

use self::content::Drafts;
pub use self::content::LocalBlob;
pub use self::extra::Extra;
use super::header::{self, END_BYTES};
use super::index::{self, SetIndex};
use super::member::{MemberKind, PlannedFile, PlannedMember};
use super::name::{self, ArchiveFormat, INDEX, METADATA, SIGNATURE};
use super::read::metadata_of;
use super::signature::{SIGNATURE_BYTES, Signer};
use super::v2_paths;
use crate::content::ImageContent;

mod content;
mod extra;

/// Size of a file where the configuration names none. Units: GiB. Source: the peer.
const DEFAULT_GIB: u64 = 500;
/// Tries to find out how long the index is, which has offsets that depend on it; the second one does.
const INDEX_TRIES: usize = 4;
/// Digits that offsets may gain when the index precedes them.
const DIGITS: usize = 4;

/// Content of a set.
#[derive(Debug, Clone)]
pub struct Contents<'a> {
    pub format: ArchiveFormat,
    /// The metadata, serialised.
    pub metadata: Bytes,
    /// Members besides images.
    pub extras: Vec<Extra>,
    /// The images.
    pub content: &'a ImageContent,
    /// Blobs of the images whose bytes are on this machine; all others are fetched.
    pub local: &'a BTreeMap<Digest, LocalBlob>,
    /// Content of previous archives of the set: left out.
    pub carried: &'a BTreeSet<Digest>,
}

/// The files of a set.
#[derive(Debug, Clone)]
pub struct SetPlan {
    /// Of the metadata.
    pub uid: Uuid,
    /// Of the metadata.
    pub sequence: u64,
    /// In the order of their numbers; one at least.
    pub files: Vec<PlannedFile>,
    /// The time of all members: that of the run. Units: seconds since 1970.
    pub(super) mtime: u64,
}

/// The most that a file may take. `archive_size` is in GiB, as in the configuration. Units: bytes.
pub fn size_limit(archive_size: Option<u64>) -> u64 {
    let size = archive_size.filter(|size| *size > 0);
    size.unwrap_or(DEFAULT_GIB).saturating_mul(1 << 30)
}

impl SetPlan {
    /// Lays out a set in files of at most `limit` bytes: metadata, index, small members, then the blobs in the order of
    /// images.
    ///
    /// Errors: Invalid – malformed metadata, a member that fits into no file, a path that archives reserve; Conflict – two
    /// contents of one name; NotFound – an image without its manifest.
    pub fn new(contents: Contents<'_>, limit: u64, signer: Option<&Signer>) -> Result<Self, Error> {
        let Contents {
            format,
            metadata,
            extras,
            content,
            local,
            carried,
        } = contents;
        let MirrorMetadata {
            uid, past_mirror, ..
        } = metadata_of(&metadata)?;
        let mut drafts = Drafts::new(format);
        drafts.add(Extra::inline(METADATA, metadata));
        drafts.add(Extra::inline(INDEX, Bytes::new()));
        if signer.is_some() {
            drafts.add(Extra::inline(SIGNATURE, vec![0; SIGNATURE_BYTES]));
        }
        drafts.add_extras(extras)?;
        drafts.add_images(content, local, carried)?;
        let packer = Packer {
            format,
            sequence: past_mirror.sequence,
            mtime: u64::try_from(past_mirror.timestamp).unwrap_or_default(),
            limit,
            content,
        };
        let files = packer.indexed(uid, drafts.members, signer)?;
        Ok(Self {
            uid,
            sequence: packer.sequence,
            files,
            mtime: packer.mtime,
        })
    }

    /// Size of all files. Units: bytes.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    /// Members with the numbers of their files.
    pub(super) fn members(&self) -> impl Iterator<Item = (usize, &PlannedMember)> {
        let files = self.files.iter().enumerate();
        files.flat_map(|(number, file)| file.members.iter().map(move |member| (number, member)))
    }

    /// Equal for plans with the same content at the same places; inline content does not count.
    pub(super) fn layout(&self) -> Digest {
        let mut hasher = Hasher::new(Algorithm::Sha256);
        for (number, member) in self.members() {
            let PlannedMember {
                path,
                kind,
                size,
                offset,
                ..
            } = member;
            let blob = match kind {
                MemberKind::Blob(digest) => digest.to_string(),
                _ => String::new(),
            };
            // The name of a configuration has the time of the run, and its length does not depend on it.
            let path = match path.strip_prefix(v2_paths::CONFIGURATION) {
                Some(_) => v2_paths::CONFIGURATION,
                None => path,
            };
            let name = &self.files[number].name;
            hasher.update(format!("{name} {offset} {size} {blob} {path}\n").as_bytes());
        }
        hasher.finish()
    }
}

struct Packer<'a> {
    format: ArchiveFormat,
    sequence: u64,
    mtime: u64,
    limit: u64,
    content: &'a ImageContent,
}

impl Packer<'_> {
    /// Reserves room for the index, which precedes most members that it lists.
    fn indexed(
        &self,
        uid: Uuid,
        mut drafts: Vec<PlannedMember>,
        signer: Option<&Signer>,
    ) -> Result<Vec<PlannedFile>, Error> {
        let mut kept = 0;
        for _ in 0..INDEX_TRIES {
            drafts[1].size = kept as u64;
            let mut files = self.pack(&drafts)?;
            match SetIndex::of(uid, self.sequence, &files).to_bytes(kept) {
                Ok(bytes) => {
                    let first = &mut files[0].members;
                    if let Some(signer) = signer {
                        first[2].fill(signer.sign(&bytes).into());
                    }
                    first[1].fill(bytes);
                    return Ok(files);
                }
                Err(needed) => kept = needed + DIGITS * drafts.len() + 1,
            }
        }
        Err(Error::invalid(INDEX, "its length cannot be determined"))
    }

    fn pack(&self, drafts: &[PlannedMember]) -> Result<Vec<PlannedFile>, Error> {
        let mut files: Vec<PlannedFile> = Vec::new();
        for draft in drafts {
            let headers = header::bytes(draft, self.mtime)?.len() as u64;
            let needed = header::padded(draft.size).saturating_add(headers);
            let is_large = needed > self.limit.saturating_sub(END_BYTES);
            let is_allowed = self.format.allows_large_members() && !name::is_head(&draft.path);
            if (is_large && !is_allowed) || is_too_large(draft) {
                return Err(self.too_large(draft));
            }
            // A larger file has a member that fits into no other.
            let has_room = |file: &&mut PlannedFile| needed <= self.limit.saturating_sub(file.size);
            let number = files.len();
            let file = match files.last_mut().filter(has_room) {
                Some(file) => file,
                None if name::is_head(&draft.path) && number > 0 => {
                    return Err(self.too_large(draft));
                }
                None => files.push_mut(PlannedFile {
                    name: self.format.files(self.sequence).file_name(number),
                    members: Vec::new(),
                    size: END_BYTES,
                }),
            };
            let start = file.size - END_BYTES;
            file.size += needed;
            file.members.push(PlannedMember {
                start,
                offset: start + headers,
                ..draft.clone()
            });
        }
        Ok(files)
    }

    fn too_large(&self, draft: &PlannedMember) -> Error {
        let PlannedMember { path, size, .. } = draft;
        let user = match &draft.kind {
            MemberKind::Blob(digest) => self.content.images.iter().find(|image| {
                let manifests = self.content.manifests_of(&image.digest);
                manifests
                    .iter()
                    .any(|it| it.blobs().any(|blob| blob.digest == *digest))
            }),
            _ => None,
        };
        let user = user.map_or_else(String::new, |image| format!(" of image {}", image.pinned()));
        let reason = format!(
            "{path}{user} has {size} bytes and does not fit into a file of {} bytes: members are never split, choose a larger size",
            self.limit
        );
        Error::invalid("archiveSize", reason)
    }
}

impl PlannedMember {
    fn fill(&mut self, content: Bytes) {
        self.digest = Some(Digest::sha256(&content));
        self.kind = MemberKind::Inline(content);
    }
}

/// Readers refuse such an index.
fn is_too_large(draft: &PlannedMember) -> bool {
    draft.path == INDEX && draft.size > index::LIMIT_BYTES
}
