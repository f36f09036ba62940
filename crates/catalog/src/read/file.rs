//! Reads one file: which of JSON and YAML it is, and where each document begins.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;
use std::str;
use std::sync::Arc;

use super::cut::{Input, MAX_DOCUMENT_BYTES, SEPARATOR, Stuck};
use super::head::head;
use super::{BatchSink, FileSource, ReceiverGone, yaml};
use crate::normal::JsonWriter;
use crate::{CatalogProblem, Document, DocumentOrigin, Rule};

const UTF8_MARK: &[u8] = &[0xef, 0xbb, 0xbf];
const UTF16_MARKS: [&[u8]; 2] = [&[0xff, 0xfe], &[0xfe, 0xff]];

/// Reads the file `source`, which is called `file`. `writer` is just memory.
pub(super) fn read(
    source: FileSource,
    file: &Arc<Path>,
    writer: &mut JsonWriter,
    sink: &mut BatchSink,
) -> Result<(), ReceiverGone> {
    let out = &mut Out { file, writer, sink };
    let content = match source.open() {
        Ok(content) => content,
        Err(error) => return out.stuck(1, &Stuck::Io(error)),
    };
    let mut input = Input::new(content);
    match documents(&mut input, out) {
        Ok(()) => Ok(()),
        Err(Stop::ReceiverGone) => Err(ReceiverGone),
        Err(Stop::Stuck(stuck)) => out.stuck(input.line(), &stuck),
    }
}

/// Why reading a file ends early.
enum Stop {
    ReceiverGone,
    Stuck(Stuck),
}

impl From<ReceiverGone> for Stop {
    fn from(_: ReceiverGone) -> Self {
        Self::ReceiverGone
    }
}

impl From<Stuck> for Stop {
    fn from(stuck: Stuck) -> Self {
        Self::Stuck(stuck)
    }
}

fn documents(input: &mut Input<impl Read>, out: &mut Out<'_>) -> Result<(), Stop> {
    for mark in UTF16_MARKS {
        if input.starts_with(mark)? {
            let text = "the file is UTF-16; catalogs are read as UTF-8: convert it";
            return Ok(out.problem(1, Rule::Syntax, text.to_owned())?);
        }
    }
    if input.starts_with(UTF8_MARK)? {
        // As the peer has it: JSON that begins with a mark is read as YAML, which it is too.
        input.pass(UTF8_MARK.len());
        return yaml(input, out);
    }
    match input.peek()? {
        Some((_, b'{')) => json(input, out),
        _ => yaml(input, out),
    }
}

/// Objects, one after the other. Where the first or the second is none, the rest is YAML: a document of JSON before
/// others of YAML, or YAML that only looks like JSON.
fn json(input: &mut Input<impl Read>, out: &mut Out<'_>) -> Result<(), Stop> {
    let mut count = 0;
    while let Some((ahead, first)) = input.peek()? {
        let may_be_yaml = count < 2;
        count += 1;
        if first != b'{' && may_be_yaml {
            let line_end = input.rest()[..ahead].iter().position(|&it| it == b'\n');
            input.pass(line_end.map_or(ahead, |at| at + 1));
            return yaml(input, out);
        }
        input.pass(ahead);
        let line = input.line();
        if first != b'{' {
            let text = "an object of JSON was expected; what follows is not read";
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
        input.pass(length);
    }
    Ok(())
}

/// Whether what JSON it is not is YAML at least.
fn is_yaml(input: &mut Input<impl Read>, writer: &mut JsonWriter) -> Result<bool, Stuck> {
    let length = match input.chunk() {
        Err(Stuck::TooLarge) => return Ok(false),
        length => length?,
    };
    let Ok(text) = str::from_utf8(&input.rest()[..length]) else {
        return Ok(false);
    };
    let read = yaml::read(text, writer);
    Ok(matches!(read, Ok(Some(_))) && writer.is_object())
}

/// Documents of YAML. A separator ends one; a second one may begin the next.
fn yaml(input: &mut Input<impl Read>, out: &mut Out<'_>) -> Result<(), Stop> {
    loop {
        let begun_in = input.line();
        let begun = separator(input, out)?;
        let line = input.line();
        let length = if input.starts_with(SEPARATOR)? {
            0
        } else {
            input.chunk()?
        };
        match (begun, length) {
            (None, 0) => return Ok(()),
            (Some(Separator::Good), 0) => {
                let text = "nothing stands behind this line; remove it";
                out.problem(begun_in, Rule::Document, text.to_owned())?;
            }
            (Some(Separator::Bad), _) => {}
            (None | Some(Separator::Good), _) => chunk(&input.rest()[..length], line, out)?,
        }
        input.pass(length);
        separator(input, out)?;
    }
}

enum Separator {
    Good,
    /// What follows has been passed too.
    Bad,
}

/// Goes past a separator where one is.
fn separator(input: &mut Input<impl Read>, out: &mut Out<'_>) -> Result<Option<Separator>, Stop> {
    if !input.starts_with(SEPARATOR)? {
        return Ok(None);
    }
    let line = input.line();
    let length = input.end_of_line()?;
    let after = input.rest()[SEPARATOR.len()..length].trim_ascii();
    if after.is_empty() || after.starts_with(b"#") {
        input.pass(length);
        return Ok(Some(Separator::Good));
    }
    let text = "only a comment may follow `---` in its line; begin the document in the next one";
    out.problem(line, Rule::Syntax, text.to_owned())?;
    let length = input.chunk()?;
    input.pass(length);
    Ok(Some(Separator::Bad))
}

/// What stands between two separators; it begins in `line`.
fn chunk(text: &[u8], line: u64, out: &mut Out<'_>) -> Result<(), ReceiverGone> {
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
        Ok(None) => {
            let text = "there is no document here, only comments, white space or null; remove it";
            out.problem(line, Rule::Document, text.to_owned())
        }
        Err(wrong) => out.problem(at(wrong.place.line), Rule::Syntax, wrong.why),
    }
}

/// What becomes of a file.
struct Out<'a> {
    file: &'a Arc<Path>,
    /// The document that has been read last.
    writer: &'a mut JsonWriter,
    sink: &'a mut BatchSink,
}

impl Out<'_> {
    /// Hands over what has been written.
    fn document(&mut self, line: u64) -> Result<(), ReceiverGone> {
        match head(self.writer) {
            Ok(head) => self.sink.document(Document {
                schema: head.schema,
                package: head.package,
                name: head.name,
                json: self.writer.text().to_owned(),
                origin: self.origin(line),
            }),
            Err((head, text)) => self.sink.problem(CatalogProblem {
                origin: Some(self.origin(line)),
                package: head.package,
                rule: Rule::Document,
                text,
            }),
        }
    }

    fn problem(&mut self, line: u64, rule: Rule, text: String) -> Result<(), ReceiverGone> {
        self.sink.problem(CatalogProblem {
            origin: Some(self.origin(line)),
            package: String::new(),
            rule,
            text,
        })
    }

    fn stuck(&mut self, line: u64, stuck: &Stuck) -> Result<(), ReceiverGone> {
        let text = match stuck {
            Stuck::Io(error) => format!("it cannot be read: {error}"),
            Stuck::TooLarge => format!(
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

/// `text` with U+FFFD in the place of each byte that is not UTF-8.
pub(super) fn repaired(text: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(text) {
        return Cow::Borrowed(text);
    }
    let mut repaired = String::with_capacity(text.len() + text.len() / 8);
    for chunk in text.utf8_chunks() {
        repaired.push_str(chunk.valid());
        let replaced = chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER);
        repaired.extend(replaced);
    }
    Cow::Owned(repaired)
}
