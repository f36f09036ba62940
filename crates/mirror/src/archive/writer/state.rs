//! The files of a set while they are written, with the progress of their blobs.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::Error;
use oci::{Algorithm, Digest, Hasher};

use crate::archive::header;
use crate::archive::journal::{ArchiveJournal, JournalEntry, Records, Spot};
use crate::archive::member::{MemberKind, PlannedMember};
use crate::archive::parts::PartFiles;
use crate::archive::plan::SetPlan;
use crate::archive::read::HashingReader;
use crate::archive::space;
use crate::archive::takeover::{self, Offer};

/// Progress of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlobProgress {
    /// So many bytes are written.
    Partial(u64),
    /// Another writer has it, and began with so many bytes.
    Busy(u64),
    /// It is complete in all its places.
    Whole,
}

#[derive(Debug)]
pub(super) struct WriterState {
    pub(super) plan: SetPlan,
    pub(super) parts: PartFiles,
    pub(super) state: Mutex<JournaledBlobs>,
}

#[derive(Debug)]
pub(super) struct JournaledBlobs {
    pub(super) journal: ArchiveJournal,
    pub(super) blobs: BTreeMap<Digest, PlannedBlob>,
}

#[derive(Debug)]
pub(super) struct PlannedBlob {
    pub(super) size: u64,
    /// Its places; one at least. It is fetched into the first one.
    pub(super) spots: Vec<Spot>,
    pub(super) progress: BlobProgress,
}

/// State found before the first write.
pub(super) struct WriterRecovery {
    pub(super) records: Records,
    pub(super) journal: ArchiveJournal,
    pub(super) offers: BTreeMap<Digest, Offer>,
    /// Space still to be allocated, with that of the offers. Units: bytes.
    pub(super) left: u64,
}

impl WriterState {
    pub(super) fn prepare(plan: &SetPlan, parts: &PartFiles) -> io::Result<WriterRecovery> {
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

    pub(super) fn resume(
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
    pub(super) fn take_over(&self, offers: BTreeMap<Digest, Offer>) -> io::Result<()> {
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

    pub(super) fn take(&self, offer: &Offer) -> io::Result<bool> {
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
    pub(super) fn settle(&self) -> io::Result<()> {
        let mut state = self.state();
        let JournaledBlobs { journal, blobs } = &mut *state;
        let is_whole =
            |blob: &PlannedBlob| blob.progress == BlobProgress::Whole && blob.spots.len() > 1;
        let mut whole = blobs.iter().filter(|(_, blob)| is_whole(blob));
        whole.try_for_each(|(digest, blob)| self.spread(digest, blob, journal))
    }

    /// Copies a blob from its first place to the others, and notes it.
    pub(super) fn spread(
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

    pub(super) fn write_small(&self, number: usize, member: &PlannedMember) -> Result<(), Error> {
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

    pub(super) fn failed(&self, error: io::Error) -> Error {
        space::failed(
            self.parts.target(),
            left(&self.plan, &self.parts).unwrap_or_default(),
            error,
        )
    }

    pub(super) fn state(&self) -> MutexGuard<'_, JournaledBlobs> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PlannedBlob {
    pub(super) fn entry(&self, digest: &Digest, written: u64) -> JournalEntry {
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

impl BlobProgress {
    pub(super) fn of(known: Option<&JournalEntry>) -> Self {
        match known {
            Some(entry) if entry.is_whole() => Self::Whole,
            Some(entry) => Self::Partial(entry.written),
            None => Self::Partial(0),
        }
    }

    /// Bytes of a partial blob. Units: bytes.
    pub(super) fn written(self) -> Option<u64> {
        match self {
            Self::Partial(written) | Self::Busy(written) => Some(written),
            Self::Whole => None,
        }
    }
}
