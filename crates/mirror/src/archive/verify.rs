//! Verification of a set: every byte is read, and all faults are reported.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use model::Error;
use oci::{Algorithm, Digest, Hasher, MANIFEST_LIMIT_BYTES, Manifest};

use super::file::ArchiveFile;
use super::index::{self, SetIndex};
use super::name::{self, INDEX, SIGNATURE};
use super::read::{FilePlace, HashingReader};
use super::set::locate::Located;
use super::set::{self, Set};
use super::signature::{SIGNATURE_BYTES, Verifier};
use super::source::ArchiveSource;
use super::walk::{FoundMember, stream, walk};
use crate::progress::{Amount, Phase, RunProgress};

/// Threads that hash: one disk is not faster with more.
const HASHERS: usize = 4;

/// Report about a set.
#[derive(Debug, Default)]
pub struct SetReport {
    pub files: usize,
    pub members: usize,
    /// Contents that were compared with their digests. Units: bytes.
    pub hashed_bytes: u64,
    /// Whether the set has an index; sets of the peer do not.
    pub has_index: bool,
    /// Whether the index is signed, with any key.
    pub is_signed: bool,
    /// All that is wrong, each with its file or member.
    pub faults: Vec<Error>,
}

/// Content and its expected digest.
struct ContentCheck {
    path: String,
    place: FilePlace,
    digests: Vec<Digest>,
    /// Of the content, if it has been read.
    computed: Option<Digest>,
}

/// Verifies a set without trusting its index: members are found by their headers.
///
/// Blocking. Errors: NotFound, Invalid – there is no set at all; Internal – it cannot be read;
/// those of the web server.
pub fn verify(
    source: impl Into<ArchiveSource>,
    key: Option<&Verifier>,
    progress: &RunProgress,
) -> Result<SetReport, Error> {
    let source = source.into();
    let located = Located::find(&source)?;
    let mut report = SetReport::default();
    report.note(located.check_numbers());
    let (mut files, mut computed) = (Vec::new(), ContentDigests::new());
    begin_streams(&located, progress);
    for (number, file) in located.files().enumerate() {
        let mut members = Vec::new();
        let walked = if file.local().is_some() {
            walk(file, |found| {
                members.push(found);
                Ok(true)
            })
        } else {
            let mut digests = Vec::new();
            let streamed = hash_stream(file, &mut members, &mut digests, progress);
            let digests = digests.into_iter();
            computed.extend(digests.map(|(offset, digest)| ((number, offset), digest)));
            streamed
        };
        report.note(walked);
        report.files += 1;
        report.members += members.len();
        files.push((file.clone(), members));
    }
    let index = report.index(&files, key);
    let digests = index.map(|index| report.compare(&index, &located, &files));
    let checks = checks(&files, digests.unwrap_or_default(), computed);
    report.hash(&checks, progress);
    if let Some(set) = report.note(Set::open(source)) {
        set.gather(&mut report.faults);
    }
    Ok(report)
}

/// Announces the bytes of files that are read as streams.
fn begin_streams(located: &Located, progress: &RunProgress) {
    let files = located.files().filter(|file| file.local().is_none());
    let sizes: Vec<u64> = files.map(ArchiveFile::size).collect();
    if !sizes.is_empty() {
        let whole = Amount {
            items: 0,
            bytes: sizes.iter().sum(),
        };
        progress.begin(Phase::Verifying, whole);
    }
}

/// Finds the members of a file of a web server and hashes their content in one pass: a request for each member would take a
/// round trip each. The digest of a member is of the algorithm in its name, else SHA-256, which the index has.
fn hash_stream(
    file: &ArchiveFile,
    members: &mut Vec<FoundMember>,
    digests: &mut Vec<(u64, Digest)>,
    progress: &RunProgress,
) -> Result<(), Error> {
    stream(file, |found, content| {
        if progress.is_cancelled() {
            return Err(io::Error::other("the verification was cancelled"));
        }
        if found.target.is_none() && !found.path.ends_with('/') {
            let promised = name::promised(&found.path);
            let algorithm = promised.map_or(Algorithm::Sha256, |it| it.algorithm());
            let mut content = HashingReader::new(content, Hasher::new(algorithm));
            let count = io::copy(&mut content, &mut io::sink())?;
            progress.add_bytes(count);
            digests.push((found.offset, content.finish()));
        }
        members.push(found);
        Ok(())
    })
}

/// Digests of the index, by the file's place among all and the member's offset.
type ContentDigests = BTreeMap<(usize, u64), Digest>;

type SetFiles = [(ArchiveFile, Vec<FoundMember>)];

impl SetReport {
    fn note<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => return Some(value),
            // Two checks may report the same fault.
            Err(fault)
                if self
                    .faults
                    .iter()
                    .any(|it| it.to_string() == fault.to_string()) => {}
            Err(fault) => self.faults.push(fault),
        }
        None
    }

    /// The index, trusted or not.
    fn index(&mut self, files: &SetFiles, key: Option<&Verifier>) -> Option<SetIndex> {
        let read = |path: &str, limit: u64| {
            let mut places = files.iter().flat_map(|(file, members)| {
                let named = members.iter().filter(|it| it.path == path);
                named.map(|it| set::place(file, it))
            });
            places.next().map(|place| place.read(limit))
        };
        let bytes = read(INDEX, index::LIMIT_BYTES).and_then(|read| self.note(read));
        let signature = read(SIGNATURE, SIGNATURE_BYTES as u64);
        self.is_signed = signature.is_some();
        if let Some(key) = key {
            let is_right = match (&bytes, &signature) {
                (Some(bytes), Some(Ok(signature))) => key.accepts(bytes, signature),
                _ => false,
            };
            if !is_right {
                let reason = if self.is_signed {
                    "it is not of that key"
                } else {
                    "the set is not signed"
                };
                self.faults.push(Error::invalid("signature", reason));
            }
        }
        self.has_index = bytes.is_some();
        self.note(SetIndex::parse(&bytes?))
    }

    /// Every member of the index has to be there, in its place, and nothing else. Answers their digests.
    fn compare(&mut self, index: &SetIndex, located: &Located, files: &SetFiles) -> ContentDigests {
        let mut digests = BTreeMap::new();
        let mut known = Vec::new();
        for file in &index.files {
            let Some(path) = self.note(located.named(&file.name)) else {
                continue;
            };
            known.push(path);
            let Some(number) = files.iter().position(|(other, _)| other == path) else {
                continue;
            };
            let members = &files[number].1;
            let members = members.iter();
            let there: BTreeMap<_, _> = members.map(|found| (key_of(found), found)).collect();
            let expected: BTreeMap<_, _> = file
                .members
                .iter()
                .map(|it| ((it.path.as_str(), it.offset), it))
                .collect();
            for (key, member) in &expected {
                let is_same = |found: &&FoundMember| {
                    (found.size, &found.target) == (member.size, &member.target)
                };
                if !there.get(key).is_some_and(is_same) {
                    self.fault(
                        path,
                        &format!("{} is not there as the index has it", member.path),
                    );
                }
                if let Some(digest) = &member.digest {
                    digests.insert((number, member.offset), digest.clone());
                }
            }
            for (key, found) in there
                .iter()
                .filter(|(_, found)| !index::is_own(&found.path))
            {
                if !expected.contains_key(key) {
                    self.fault(path, &format!("{} is not in the index", found.path));
                }
            }
        }
        for path in located.files().filter(|path| !known.contains(path)) {
            self.fault(path, "the file is not in the index");
        }
        digests
    }

    fn hash(&mut self, checks: &[ContentCheck], progress: &RunProgress) {
        self.hashed_bytes = checks.iter().map(|check| check.place.size).sum();
        let unread = checks.iter().filter(|check| check.computed.is_none());
        let whole = Amount {
            items: unread.clone().count() as u64,
            bytes: unread.map(|check| check.place.size).sum(),
        };
        if whole.items > 0 {
            progress.begin(Phase::Verifying, whole);
        }
        let next = AtomicUsize::new(0);
        let faults = Mutex::new(BTreeMap::new());
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(check) = checks.get(number).filter(|_| !progress.is_cancelled()) else {
                    return;
                };
                if let Err(fault) = check.run() {
                    let mut faults = faults.lock().unwrap_or_else(PoisonError::into_inner);
                    faults.insert(number, fault);
                }
                if check.computed.is_none() {
                    progress.add_items(1);
                    progress.add_bytes(check.place.size);
                }
            }
        };
        let threads = thread::available_parallelism().map_or(1, |it| it.get().min(HASHERS));
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
        let faults = faults.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.faults.extend(faults.into_values());
    }

    fn fault(&mut self, file: &ArchiveFile, reason: &str) {
        self.faults.push(Error::invalid(file.to_string(), reason));
    }
}

fn key_of(found: &FoundMember) -> (&str, u64) {
    (&found.path, found.offset)
}

/// Members with a digest in the index or in their name.
fn checks(
    files: &SetFiles,
    mut digests: ContentDigests,
    mut computed: ContentDigests,
) -> Vec<ContentCheck> {
    let mut checks = Vec::new();
    for (number, (file, members)) in files.iter().enumerate() {
        for found in members
            .iter()
            .filter(|it| it.target.is_none() && !it.path.ends_with('/'))
        {
            let mut expected = Vec::new();
            expected.extend(digests.remove(&(number, found.offset)));
            expected.extend(name::promised(&found.path).filter(|it| !expected.contains(it)));
            if !expected.is_empty() {
                checks.push(ContentCheck {
                    path: found.path.clone(),
                    place: set::place(file, found),
                    digests: expected,
                    computed: computed.remove(&(number, found.offset)),
                });
            }
        }
    }
    checks
}

impl ContentCheck {
    fn run(&self) -> Result<(), Error> {
        for digest in &self.digests {
            match self.compare(digest) {
                Err(Error::Invalid { .. }) if self.is_signed_manifest(digest)? => {}
                checked => checked?,
            }
        }
        Ok(())
    }

    fn compare(&self, digest: &Digest) -> Result<(), Error> {
        match &self.computed {
            Some(computed) if computed.algorithm() == digest.algorithm() => {
                if computed == digest {
                    Ok(())
                } else {
                    Err(self.place.damaged(&self.path))
                }
            }
            _ => self.place.check(&self.path, digest),
        }
    }

    /// The digest of a manifest of schema 1 is not over its signatures.
    fn is_signed_manifest(&self, digest: &Digest) -> Result<bool, Error> {
        if name::promised(&self.path).as_ref() != Some(digest)
            || self.place.size > MANIFEST_LIMIT_BYTES as u64
        {
            return Ok(false);
        }
        let bytes = self.place.read(MANIFEST_LIMIT_BYTES as u64)?;
        Ok(Manifest::parse(bytes, None).is_ok_and(|manifest| manifest.digest == *digest))
    }
}
