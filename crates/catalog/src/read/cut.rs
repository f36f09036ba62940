//! Cuts a file into its documents, without reading what is in them.

use std::io::{self, Read};

use memchr::memmem;

/// The largest document: what the memory has to hold several times.
pub const MAX_DOCUMENT_BYTES: usize = 512 << 20;
/// How much is read from a file at once.
const BLOCK_BYTES: usize = 256 << 10;
/// What parts documents in YAML, where it begins a line.
pub(super) const SEPARATOR: &[u8] = b"---";

/// A file, from where it has been read to.
pub(super) struct Input<R> {
    source: R,
    buffer: Vec<u8>,
    /// Where in the buffer what has not been read yet begins.
    at: usize,
    /// Of the file, where that begins; from 1.
    line: u64,
    is_at_end: bool,
    /// How much of it may be in memory. Units: bytes.
    limit: usize,
}

/// Why a file cannot be cut.
#[derive(Debug)]
pub(super) enum Stuck {
    Io(io::Error),
    TooLarge,
}

impl From<io::Error> for Stuck {
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

    /// What has been read from the file and not been passed.
    pub(super) fn rest(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Goes past the next bytes.
    pub(super) fn pass(&mut self, length: usize) {
        let passed = &self.buffer[self.at..self.at + length];
        self.line += memchr::memchr_iter(b'\n', passed).count() as u64;
        self.at += length;
    }

    /// Whether the file goes on with `start`.
    pub(super) fn starts_with(&mut self, start: &[u8]) -> Result<bool, Stuck> {
        while self.rest().len() < start.len() && self.more()? {}
        Ok(self.rest().starts_with(start))
    }

    /// How far ahead the first byte is that is no white space, and which it is; nothing where there is none.
    pub(super) fn peek(&mut self) -> Result<Option<(usize, u8)>, Stuck> {
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

    /// The length of the object of JSON that begins here; where the file ends within it, the length of what is there.
    pub(super) fn object(&mut self) -> Result<usize, Stuck> {
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

    /// The length of this line, with its end.
    pub(super) fn end_of_line(&mut self) -> Result<usize, Stuck> {
        self.find(0, b"\n", 1)
    }

    /// The length of all up to the next line, after this one, that begins with [`SEPARATOR`].
    pub(super) fn chunk(&mut self) -> Result<usize, Stuck> {
        self.find(0, b"\n---", 1)
    }

    /// Where the first `sought` from `from` on begins, and `kept` bytes more; otherwise the end of the file.
    fn find(&mut self, from: usize, sought: &[u8], kept: usize) -> Result<usize, Stuck> {
        let finder = memmem::Finder::new(sought);
        let mut from = from;
        loop {
            if let Some(at) = finder.find(&self.rest()[from..]) {
                return Ok(from + at + kept);
            }
            // What is sought may have been cut by the end of what has been read.
            from = from.max((self.rest().len() + 1).saturating_sub(sought.len()));
            if !self.more()? {
                return Ok(self.rest().len());
            }
        }
    }

    /// Reads more of the file; says whether there was more.
    fn more(&mut self) -> Result<bool, Stuck> {
        if self.is_at_end {
            return Ok(false);
        }
        if self.rest().len() > self.limit {
            return Err(Stuck::TooLarge);
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let mut block = self.source.by_ref().take(BLOCK_BYTES as u64);
        let read = block.read_to_end(&mut self.buffer)?;
        self.is_at_end = read < BLOCK_BYTES;
        Ok(read > 0)
    }
}

/// Finds the brace that closes an object.
#[derive(Default)]
struct Braces {
    /// Up to where the text has been looked at.
    at: usize,
    depth: usize,
    is_in_text: bool,
}

impl Braces {
    /// The length of the object that `text` begins with; nothing where it goes on. To be asked again with a longer text.
    fn end(&mut self, text: &[u8]) -> Option<usize> {
        while let Some(rest) = text.get(self.at..).filter(|rest| !rest.is_empty()) {
            if self.is_in_text {
                let Some(next) = memchr::memchr2(b'"', b'\\', rest) else {
                    self.at = text.len();
                    return None;
                };
                self.is_in_text = rest[next] == b'\\';
                // What follows a backslash closes nothing, even where it has not been read yet.
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

    /// Gives so many bytes at a time.
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
            input.pass(ahead);
            let length = input.object().unwrap();
            let text = String::from_utf8(input.rest()[..length].to_vec()).unwrap();
            found.push((input.line(), text));
            input.pass(length);
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
    fn what_is_not_closed_goes_to_the_end() {
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
            input.pass(length);
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
            input.pass(ahead);
            let length = input.object().unwrap();
            input.pass(length);
            count += 1;
            assert!(input.buffer.capacity() <= 4 * BLOCK_BYTES);
        }
        assert_eq!(count, 20_000);
    }

    #[test]
    fn an_object_without_an_end_is_not_read_for_ever() {
        let mut input = Input::new(Cursor::new("{\"").chain(repeat(b'x')));
        input.limit = 1 << 20;
        assert!(matches!(input.object(), Err(Stuck::TooLarge)));
        let mut input = Input::new(repeat(b'\n'));
        input.limit = 1 << 20;
        assert!(matches!(input.chunk(), Err(Stuck::TooLarge)));
    }
}
