//! Reads the documents of a catalog.
//!
//! Files are read by several threads and delivered in order. Memory is bounded: per thread one document as in the file,
//! two copies in the normal form, and [`AHEAD`] batches of [`batch::BATCH_BYTES`] (or of one larger document each).

mod batch;
mod cut;
mod file;
mod head;
mod yaml;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use self::batch::{Batch, BatchSink};
pub use self::cut::MAX_DOCUMENT_BYTES;
use self::file::{FileContent, FileSource};
use self::head::head;
pub use self::yaml::to_json as yaml_to_json;
use crate::normal::JsonWriter;
use crate::{CatalogProblem, CatalogProblems, Document, DocumentOrigin, Rule, walk};

/// Read-ahead: files per thread beyond the one being delivered; many are small.
const AHEAD: usize = 4;
/// Most problems kept: bounds the memory that a malformed catalog takes.
const MAX_PROBLEMS: usize = 10_000;
/// Most bytes of their messages.
const MAX_PROBLEM_BYTES: usize = 16 << 20;
/// Reads the catalog in `folder` with `workers` threads; one per core, see [`cores`], is a good choice.
///
/// Calls `each` with every readable document: in walk order, see [`walk`], and in file order. Returns the problems in
/// the same order.
///
/// Errors: those of `each`, which stop the reading.
pub fn read<E>(
    folder: &Path,
    workers: NonZeroUsize,
    each: impl FnMut(Document) -> Result<(), E>,
) -> Result<CatalogProblems, E> {
    let walk = walk(folder);
    let sources = walk.files.into_iter().map(|name| {
        let full = folder.join(&name);
        FileSource {
            name,
            content: FileContent::File(full),
        }
    });
    let problems = read_sources(sources, workers, each)?;
    Ok(in_order(walk.problems, problems))
}

/// Reads files from memory, in iteration order. `.indexignore` is a file like others here.
///
/// Errors: those of `each`, which stop the reading.
pub fn read_files<E>(
    files: impl Iterator<Item = (PathBuf, Vec<u8>)> + Send,
    workers: NonZeroUsize,
    each: impl FnMut(Document) -> Result<(), E>,
) -> Result<CatalogProblems, E> {
    let sources = files.map(|(name, content)| FileSource {
        name,
        content: FileContent::Memory(content),
    });
    read_sources(sources, workers, each)
}

/// The document `json` that is at `origin`.
///
/// Errors: not JSON, or no document, as text.
pub(crate) fn document(json: &str, origin: DocumentOrigin) -> Result<Document, String> {
    let mut writer = JsonWriter::default();
    writer.json(json).map_err(|e| e.to_string())?;
    let head = head(&writer).map_err(|(_, text)| text)?;
    Ok(Document {
        schema: head.schema,
        package: head.package,
        name: head.name,
        json: writer.into_text(),
        origin,
    })
}

/// Number of threads that run in parallel.
pub fn cores() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

fn read_sources<E>(
    sources: impl Iterator<Item = FileSource> + Send,
    workers: NonZeroUsize,
    mut each: impl FnMut(Document) -> Result<(), E>,
) -> Result<CatalogProblems, E> {
    let (queue, files) = mpsc::sync_channel(AHEAD * workers.get());
    let sources = Mutex::new(sources);
    thread::scope(|scope| {
        for _ in 0..workers.get() {
            let (sources, queue) = (&sources, queue.clone());
            scope.spawn(move || read_files_of(sources, &queue));
        }
        // The loop ends when the last worker drops its sender.
        drop(queue);
        let mut problems = ProblemCollector::default();
        for batch in files.into_iter().flatten() {
            batch.documents.into_iter().try_for_each(&mut each)?;
            problems.extend(batch.problems);
        }
        Ok(problems.finish())
    })
}

/// Worker: reads one file after the other. Channels of files are queued in order; each blocks until those before it are
/// drained.
fn read_files_of(
    sources: &Mutex<impl Iterator<Item = FileSource>>,
    queue: &SyncSender<Receiver<Batch>>,
) {
    let mut writer = JsonWriter::default();
    loop {
        let mut next = sources.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(source) = next.next() else {
            return;
        };
        let (sender, batches) = mpsc::sync_channel(1);
        if queue.send(batches).is_err() {
            return;
        }
        drop(next);
        let mut sink = BatchSink {
            batch: Batch::default(),
            sender,
        };
        let name = Arc::from(source.name.as_path());
        if file::read(source, &name, &mut writer, &mut sink)
            .and_then(|()| sink.flush())
            .is_err()
        {
            return;
        }
    }
}

/// Bounded list of problems.
#[derive(Default)]
struct ProblemCollector {
    problems: Vec<CatalogProblem>,
    bytes: usize,
    left_out: usize,
}

impl ProblemCollector {
    fn extend(&mut self, more: Vec<CatalogProblem>) {
        for problem in more {
            if self.problems.len() < MAX_PROBLEMS && self.bytes < MAX_PROBLEM_BYTES {
                self.bytes += problem.text.len() + problem.package.len();
                self.problems.push(problem);
            } else {
                self.left_out += 1;
            }
        }
    }

    fn finish(mut self) -> CatalogProblems {
        let origin = self.problems.last().and_then(|last| last.origin.clone());
        if self.left_out > 0 {
            self.problems.push(CatalogProblem {
                origin,
                package: String::new(),
                rule: Rule::Readable,
                text: format!("{} more problems follow", self.left_out),
            });
        }
        CatalogProblems(self.problems)
    }
}

/// Merges both in walk order: paths compare component by component.
fn in_order(mut one: CatalogProblems, other: CatalogProblems) -> CatalogProblems {
    let file = |problem: &CatalogProblem| {
        problem
            .origin
            .as_ref()
            .map(|origin: &DocumentOrigin| origin.file.clone())
    };
    one.0.extend(other.0);
    one.0.sort_by_key(file);
    one
}

#[cfg(test)]
mod tests;
