//! Splits a file into documents without parsing them.

use std::io::{self, Read};

use memchr::memmem;

/// Largest document; memory holds it several times.
pub const MAX_DOCUMENT_BYTES: usize = 512 << 20;
/// Read size.
const BLOCK_BYTES: usize = 256 << 10;
/// Document separator of YAML, at the start of a line.
pub(super) const SEPARATOR: &[u8] = b"---";

/// Buffered input of a file.
pub(super) struct Input<R> {
    source: R,
    buffer: Vec<u8>,
    /// Position in the buffer.
    at: usize,
    /// Line of that position, from 1.
    line: u64,
    is_at_end: bool,
    /// Most bytes in memory.
    limit: usize,
}

/// Failure to split a file.
#[derive(Debug)]
pub(super) enum CutError {
    Io(io::Error),
    TooLarge,
}

impl From<io::Error> for CutError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl<R: Read> Input<R> {
    pub(super) fn new(source: R) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            at: 0,
            line: 1,
            is_at_end: false,
            limit: MAX_DOCUMENT_BYTES,
        }
    }

    /// Buffered bytes after the position.
    pub(super) fn rest(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Advances by `length` bytes.
    pub(super) fn advance(&mut self, length: usize) {
        let passed = &self.buffer[self.at..self.at + length];
        self.line += memchr::memchr_iter(b'\n', passed).count() as u64;
        self.at += length;
    }

    /// Whether the rest starts with `start`.
    pub(super) fn starts_with(&mut self, start: &[u8]) -> Result<bool, CutError> {
        while self.rest().len() < start.len() && self.more()? {}
        Ok(self.rest().starts_with(start))
    }

    /// Distance and value of the first byte after white space; `None` at the end.
    pub(super) fn peek(&mut self) -> Result<Option<(usize, u8)>, CutError> {
        let mut ahead = 0;
        loop {
            let spaces = self.rest()[ahead..].iter();
            ahead += spaces.take_while(|byte| byte.is_ascii_whitespace()).count();
            if let Some(&next) = self.rest().get(ahead) {
                return Ok(Some((ahead, next)));
            }
            if !self.more()? {
                return Ok(None);
            }
        }
    }

    /// Length of the JSON object at the position; an unclosed one ends with the file.
    pub(super) fn object(&mut self) -> Result<usize, CutError> {
        let mut braces = Braces::default();
        loop {
            if let Some(end) = braces.end(self.rest()) {
                return Ok(end);
            }
            if !self.more()? {
                return Ok(self.rest().len());
            }
        }
    }

    /// Length of this line, line end included.
    pub(super) fn end_of_line(&mut self) -> Result<usize, CutError> {
        self.find(0, b"\n", 1)
    }

    /// Length up to the next line, after this one, that starts with [`SEPARATOR`].
    pub(super) fn chunk(&mut self) -> Result<usize, CutError> {
        self.find(0, b"\n---", 1)
    }

    /// Offset of the first `sought` from `from`, plus `kept` bytes; the end of the file without one.
    fn find(&mut self, from: usize, sought: &[u8], kept: usize) -> Result<usize, CutError> {
        let finder = memmem::Finder::new(sought);
        let mut from = from;
        loop {
            if let Some(at) = finder.find(&self.rest()[from..]) {
                return Ok(from + at + kept);
            }
            // `sought` may straddle the end of the buffer.
            from = from.max((self.rest().len() + 1).saturating_sub(sought.len()));
            if !self.more()? {
                return Ok(self.rest().len());
            }
        }
    }

    /// Reads the next block; returns whether there was one.
    fn more(&mut self) -> Result<bool, CutError> {
        if self.is_at_end {
            return Ok(false);
        }
        if self.rest().len() > self.limit {
            return Err(CutError::TooLarge);
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let mut block = self.source.by_ref().take(BLOCK_BYTES as u64);
        let read = block.read_to_end(&mut self.buffer)?;
        self.is_at_end = read < BLOCK_BYTES;
        Ok(read > 0)
    }
}

/// Scanner for the closing brace of an object.
#[derive(Default)]
struct Braces {
    /// Scanned length.
    at: usize,
    depth: usize,
    is_in_text: bool,
}

impl Braces {
    /// Length of the object at the start of `text`; `None` while incomplete. Resumes with a longer text.
    fn end(&mut self, text: &[u8]) -> Option<usize> {
        while let Some(rest) = text.get(self.at..).filter(|rest| !rest.is_empty()) {
            if self.is_in_text {
                let Some(next) = memchr::memchr2(b'"', b'\\', rest) else {
                    self.at = text.len();
                    return None;
                };
                self.is_in_text = rest[next] == b'\\';
                // An escaped character closes nothing, even one not read yet.
                self.at += next + 1 + usize::from(self.is_in_text);
                continue;
            }
            let Some(next) = memchr::memchr3(b'"', b'{', b'}', rest) else {
                self.at = text.len();
                return None;
            };
            self.at += next + 1;
            match rest[next] {
                b'"' => self.is_in_text = true,
                b'{' => self.depth += 1,
                _ => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(self.at);
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, repeat};

    use super::*;

    /// Reader of at most so many bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(self.0.len()).min(buffer.len());
            let (now, later) = self.0.split_at(length);
            buffer[..length].copy_from_slice(now);
            self.0 = later;
            Ok(length)
        }
    }

    fn objects(text: &str, step: usize) -> Vec<(u64, String)> {
        let mut input = Input::new(Slow(text.as_bytes(), step));
        let mut found = Vec::new();
        while let Some((ahead, _)) = input.peek().unwrap() {
            input.advance(ahead);
            let length = input.object().unwrap();
            let text = String::from_utf8(input.rest()[..length].to_vec()).unwrap();
            found.push((input.line(), text));
            input.advance(length);
        }
        found
    }

    #[test]
    fn braces_in_texts_end_nothing() {
        let parts = [
            r#"{"a":"}\\"}"#,
            r#"{"\"}":{"{":[{}]}}"#,
            "{\n}",
            r#"{"é\\\"}":1}"#,
        ];
        let text = parts.join("\n ");
        for step in [1, 2, 3, 7, 1000] {
            let found = objects(&text, step);
            let lines: Vec<_> = found.iter().map(|(line, _)| *line).collect();
            let texts: Vec<_> = found.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!((texts.as_slice(), lines), (&parts[..], vec![1, 2, 3, 5]));
        }
    }

    #[test]
    fn unclosed_objects_end_with_the_file() {
        assert_eq!(objects(r#"{}{"a":"}"#, 2)[1].1, r#"{"a":"}"#);
        assert_eq!(objects(r#"{"a\"#, 1)[0].1, r#"{"a\"#);
    }

    #[test]
    fn chunks_end_before_separators_at_the_beginning_of_lines() {
        let text = "a\n --- \nb---\n---\nc";
        for step in [1, 2, 5, 100] {
            let mut input = Input::new(Slow(text.as_bytes(), step));
            let length = input.chunk().unwrap();
            assert_eq!(&text[..length], "a\n --- \nb---\n");
            input.advance(length);
            assert!(input.starts_with(SEPARATOR).unwrap());
            assert_eq!((input.line(), input.end_of_line().unwrap()), (4, 4));
        }
    }

    #[test]
    fn a_long_file_takes_no_more_memory_than_a_short_one() {
        let object = format!("{{\"a\":\"{}\"}}\n", "x".repeat(1000));
        let mut input = Input::new(Cursor::new(object.repeat(20_000)));
        let mut count = 0;
        while let Some((ahead, _)) = input.peek().unwrap() {
            input.advance(ahead);
            let length = input.object().unwrap();
            input.advance(length);
            count += 1;
            assert!(input.buffer.capacity() <= 4 * BLOCK_BYTES);
        }
        assert_eq!(count, 20_000);
    }

    #[test]
    fn endless_objects_are_too_large() {
        let mut input = Input::new(Cursor::new("{\"").chain(repeat(b'x')));
        input.limit = 1 << 20;
        assert!(matches!(input.object(), Err(CutError::TooLarge)));
        let mut input = Input::new(repeat(b'\n'));
        input.limit = 1 << 20;
        assert!(matches!(input.chunk(), Err(CutError::TooLarge)));
    }
}
