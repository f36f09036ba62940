//! Builds a cache from the files of a catalog.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use prost::Message as _;

use super::batch::DocumentBatch;
use super::build_error::{BuildError, io};
use super::build_report::{BuildReport, Strictness};
use super::encode::frame;
use super::group::Group;
use super::header::{CacheHeader, TABLES};
use super::key::CacheKey;
use super::parallel::in_order;
use super::record::{ByteRange, Line};
use super::spool::{READING, Spool, WRITING};
use super::tables::Tables;
use super::writer::{CacheWriter, read};
use crate::{CatalogProblem, CatalogProblems, DocumentOrigin, api};

/// Reads the catalog in `folder` with `workers` threads and writes its cache into `file` under `key`.
///
/// Errors: all validation errors, in a strict build; the file cannot be written.
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
    let report = builder.encode(workers, unread, strictness)?;
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
    Ok(report)
}

struct Builder {
    file: CacheWriter,
    spool: Spool,
    tables: Tables,
}

impl Builder {
    /// Writes the documents as they are read. Returns their range and the read errors.
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

    /// Writes the replies of each package.
    ///
    /// Errors: in a strict build, `unread` and all validation errors. Packages in the folder of an unreadable file are
    /// not validated: the file may hold their missing documents.
    fn encode(
        &mut self,
        workers: NonZeroUsize,
        unread: CatalogProblems,
        strictness: Strictness,
    ) -> Result<BuildReport, BuildError> {
        let source = self.file.reader().map_err(io(READING))?;
        let mut report = BuildReport::default();
        let groups = self.validatable(&unread, &mut report);
        let (spool, parts) = (&self.spool, DocumentBatch::all(&groups));
        let make = |index: usize| parts[index].make(spool, &source);
        // Workers still read the documents' strings: those of the tables go to a copy.
        let mut texts = spool.texts.clone();
        let mut group = Group::default();
        let mut ended = parts.iter().map(|part| part.is_last);
        let (file, tables) = (&mut self.file, &mut self.tables);
        in_order(parts.len(), workers, make, |batch| {
            group.add(batch?, file)?;
            if ended.next() != Some(true) {
                return Ok(());
            }
            let group = std::mem::take(&mut group);
            let name = group.name().to_owned();
            match group.finish(file, tables, &mut texts, strictness) {
                Err(BuildError::Invalid(found)) => drop(report.refused.insert(name, found)),
                Ok(warnings) if warnings.0.is_empty() => {}
                Ok(warnings) => drop(report.warned.insert(name, warnings)),
                Err(failed) => return Err(failed),
            }
            Ok(())
        })?;
        self.spool.texts = texts;
        self.file.flush().map_err(io(WRITING))?;
        report.unread = unread;
        match strictness {
            Strictness::Strict => strict(report),
            Strictness::Lenient => Ok(report),
        }
    }

    /// The groups without a document beside an `unread` one; refuses the others.
    fn validatable(&self, unread: &CatalogProblems, report: &mut BuildReport) -> Vec<Vec<Line>> {
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
            let is_validatable = reasons.is_empty();
            if !is_validatable && let Some(line) = lines.first() {
                let name = self.spool.group_name(line).to_owned();
                report.refused.insert(name, CatalogProblems(reasons));
            }
            is_validatable
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

    /// Writes the tables, then the header into the space reserved for it.
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
        // The header is written last: without it, a build that was interrupted leaves no valid cache.
        header.length = offset;
        header.checksum = checksum.finalize();
        let file = BufWriter::into_inner(file).map_err(|e| io(WRITING)(e.into_error()))?;
        file.write_all_at(&header.encode(), 0)
            .map_err(io(WRITING))?;
        // Synced before the caller renames the file: a durable name never leads to missing content.
        file.sync_all().map_err(io(WRITING))
    }
}

/// Folder of a document; `None` when unknown.
fn folder_of(origin: Option<&DocumentOrigin>) -> Option<PathBuf> {
    origin?.file.parent().map(Path::to_owned)
}

/// Errors: any validation error.
fn strict(report: BuildReport) -> Result<BuildReport, BuildError> {
    let BuildReport {
        refused, unread, ..
    } = &report;
    let is_read = |problem: &CatalogProblem| !unread.0.contains(problem);
    let of_packages = refused.values().flat_map(|found| &found.0);
    let of_packages = of_packages.filter(|problem| is_read(problem));
    let problems: Vec<_> = unread.0.iter().chain(of_packages).cloned().collect();
    if problems.is_empty() {
        return Ok(report);
    }
    Err(BuildError::Invalid(CatalogProblems(problems)))
}
