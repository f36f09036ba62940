//! Complete blobs of unfinished files, and copies of them.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use oci::{Digest, Hasher};
use rustix::fs::{FallocateFlags, fallocate};

use super::journal::{ArchiveJournal, JournalEntry, Records, Spot};
use super::parts;
use super::read::HashingReader;

/// A blob in the unfinished files of another layout.
#[derive(Debug)]
pub(super) struct Offer {
    folder: PathBuf,
    file: PathBuf,
    spot: Spot,
    entry: JournalEntry,
    is_doubtful: bool,
}

/// Complete blobs of the files in `folder`.
pub(super) fn offers(folder: &Path) -> io::Result<Vec<Offer>> {
    let Records {
        blobs, is_doubtful, ..
    } = Records::read(folder)?;
    let mut found = Vec::new();
    for (spot, entry) in blobs.into_iter().filter(|(_, entry)| entry.is_whole()) {
        if let Some(file) = parts::other_part(folder, spot)? {
            found.push(Offer {
                folder: folder.to_owned(),
                file,
                spot,
                entry,
                is_doubtful,
            });
        }
    }
    Ok(found)
}

impl Offer {
    pub(super) fn digest(&self) -> &Digest {
        &self.entry.digest
    }

    /// Units: bytes.
    pub(super) fn size(&self) -> u64 {
        self.entry.size
    }

    /// Copies it. Answers whether it was as promised.
    pub(super) fn copy(&self, into: File, at: u64) -> io::Result<bool> {
        let file = File::open(&self.file)?;
        if self.is_doubtful && !has_digest(&file, self.spot.1, &self.entry)? {
            return Ok(false);
        }
        copy(&file, self.spot.1, self.size(), into, at)?;
        Ok(true)
    }

    /// Frees its space, where the file system can. Elsewhere the medium needs room for both.
    pub(super) fn give_up(mut self) -> io::Result<()> {
        let (_, mut journal) = ArchiveJournal::open(&self.folder)?;
        self.entry.written = 0;
        journal.note(self.spot, &self.entry)?;
        let file = OpenOptions::new().write(true).open(&self.file)?;
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&file, hole, self.spot.1, self.entry.size).ok();
        Ok(())
    }
}

/// Copies a piece; the kernel does it where it can, perhaps without writing anything.
pub(super) fn copy(
    mut file: &File,
    from: u64,
    size: u64,
    mut into: File,
    at: u64,
) -> io::Result<()> {
    file.seek(SeekFrom::Start(from))?;
    into.seek(SeekFrom::Start(at))?;
    if io::copy(&mut file.take(size), &mut into)? == size {
        return Ok(());
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// Whether the bytes at the place are that blob.
pub(super) fn has_digest(file: &File, offset: u64, entry: &JournalEntry) -> io::Result<bool> {
    let hasher = hashed(file, offset, entry.size, &entry.digest)?;
    Ok(hasher.is_some_and(|hasher| hasher.finish() == entry.digest))
}

/// The hasher that has seen a piece; nothing when the file ends before.
pub(super) fn hashed(
    mut file: &File,
    offset: u64,
    size: u64,
    digest: &Digest,
) -> io::Result<Option<Hasher>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut piece = HashingReader::new(file.take(size), Hasher::new(digest.algorithm()));
    let count = io::copy(&mut piece, &mut io::sink())?;
    Ok((count == size).then(|| piece.into_hasher()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn discarded_blobs_are_not_offered_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mirror_seq1_000000.tar.part");
        let content = vec![1; 8192];
        fs::write(&file, [&[0; 512], &content[..]].concat()).unwrap();
        let digest = Digest::sha256(&content);
        let entry = |written| JournalEntry {
            digest: digest.clone(),
            size: 8192,
            written,
        };
        let (_, mut journal) = ArchiveJournal::open(dir.path()).unwrap();
        journal.note_boot().unwrap();
        journal.note((0, 512), &entry(8192)).unwrap();
        journal.note((0, 9000), &entry(5)).unwrap();
        let mut offered = offers(dir.path()).unwrap();
        let offer = offered.pop().unwrap();
        assert_eq!(
            (offer.digest(), offer.size(), offered.len()),
            (&digest, 8192, 0)
        );
        let copy = dir.path().join("copy");
        assert!(offer.copy(File::create(&copy).unwrap(), 100).unwrap());
        assert_eq!(fs::read(&copy).unwrap()[100..], content);
        offer.give_up().unwrap();
        assert_eq!(offers(dir.path()).unwrap().len(), 0);
    }

    #[test]
    fn doubtful_blobs_are_verified() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mirror_seq1_000000.tar.part");
        let (_, mut journal) = ArchiveJournal::open(dir.path()).unwrap();
        let entry = JournalEntry {
            digest: Digest::sha256(b"whole"),
            size: 5,
            written: 5,
        };
        journal.note((0, 0), &entry).unwrap();
        for (content, is_there) in [("whole", true), ("wrong", false), ("wh", false)] {
            fs::write(&file, content).unwrap();
            let offer = offers(dir.path()).unwrap().remove(0);
            let into = File::create(dir.path().join("copy")).unwrap();
            assert_eq!(offer.copy(into, 0).unwrap(), is_there, "{content}");
        }
    }
}
