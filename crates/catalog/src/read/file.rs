//! Reads one file: detects JSON or YAML and splits it into documents. Source: operator-registry,
//! `alpha/declcfg/load.go`.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::str;
use std::sync::Arc;

use located_yaml::text::repaired;

use super::batch::{BatchSink, ReceiverDropped};
use super::cut::{CutError, Input, MAX_DOCUMENT_BYTES, SEPARATOR};
use super::head::head;
use super::yaml;
use crate::normal::JsonWriter;
use crate::schema::is_core;
use crate::{CatalogProblem, Document, DocumentOrigin, PACKAGE, Rule};

const UTF8_MARK: &[u8] = &[0xef, 0xbb, 0xbf];
const UTF16_MARKS: [&[u8]; 2] = [&[0xff, 0xfe], &[0xfe, 0xff]];

/// A file to read.
pub(super) struct FileSource {
    pub(super) name: PathBuf,
    pub(super) content: FileContent,
}

pub(super) enum FileContent {
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

/// Reads `source` under the path `file`; `writer` is a reused buffer.
pub(super) fn read(
    source: FileSource,
    file: &Arc<Path>,
    writer: &mut JsonWriter,
    sink: &mut BatchSink,
) -> Result<(), ReceiverDropped> {
    let out = &mut FileOutput { file, writer, sink };
    let content = match source.open() {
        Ok(content) => content,
        Err(error) => return out.error(1, &CutError::Io(error)),
    };
    let mut input = Input::new(content);
    match documents(&mut input, out) {
        Ok(()) => Ok(()),
        Err(Stop::ReceiverDropped) => Err(ReceiverDropped),
        Err(Stop::Cut(error)) => out.error(input.line(), &error),
    }
}

/// Early end of a file.
enum Stop {
    ReceiverDropped,
    Cut(CutError),
}

impl From<ReceiverDropped> for Stop {
    fn from(_: ReceiverDropped) -> Self {
        Self::ReceiverDropped
    }
}

impl From<CutError> for Stop {
    fn from(error: CutError) -> Self {
        Self::Cut(error)
    }
}

fn documents(input: &mut Input<impl Read>, out: &mut FileOutput<'_>) -> Result<(), Stop> {
    for mark in UTF16_MARKS {
        if input.starts_with(mark)? {
            let text = "the file is UTF-16; catalogs are read as UTF-8: convert it";
            return Ok(out.problem(1, Rule::Syntax, text.to_owned())?);
        }
    }
    if input.starts_with(UTF8_MARK)? {
        // As opm: JSON after a UTF-8 byte order mark is read as YAML.
        input.advance(UTF8_MARK.len());
        return yaml(input, out);
    }
    match input.peek()? {
        Some((_, b'{')) => json(input, out),
        _ => yaml(input, out),
    }
}

/// Reads concatenated objects. When the first or second is not JSON, the rest is YAML: a JSON document before YAML
/// ones, or YAML flow style. Source: operator-registry switches to YAML before its second object only.
fn json(input: &mut Input<impl Read>, out: &mut FileOutput<'_>) -> Result<(), Stop> {
    let mut count = 0;
    while let Some((ahead, first)) = input.peek()? {
        let may_be_yaml = count < 2;
        count += 1;
        if first != b'{' && may_be_yaml {
            let line_end = input.rest()[..ahead].iter().position(|&it| it == b'\n');
            input.advance(line_end.map_or(ahead, |at| at + 1));
            return yaml(input, out);
        }
        input.advance(ahead);
        let line = input.line();
        if first != b'{' {
            let text = "expected a JSON object; what follows is not read";
            return Ok(out.problem(line, Rule::Syntax, text.to_owned())?);
        }
        let length = input.object()?;
        let text = &input.rest()[..length];
        match out.writer.json(&repaired(text)) {
            Ok(()) => out.document(line)?,
            Err(_) if may_be_yaml && is_yaml(input, out.writer)? => return yaml(input, out),
            Err(malformed) => {
                let text = repaired(&input.rest()[..length]);
                let before = &text.as_bytes()[..malformed.at.min(text.len())];
                let line = line + memchr::memchr_iter(b'\n', before).count() as u64;
                out.problem(line, Rule::Syntax, malformed.why)?;
            }
        }
        input.advance(length);
    }
    Ok(())
}

/// Whether the malformed JSON is valid YAML.
fn is_yaml(input: &mut Input<impl Read>, writer: &mut JsonWriter) -> Result<bool, CutError> {
    let length = match input.chunk() {
        Err(CutError::TooLarge) => return Ok(false),
        length => length?,
    };
    let Ok(text) = str::from_utf8(&input.rest()[..length]) else {
        return Ok(false);
    };
    let read = yaml::read(text, writer);
    Ok(matches!(read, Ok(Some(_))) && writer.is_object())
}

/// Reads YAML documents. A separator ends one; a second one may begin the next.
fn yaml(input: &mut Input<impl Read>, out: &mut FileOutput<'_>) -> Result<(), Stop> {
    loop {
        let leading = separator(input, out)?;
        let line = input.line();
        let length = if input.starts_with(SEPARATOR)? {
            0
        } else {
            input.chunk()?
        };
        match (leading, length) {
            (None, 0) => return Ok(()),
            (Some(Separator::Good), 0) | (Some(Separator::Bad), _) => {}
            (None | Some(Separator::Good), _) => chunk(&input.rest()[..length], line, out)?,
        }
        input.advance(length);
        separator(input, out)?;
    }
}

enum Separator {
    Good,
    /// The document after it has been skipped.
    Bad,
}

/// Consumes a separator, if any.
fn separator(
    input: &mut Input<impl Read>,
    out: &mut FileOutput<'_>,
) -> Result<Option<Separator>, Stop> {
    if !input.starts_with(SEPARATOR)? {
        return Ok(None);
    }
    let line = input.line();
    let length = input.end_of_line()?;
    let after = input.rest()[SEPARATOR.len()..length].trim_ascii();
    if after.is_empty() || after.starts_with(b"#") {
        input.advance(length);
        return Ok(Some(Separator::Good));
    }
    let text = "only a comment may follow `---` in its line; begin the document in the next one";
    out.problem(line, Rule::Syntax, text.to_owned())?;
    let length = input.chunk()?;
    input.advance(length);
    Ok(Some(Separator::Bad))
}

/// Reads the document between two separators, which starts at `line`.
fn chunk(text: &[u8], line: u64, out: &mut FileOutput<'_>) -> Result<(), ReceiverDropped> {
    let text = match str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => {
            let before = &text[..error.valid_up_to()];
            let line = line + memchr::memchr_iter(b'\n', before).count() as u64;
            let text = "a byte is not UTF-8; convert the file".to_owned();
            return out.problem(line, Rule::Syntax, text);
        }
    };
    let at = |of_text: usize| line + (of_text as u64).saturating_sub(1);
    match yaml::read(text, out.writer) {
        Ok(Some(first)) => out.document(at(first)),
        // Comments, white space or null: generators of YAML leave them behind. opm refuses them.
        Ok(None) => Ok(()),
        Err(wrong) => out.problem(at(wrong.at.line), Rule::Syntax, wrong.reason),
    }
}

/// Output of a file.
struct FileOutput<'a> {
    file: &'a Arc<Path>,
    /// The latest document.
    writer: &'a mut JsonWriter,
    sink: &'a mut BatchSink,
}

impl FileOutput<'_> {
    /// Emits the written document.
    fn document(&mut self, line: u64) -> Result<(), ReceiverDropped> {
        match head(self.writer) {
            Ok(head) => self.sink.document(Document {
                schema: head.schema,
                package: head.package,
                name: head.name,
                json: self.writer.text().to_owned(),
                origin: self.origin(line),
            }),
            Err((head, text)) => {
                let is_custom = !head.schema.is_empty() && !is_core(&head.schema);
                self.sink.problem(CatalogProblem {
                    origin: Some(self.origin(line)),
                    package: if head.schema == PACKAGE {
                        head.name
                    } else {
                        head.package
                    },
                    rule: if is_custom {
                        Rule::CustomDocument
                    } else {
                        Rule::Document
                    },
                    text,
                })
            }
        }
    }

    fn problem(&mut self, line: u64, rule: Rule, text: String) -> Result<(), ReceiverDropped> {
        self.sink.problem(CatalogProblem {
            origin: Some(self.origin(line)),
            package: String::new(),
            rule,
            text,
        })
    }

    fn error(&mut self, line: u64, error: &CutError) -> Result<(), ReceiverDropped> {
        let text = match error {
            CutError::Io(error) => format!("it cannot be read: {error}"),
            CutError::TooLarge => format!(
                "a document is larger than {} MiB; what follows is not read",
                MAX_DOCUMENT_BYTES >> 20
            ),
        };
        self.problem(line, Rule::Readable, text)
    }

    fn origin(&self, line: u64) -> DocumentOrigin {
        DocumentOrigin {
            file: Arc::clone(self.file),
            line,
        }
    }
}
