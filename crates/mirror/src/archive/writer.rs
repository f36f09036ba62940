//! Writes the files of a plan: small members at once, blobs as they arrive, several at a time.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::Error;
use oci::{Algorithm, Digest, Hasher};

use self::blob::BlobProgress;
use super::header;
use super::journal::{ArchiveJournal, JournalEntry, Records, Spot};
use super::parts::PartFiles;
use super::plan::{MemberKind, PlannedMember, SetPlan};
use super::read::HashingReader;
use super::space;
use super::takeover::{self, Offer};

mod blob;

pub use blob::BlobWriter;

/// The files of a set while they are written. Clones write the same files.
#[derive(Debug, Clone)]
pub struct ArchiveWriter(Arc<WriterState>);

/// An incomplete blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub digest: Digest,
    /// Units: bytes.
    pub size: u64,
    /// Bytes written. Units: bytes.
    pub written: u64,
}

#[derive(Debug)]
struct WriterState {
    plan: SetPlan,
    parts: PartFiles,
    state: Mutex<JournaledBlobs>,
}

#[derive(Debug)]
struct JournaledBlobs {
    journal: ArchiveJournal,
    blobs: BTreeMap<Digest, PlannedBlob>,
}

#[derive(Debug)]
struct PlannedBlob {
    size: u64,
    /// Its places; one at least. It is fetched into the first one.
    spots: Vec<Spot>,
    progress: BlobProgress,
}

impl ArchiveWriter {
    /// Resumes a stopped run with the same layout, takes over complete blobs of others, and writes all but the blobs.
    ///
    /// Blocking. Errors: Conflict – another run writes there, the medium is full, or a local file has changed since it was
    /// planned; Internal – it cannot be written.
    pub fn open(target: &Path, plan: SetPlan) -> Result<Self, Error> {
        let parts = PartFiles::open(target, &plan)?;
        let prepared =
            WriterState::prepare(&plan, &parts).map_err(|e| space::failed(target, plan.size(), e));
        let WriterRecovery {
            records,
            journal,
            offers,
            left,
        } = prepared?;
        space::check(target, left)?;
        let shared = WriterState::resume(plan, parts, records, journal)
            .map_err(|e| space::failed(target, left, e))?;
        shared.take_over(offers).map_err(|e| shared.failed(e))?;
        for (number, member) in shared.plan.members() {
            shared.write_small(number, member)?;
        }
        Ok(Self(Arc::new(shared)))
    }

    /// Blobs to fetch, in the order of their places.
    pub fn missing(&self) -> Vec<Missing> {
        let state = self.0.state();
        let mut missing: Vec<_> = state
            .blobs
            .iter()
            .filter_map(|(digest, blob)| {
                let missing = Missing {
                    digest: digest.clone(),
                    size: blob.size,
                    written: blob.progress.written()?,
                };
                Some((blob.spots[0], missing))
            })
            .collect();
        missing.sort_by_key(|(spot, _)| *spot);
        missing.into_iter().map(|(_, missing)| missing).collect()
    }

    /// Begins or resumes a blob; none when it is complete.
    ///
    /// Blocking: existing bytes are hashed again. Errors: NotFound – it is not planned; Conflict – another writer has it;
    /// Internal – it cannot be read.
    pub fn blob(&self, digest: &Digest) -> Result<Option<BlobWriter>, Error> {
        BlobWriter::open(&self.0, digest)
    }

    /// Makes everything durable, and renames the files; those of an older set with the same sequence are replaced. Until
    /// [`Self::forget`], the same plan finds the set complete.
    ///
    /// Blocking. Errors: Conflict – a blob is missing; Internal – it cannot be written.
    pub fn name(&self) -> Result<Vec<PathBuf>, Error> {
        if let [Missing { digest, .. }, others @ ..] = &self.missing()[..] {
            let reason = format!(
                "blob {digest} and {} others are not in the archive yet",
                others.len()
            );
            return Err(Error::conflict(reason));
        }
        let named = || {
            // Content is durable before the journal has the line, and the line before the first rename: a run that is stopped
            // between renames finds the line, takes the names back and repeats them.
            for number in 0..self.0.plan.files.len() {
                self.0.parts.file(number)?.sync_all()?;
            }
            self.0.state().journal.note_finishing()?;
            self.0.parts.name()
        };
        named().map_err(|e| self.0.failed(e))
    }

    /// Removes the state that a stopped run resumes from.
    ///
    /// Blocking. Errors: Internal – it cannot be removed.
    pub fn forget(self) -> Result<(), Error> {
        self.0.parts.forget().map_err(|e| self.0.failed(e))
    }

    /// [`Self::name`], and then [`Self::forget`].
    ///
    /// Errors: as these.
    pub fn finish(self) -> Result<Vec<PathBuf>, Error> {
        let files = self.name()?;
        self.forget().map(|()| files)
    }
}

/// State found before the first write.
struct WriterRecovery {
    records: Records,
    journal: ArchiveJournal,
    offers: BTreeMap<Digest, Offer>,
    /// Space still to be allocated, with that of the offers. Units: bytes.
    left: u64,
}

impl WriterState {
    fn prepare(plan: &SetPlan, parts: &PartFiles) -> io::Result<WriterRecovery> {
        let (records, journal) = ArchiveJournal::open(parts.folder())?;
        if records.is_finishing {
            parts.unname()?;
        }
        let blobs = wanted(plan, &records);
        let mut offers = BTreeMap::new();
        for folder in parts.others()? {
            for offer in takeover::offers(&folder)? {
                let blob = blobs.get(offer.digest());
                if blob
                    .is_some_and(|it| it.size == offer.size() && it.progress != BlobProgress::Whole)
                {
                    offers.insert(offer.digest().clone(), offer);
                }
            }
        }
        let gained = offers.values().map(Offer::size).sum();
        let left = left(plan, parts)?.saturating_sub(gained);
        Ok(WriterRecovery {
            records,
            journal,
            offers,
            left,
        })
    }

    fn resume(
        plan: SetPlan,
        parts: PartFiles,
        mut records: Records,
        mut journal: ArchiveJournal,
    ) -> io::Result<Self> {
        let mut lost = Vec::new();
        for (number, file) in plan.files.iter().enumerate() {
            if parts.prepare(number, file.size)? {
                lost.extend(
                    records
                        .blobs
                        .keys()
                        .filter(|spot| spot.0 == number)
                        .copied(),
                );
            }
        }
        if records.is_doubtful {
            lost.extend(doubtful(&records, &parts)?);
        }
        for spot in lost {
            if let Some(mut entry) = records.blobs.remove(&spot) {
                entry.written = 0;
                journal.note(spot, &entry)?;
            }
        }
        journal.note_boot()?;
        let blobs = wanted(&plan, &records);
        Ok(Self {
            plan,
            parts,
            state: Mutex::new(JournaledBlobs { journal, blobs }),
        })
    }

    /// Takes complete blobs over from unfinished files of other layouts, and removes those.
    fn take_over(&self, offers: BTreeMap<Digest, Offer>) -> io::Result<()> {
        for offer in offers.into_values() {
            if self.take(&offer)? {
                offer.give_up()?;
            }
        }
        self.parts
            .others()?
            .iter()
            .try_for_each(fs::remove_dir_all)?;
        self.settle()
    }

    fn take(&self, offer: &Offer) -> io::Result<bool> {
        let mut state = self.state();
        let JournaledBlobs { journal, blobs } = &mut *state;
        let Some(blob) = blobs.get_mut(offer.digest()) else {
            return Ok(false);
        };
        let (number, offset) = blob.spots[0];
        if !offer.copy(self.parts.file(number)?, offset)? {
            return Ok(false);
        }
        journal.note(blob.spots[0], &blob.entry(offer.digest(), blob.size))?;
        blob.progress = BlobProgress::Whole;
        Ok(true)
    }

    /// Copies complete blobs to their other places.
    fn settle(&self) -> io::Result<()> {
        let mut state = self.state();
        let JournaledBlobs { journal, blobs } = &mut *state;
        let is_whole =
            |blob: &PlannedBlob| blob.progress == BlobProgress::Whole && blob.spots.len() > 1;
        let mut whole = blobs.iter().filter(|(_, blob)| is_whole(blob));
        whole.try_for_each(|(digest, blob)| self.spread(digest, blob, journal))
    }

    /// Copies a blob from its first place to the others, and notes it.
    fn spread(
        &self,
        digest: &Digest,
        blob: &PlannedBlob,
        journal: &mut ArchiveJournal,
    ) -> io::Result<()> {
        let (number, offset) = blob.spots[0];
        for (other, at) in &blob.spots[1..] {
            let (from, into) = (self.parts.file(number)?, self.parts.file(*other)?);
            takeover::copy(&from, offset, blob.size, into, *at)?;
        }
        journal.note(blob.spots[0], &blob.entry(digest, blob.size))
    }

    fn write_small(&self, number: usize, member: &PlannedMember) -> Result<(), Error> {
        let headers = header::bytes(member, self.plan.mtime)?;
        let written = || {
            let file = self.parts.file(number)?;
            file.write_all_at(&headers, member.start)?;
            match &member.kind {
                MemberKind::Inline(bytes) => file.write_all_at(bytes, member.offset)?,
                MemberKind::Local(from) => return copy_local(from, member, file),
                MemberKind::Blob(_) | MemberKind::Symlink(_) | MemberKind::Directory => {}
            }
            Ok(true)
        };
        match written() {
            Ok(true) => Ok(()),
            Ok(false) => {
                let reason = "a file changed while the archive was made, run it again";
                Err(Error::conflict(format!("{}: {reason}", member.path)))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, error: io::Error) -> Error {
        space::failed(
            self.parts.target(),
            left(&self.plan, &self.parts).unwrap_or_default(),
            error,
        )
    }

    fn state(&self) -> MutexGuard<'_, JournaledBlobs> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PlannedBlob {
    fn entry(&self, digest: &Digest, written: u64) -> JournalEntry {
        JournalEntry {
            digest: digest.clone(),
            size: self.size,
            written,
        }
    }
}

/// Space still to be allocated in the files. Units: bytes.
fn left(plan: &SetPlan, parts: &PartFiles) -> io::Result<u64> {
    const BLOCK_BYTES: u64 = 512;
    let has_room = |number| match fs::metadata(parts.path(number)) {
        Ok(file) => Ok(file.blocks() * BLOCK_BYTES),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    };
    let files = plan.files.iter().enumerate();
    files
        .map(|(number, file)| Ok(file.size.saturating_sub(has_room(number)?)))
        .sum()
}

/// Recorded blobs that are damaged: the machine was restarted since. Partial blobs are not checked.
fn doubtful(records: &Records, parts: &PartFiles) -> io::Result<Vec<Spot>> {
    let mut lost = Vec::new();
    for (spot, entry) in &records.blobs {
        let is_there = match parts.file(spot.0) {
            Ok(file) => entry.is_whole() && takeover::has_digest(&file, spot.1, entry)?,
            Err(_) => false,
        };
        if !is_there {
            lost.push(*spot);
        }
    }
    Ok(lost)
}

/// The blobs of a plan, with their progress.
fn wanted(plan: &SetPlan, records: &Records) -> BTreeMap<Digest, PlannedBlob> {
    let mut blobs: BTreeMap<Digest, PlannedBlob> = BTreeMap::new();
    for (number, member) in plan.members() {
        let MemberKind::Blob(digest) = &member.kind else {
            continue;
        };
        let spot = (number, member.offset);
        let known = records.blobs.get(&spot);
        let known = known.filter(|it| it.digest == *digest && it.size == member.size);
        let blob = blobs.entry(digest.clone()).or_insert_with(|| PlannedBlob {
            size: member.size,
            spots: Vec::new(),
            progress: BlobProgress::of(known),
        });
        blob.spots.push(spot);
    }
    blobs
}

/// Whether the file still has its planned size and digest.
fn copy_local(from: &Path, member: &PlannedMember, mut into: File) -> io::Result<bool> {
    into.seek(SeekFrom::Start(member.offset))?;
    let mut source = HashingReader::new(File::open(from)?, Hasher::new(Algorithm::Sha256));
    let count = io::copy(&mut source.by_ref().take(member.size), &mut into)?;
    Ok(count == member.size && Some(source.finish()) == member.digest)
}
