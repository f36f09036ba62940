//! Building a cache from the files of a catalog.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use prost::Message as _;

use super::batch::DocumentBatch;
use super::encode::frame;
use super::group::Group;
use super::header::{CacheHeader, TABLES};
use super::key::CacheKey;
use super::parallel::in_order;
use super::record::{ByteRange, Line};
use super::spool::{READING, Spool, WRITING};
use super::tables::Tables;
use super::writer::{CacheWriter, read};
use super::{BuildError, BuildReport, Strictness, io};
use crate::{CatalogProblem, CatalogProblems, DocumentOrigin, api};

/// Reads the catalog in `folder` with so many threads, and writes it into `file` as a cache of what `key` is of.
///
/// Errors: everything that is wrong with the catalog, where every rule counts; the file cannot be written.
pub(super) fn build(
    folder: &Path,
    file: File,
    key: CacheKey,
    workers: NonZeroUsize,
    strictness: Strictness,
) -> Result<BuildReport, BuildError> {
    let mut builder = Builder {
        file: CacheWriter::new(file).map_err(io(WRITING))?,
        spool: Spool::default(),
        tables: Tables::default(),
    };
    let (json, unread) = builder.spool(folder, workers)?;
    let judged = builder.encode(workers, unread, strictness)?;
    let packages = builder.list_packages()?;
    let bundles = builder.list_bundles()?;
    builder.finish(CacheHeader {
        key,
        length: 0,
        json,
        packages,
        bundles,
        tables: [ByteRange::default(); TABLES],
        checksum: 0,
    })?;
    Ok(judged)
}

struct Builder {
    file: CacheWriter,
    spool: Spool,
    tables: Tables,
}

impl Builder {
    /// Writes the documents as they are read; where they lie, and what cannot be read.
    fn spool(
        &mut self,
        folder: &Path,
        workers: NonZeroUsize,
    ) -> Result<(ByteRange, CatalogProblems), BuildError> {
        let first = self.file.position();
        let problems = crate::read(folder, workers, |document| {
            self.spool.add(&document, &mut self.file)
        })?;
        self.file.flush().map_err(io(WRITING))?;
        Ok((self.file.since(first), problems))
    }

    /// Writes the replies about each package.
    ///
    /// Errors: what was `unread`, and what is wrong with the packages, where every rule counts; those are not judged
    /// that have documents beside it, as what they lack may stand there.
    fn encode(
        &mut self,
        workers: NonZeroUsize,
        unread: CatalogProblems,
        strictness: Strictness,
    ) -> Result<BuildReport, BuildError> {
        let source = self.file.reader().map_err(io(READING))?;
        let mut judged = BuildReport::default();
        let groups = self.judgeable(&unread, &mut judged);
        let (spool, parts) = (&self.spool, DocumentBatch::all(&groups));
        let make = |index: usize| parts[index].make(spool, &source);
        // The texts of the tables are added to those of the documents only when nobody reads these any more.
        let mut texts = spool.texts.clone();
        let mut group = Group::default();
        let mut ended = parts.iter().map(|part| part.is_last);
        let (file, tables) = (&mut self.file, &mut self.tables);
        in_order(parts.len(), workers, make, |parted| {
            group.add(parted?, file)?;
            if ended.next() != Some(true) {
                return Ok(());
            }
            let group = std::mem::take(&mut group);
            let name = group.name().to_owned();
            match group.finish(file, tables, &mut texts, strictness) {
                Err(BuildError::Invalid(found)) => drop(judged.refused.insert(name, found)),
                Ok(warnings) if warnings.0.is_empty() => {}
                Ok(warnings) => drop(judged.warned.insert(name, warnings)),
                Err(failed) => return Err(failed),
            }
            Ok(())
        })?;
        self.spool.texts = texts;
        self.file.flush().map_err(io(WRITING))?;
        judged.unread = unread;
        match strictness {
            Strictness::Strict => ok(judged),
            Strictness::Lenient => Ok(judged),
        }
    }

    /// The groups that have no document beside one that is `unread`; the others are refused for it.
    fn judgeable(&self, unread: &CatalogProblems, judged: &mut BuildReport) -> Vec<Vec<Line>> {
        let mut groups = self.spool.groups();
        if unread.0.is_empty() {
            return groups;
        }
        groups.retain(|lines| {
            let texts = &self.spool.texts;
            let folders: HashSet<_> = lines
                .iter()
                .map(|line| Path::new(texts.get(line.file)).parent().map(Path::to_owned))
                .collect();
            let concerns = |problem: &&CatalogProblem| {
                let folder = folder_of(problem.origin.as_ref());
                folder.is_none() || folders.contains(&folder)
            };
            let reasons: Vec<_> = unread.0.iter().filter(concerns).cloned().collect();
            let is_judgeable = reasons.is_empty();
            if !is_judgeable && let Some(line) = lines.first() {
                let name = self.spool.group_name(line).to_owned();
                judged.refused.insert(name, CatalogProblems(reasons));
            }
            is_judgeable
        });
        groups
    }

    fn list_packages(&mut self) -> Result<ByteRange, BuildError> {
        let first = self.file.position();
        let (file, texts) = (&mut self.file, &self.spool.texts);
        for name in self.tables.names(texts) {
            let name = api::PackageName {
                name: name.to_owned(),
            };
            file.write(&frame(name.encoded_len() as u64))
                .and_then(|_| file.write(&name.encode_to_vec()))
                .map_err(io(WRITING))?;
        }
        Ok(self.file.since(first))
    }

    fn list_bundles(&mut self) -> Result<ByteRange, BuildError> {
        let source = self.file.reader().map_err(io(READING))?;
        let first = self.file.position();
        self.tables.sort_listed(&self.spool.texts);
        let mut part = Vec::new();
        for one in &self.tables.listed {
            let length = one.parts.iter().map(|span| span.length()).sum::<u64>();
            self.file.write(&frame(length)).map_err(io(WRITING))?;
            for span in one.parts {
                read(&source, span, &mut part).map_err(io(READING))?;
                self.file.write(&part).map_err(io(WRITING))?;
            }
        }
        Ok(self.file.since(first))
    }

    /// Writes the tables, and then the header over the place that was left for it.
    fn finish(self, mut header: CacheHeader) -> Result<(), BuildError> {
        let mut offset = self.file.position();
        let (blocks, mut file) = self.file.finish_blocks();
        let Spool { texts, lines } = self.spool;
        let tables = self.tables.into_bytes(&texts, &lines, &blocks)?;
        let mut checksum = crc32fast::Hasher::new();
        for (place, bytes) in header.tables.iter_mut().zip(&tables) {
            let length = bytes.len() as u64;
            *place = ByteRange { offset, length };
            offset += length;
            checksum.update(bytes);
            file.write_all(bytes).map_err(io(WRITING))?;
        }
        header.length = offset;
        header.checksum = checksum.finalize();
        let file = BufWriter::into_inner(file).map_err(|e| io(WRITING)(e.into_error()))?;
        file.write_all_at(&header.encode(), 0)
            .map_err(io(WRITING))?;
        file.sync_all().map_err(io(WRITING))
    }
}

/// None: it may be anywhere.
fn folder_of(origin: Option<&DocumentOrigin>) -> Option<PathBuf> {
    origin?.file.parent().map(Path::to_owned)
}

/// Errors: anything that is wrong.
fn ok(judged: BuildReport) -> Result<BuildReport, BuildError> {
    let BuildReport {
        refused, unread, ..
    } = &judged;
    let is_read = |problem: &CatalogProblem| !unread.0.contains(problem);
    let of_packages = refused.values().flat_map(|found| &found.0);
    let of_packages = of_packages.filter(|problem| is_read(problem));
    let problems: Vec<_> = unread.0.iter().chain(of_packages).cloned().collect();
    if problems.is_empty() {
        return Ok(judged);
    }
    Err(BuildError::Invalid(CatalogProblems(problems)))
}
