//! Building a cache from the files of a catalog.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use prost::Message as _;

use super::encode::frame;
use super::file::{Writer, read};
use super::group::Group;
use super::header::{Header, TABLES};
use super::key::Key;
use super::order::in_order;
use super::part::Part;
use super::record::Span;
use super::spool::{READING, Spool, WRITING};
use super::tables::Tables;
use super::{BuildError, io};
use crate::{Origin, Problems, api};

/// Reads the catalog in `folder` with so many threads, and writes it into `file` as a cache of what `key` is of.
///
/// Errors: everything that is wrong with the catalog; the file cannot be written.
pub(super) fn build(
    folder: &Path,
    file: File,
    key: Key,
    workers: NonZeroUsize,
) -> Result<(), BuildError> {
    let mut builder = Builder {
        file: Writer::new(file).map_err(io(WRITING))?,
        spool: Spool::default(),
        tables: Tables::default(),
    };
    let (json, unread) = builder.spool(folder, workers)?;
    builder.encode(workers, unread)?;
    let packages = builder.list_packages()?;
    let bundles = builder.list_bundles()?;
    builder.finish(Header {
        key,
        length: 0,
        json,
        packages,
        bundles,
        tables: [Span::default(); TABLES],
        checksum: 0,
    })
}

struct Builder {
    file: Writer,
    spool: Spool,
    tables: Tables,
}

impl Builder {
    /// Writes the documents as they are read; where they lie, and what cannot be read.
    fn spool(
        &mut self,
        folder: &Path,
        workers: NonZeroUsize,
    ) -> Result<(Span, Problems), BuildError> {
        let first = self.file.position();
        let problems = crate::read(folder, workers, |document| {
            self.spool.add(&document, &mut self.file)
        })?;
        self.file.flush().map_err(io(WRITING))?;
        Ok((self.file.since(first), problems))
    }

    /// Writes the replies about each package.
    ///
    /// Errors: what was `unread`, and what is wrong with the packages; those are not judged that have documents
    /// beside it, as what they lack may stand there.
    fn encode(&mut self, workers: NonZeroUsize, unread: Problems) -> Result<(), BuildError> {
        let source = self.file.reader().map_err(io(READING))?;
        let mut groups = self.spool.groups();
        let folders: HashSet<_> = unread
            .0
            .iter()
            .map(|it| folder_of(it.origin.as_ref()))
            .collect();
        groups.retain(|lines| {
            let mut files = lines.iter().map(|line| self.spool.texts.get(line.file));
            !folders.contains(&None)
                && !files
                    .any(|file| folders.contains(&Path::new(file).parent().map(Path::to_owned)))
        });
        let (spool, parts) = (&self.spool, Part::all(&groups));
        let make = |index: usize| parts[index].make(spool, &source);
        // The texts of the tables are added to those of the documents only when nobody reads these any more.
        let mut texts = spool.texts.clone();
        let mut group = Group::default();
        let mut problems = unread;
        let mut ended = parts.iter().map(|part| part.is_last);
        let (file, tables) = (&mut self.file, &mut self.tables);
        in_order(parts.len(), workers, make, |parted| {
            group.add(parted?, file)?;
            if ended.next() != Some(true) {
                return Ok(());
            }
            match std::mem::take(&mut group).finish(file, tables, &mut texts) {
                Err(BuildError::Invalid(found)) => {
                    problems.0.extend(found.0);
                    Ok(())
                }
                finished => finished,
            }
        })?;
        self.spool.texts = texts;
        self.file.flush().map_err(io(WRITING))?;
        ok(problems)
    }

    fn list_packages(&mut self) -> Result<Span, BuildError> {
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

    fn list_bundles(&mut self) -> Result<Span, BuildError> {
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
    fn finish(self, mut header: Header) -> Result<(), BuildError> {
        let mut offset = self.file.position();
        let (blocks, mut file) = self.file.finish_blocks();
        let Spool { texts, lines } = self.spool;
        let tables = self.tables.into_bytes(&texts, &lines, &blocks)?;
        let mut checksum = crc32fast::Hasher::new();
        for (place, bytes) in header.tables.iter_mut().zip(&tables) {
            let length = bytes.len() as u64;
            *place = Span { offset, length };
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
fn folder_of(origin: Option<&Origin>) -> Option<PathBuf> {
    origin?.file.parent().map(Path::to_owned)
}

fn ok(problems: Problems) -> Result<(), BuildError> {
    if problems.0.is_empty() {
        return Ok(());
    }
    Err(BuildError::Invalid(problems))
}
