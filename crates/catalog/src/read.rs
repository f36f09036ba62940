//! Reads the documents of a catalog.
//!
//! Files are read by several threads and handed over in order. Of each file only the document that is being read is in
//! memory, so the most that reading holds is, per thread, one document as it stands in the file and two copies in the
//! normal form, and [`AHEAD`] batches of [`BATCH_BYTES`] (or of one larger document each).

mod cut;
mod file;
mod head;
mod yaml;

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

pub use self::cut::MAX_DOCUMENT_BYTES;
pub use self::yaml::{located, to_json as yaml_to_json};
use crate::normal::JsonWriter;
use crate::{CatalogProblem, CatalogProblems, Document, DocumentOrigin, Rule, walk};

/// How much of the normal form is handed over at once: enough for threads not to wait for each other all the time.
const BATCH_BYTES: usize = 256 << 10;
/// Files that a thread may be ahead of the file whose documents are being handed over: many are small.
const AHEAD: usize = 4;
/// Problems that are kept, so that a catalog full of nonsense does not fill the memory: more than anybody reads.
const MAX_PROBLEMS: usize = 10_000;
/// How long their texts may be together.
const MAX_PROBLEM_BYTES: usize = 16 << 20;
/// Of names and values, what is shown in a problem. Units: characters.
const SHOWN: usize = 60;

/// Reads the catalog in `folder` with so many threads; one per core, see [`cores`], is a good choice.
///
/// `each` is given every document that can be read: in the order of the files, see [`walk`], and in each file in the
/// order in which they stand. What is wrong is returned, in the same order; documents come all the same.
///
/// Errors: only those of `each`, which end the reading.
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

/// Reads files that lie in no folder, in the order in which they come. Nothing is left out: `.indexignore` is a file like
/// others here.
///
/// Errors: only those of `each`, which end the reading.
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

/// How many threads can run at the same time.
pub fn cores() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// A file that is still to be read.
struct FileSource {
    name: PathBuf,
    content: FileContent,
}

enum FileContent {
    File(PathBuf),
    Memory(Vec<u8>),
}

impl FileSource {
    fn open(self) -> io::Result<Box<dyn Read>> {
        Ok(match self.content {
            FileContent::File(path) => Box::new(File::open(path)?),
            FileContent::Memory(content) => Box::new(Cursor::new(content)),
        })
    }
}

/// Documents of one file that come together, and what is wrong between them.
#[derive(Debug, Default)]
struct Batch {
    documents: Vec<Document>,
    problems: Vec<CatalogProblem>,
    bytes: usize,
}

/// Where the thread that reads a file puts what it finds.
struct BatchSink {
    batch: Batch,
    handed: SyncSender<Batch>,
}

/// Nobody wants the documents any more.
struct ReceiverGone;

impl BatchSink {
    fn document(&mut self, document: Document) -> Result<(), ReceiverGone> {
        self.batch.bytes += size_of::<Document>() + document.json.len();
        self.batch.documents.push(document);
        if self.batch.bytes < BATCH_BYTES {
            return Ok(());
        }
        self.hand_over()
    }

    fn problem(&mut self, problem: CatalogProblem) -> Result<(), ReceiverGone> {
        self.batch.bytes += size_of::<CatalogProblem>() + problem.text.len();
        self.batch.problems.push(problem);
        if self.batch.bytes < BATCH_BYTES {
            return Ok(());
        }
        self.hand_over()
    }

    fn hand_over(&mut self) -> Result<(), ReceiverGone> {
        let batch = std::mem::take(&mut self.batch);
        self.handed.send(batch).map_err(|_| ReceiverGone)
    }
}

fn read_sources<E>(
    sources: impl Iterator<Item = FileSource> + Send,
    workers: NonZeroUsize,
    mut each: impl FnMut(Document) -> Result<(), E>,
) -> Result<CatalogProblems, E> {
    let (begun, files) = mpsc::sync_channel(AHEAD * workers.get());
    let sources = Mutex::new(sources);
    thread::scope(|scope| {
        for _ in 0..workers.get() {
            let (sources, begun) = (&sources, begun.clone());
            scope.spawn(move || work(sources, &begun));
        }
        // The last thread that finds no file any more ends the loop.
        drop(begun);
        let mut problems = ProblemCollector::default();
        for batch in files.into_iter().flatten() {
            batch.documents.into_iter().try_for_each(&mut each)?;
            problems.extend(batch.problems);
        }
        Ok(problems.finish())
    })
}

/// Reads one file after the other. They are announced in order, and each can hand over something only once those before
/// it are done; until then it waits.
fn work(sources: &Mutex<impl Iterator<Item = FileSource>>, begun: &SyncSender<Receiver<Batch>>) {
    let mut writer = JsonWriter::default();
    loop {
        let mut next = sources.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(source) = next.next() else {
            return;
        };
        let (handed, batches) = mpsc::sync_channel(1);
        if begun.send(batches).is_err() {
            return;
        }
        drop(next);
        let mut sink = BatchSink {
            batch: Batch::default(),
            handed,
        };
        let name = Arc::from(source.name.as_path());
        if file::read(source, &name, &mut writer, &mut sink)
            .and_then(|()| sink.hand_over())
            .is_err()
        {
            return;
        }
    }
}

/// What is wrong, up to a limit.
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

/// The beginning of a name or a value, as problems quote it.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// Both in the order of the files: paths compare name by name, as they are walked over.
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
