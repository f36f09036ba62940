//! Builds a cache from the files of a catalog.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use prost::Message as _;

use super::batch::DocumentBatch;
use super::build_error::{BuildError, io};
use super::build_report::BuildReport;
use super::encode::frame;
use super::group::Group;
use super::header::{CacheHeader, TABLES};
use super::key::CacheKey;
use super::parallel::in_order;
use super::record::ByteRange;
use super::spool::{READING, Spool, WRITING};
use super::tables::Tables;
use super::unread::unread_documents;
use super::writer::{CacheWriter, read};
use crate::{CatalogProblems, api};

/// Reads the catalog in `folder` with `workers` threads and writes its cache into `file` under `key`.
///
/// Errors: a catalog of which nothing can be served; the file cannot be written.
pub(super) fn build(
    folder: &Path,
    file: File,
    key: CacheKey,
    workers: NonZeroUsize,
    usefulness: Usefulness,
) -> Result<(), BuildError> {
    let mut builder = Builder {
        file: CacheWriter::new(file).map_err(io(WRITING))?,
        spool: Spool::default(),
        tables: Tables::default(),
    };
    let (json, unread) = builder.spool(folder, workers)?;
    let report = builder.encode(workers, unread)?;
    let is_useless = builder.tables.is_empty()
        && (usefulness == Usefulness::Served || report.partial.is_empty());
    let is_complete = report.not_served().is_empty() && report.unread.0.is_empty();
    if is_useless && !is_complete {
        return Err(BuildError::Invalid(report.problems()));
    }
    let packages = builder.list_packages()?;
    let bundles = builder.list_bundles()?;
    let header = CacheHeader {
        key,
        length: 0,
        json,
        packages,
        bundles,
        tables: [ByteRange::default(); TABLES],
        checksum: 0,
    };
    builder.finish(header, &report)
}

/// The use that a cache has to have a package for, unless its catalog is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usefulness {
    /// To be served.
    Served,
    /// To be read: packages of which single bundles are broken are enough.
    Selectable,
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

    /// Writes the replies of each package. Returns the report.
    ///
    /// Errors: the file cannot be written.
    fn encode(
        &mut self,
        workers: NonZeroUsize,
        unread: CatalogProblems,
    ) -> Result<BuildReport, BuildError> {
        let source = self.file.reader().map_err(io(READING))?;
        let groups = self.spool.groups();
        let near = unread_documents(&self.spool, &groups, &unread);
        let mut report = BuildReport::default();
        let (spool, parts) = (&self.spool, DocumentBatch::all(&groups));
        let make = |index: usize| parts[index].make(spool, &source);
        // Workers still read the documents' strings: those of the tables go to a copy.
        let mut texts = spool.texts.clone();
        let mut group = Group::default();
        let mut ended = parts.iter().map(|part| part.is_last);
        let mut near = near.into_iter();
        let (file, tables) = (&mut self.file, &mut self.tables);
        in_order(parts.len(), workers, make, |batch| {
            group.add(batch?, file)?;
            if ended.next() != Some(true) {
                return Ok(());
            }
            let group = std::mem::take(&mut group);
            let unread = near.next().unwrap_or_default();
            group.finish(unread, file, tables, &mut texts, &mut report)
        })?;
        self.spool.texts = texts;
        self.file.flush().map_err(io(WRITING))?;
        report.unread = unread;
        Ok(report)
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
    fn finish(self, mut header: CacheHeader, report: &BuildReport) -> Result<(), BuildError> {
        let mut offset = self.file.position();
        let (blocks, mut file) = self.file.finish_blocks();
        let Spool { texts, lines } = self.spool;
        let tables = self
            .tables
            .into_bytes(&texts, &lines, report.to_json(), &blocks)?;
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
