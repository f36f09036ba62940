//! Streams JSON into the normal form.

use super::malformed::{MAX_DEPTH, Malformed};
use super::number;
use super::writer::JsonWriter;

impl JsonWriter {
    /// Restarts with the JSON text `source`.
    pub(crate) fn json(&mut self, source: &str) -> Result<(), Malformed> {
        self.clear();
        copy(source, self)
    }
}

/// Appends the single value of `source`.
fn copy(source: &str, writer: &mut JsonWriter) -> Result<(), Malformed> {
    let mut reader = JsonReader { source, at: 0 };
    loop {
        reader.begin_value(writer)?;
        if reader.end_values(writer)? {
            break;
        }
    }
    match reader.peek() {
        None => Ok(()),
        Some(_) => Err(reader.wrong("the end of the document")),
    }
}

struct JsonReader<'a> {
    source: &'a str,
    at: usize,
}

impl JsonReader<'_> {
    /// Opens objects and lists up to the next scalar or empty container, and consumes the scalar.
    fn begin_value(&mut self, writer: &mut JsonWriter) -> Result<(), Malformed> {
        loop {
            match self.peek() {
                Some(b'{') => {
                    self.enter(writer)?;
                    writer.begin_object();
                    if self.peek() == Some(b'}') {
                        return Ok(());
                    }
                    self.key(writer)?;
                }
                Some(b'[') => {
                    self.enter(writer)?;
                    writer.begin_list();
                    if self.peek() == Some(b']') {
                        return Ok(());
                    }
                }
                _ => return self.scalar(writer),
            }
        }
    }

    /// Closes finished containers and advances to the next value; returns whether the document ends.
    fn end_values(&mut self, writer: &mut JsonWriter) -> Result<bool, Malformed> {
        while writer.depth() > 0 {
            match (self.peek(), writer.is_in_object()) {
                (Some(b'}'), true) | (Some(b']'), false) => {
                    self.at += 1;
                    writer.end();
                }
                (Some(b','), is_object) => {
                    self.at += 1;
                    if is_object {
                        self.key(writer)?;
                    }
                    return Ok(false);
                }
                (_, true) => return Err(self.wrong("`,` or `}`")),
                (_, false) => return Err(self.wrong("`,` or `]`")),
            }
        }
        Ok(true)
    }

    fn enter(&mut self, writer: &JsonWriter) -> Result<(), Malformed> {
        if writer.depth() == MAX_DEPTH {
            let why = format!("objects and lists are nested more than {MAX_DEPTH} deep");
            return Err(Malformed::new(self.at, why));
        }
        self.at += 1;
        Ok(())
    }

    fn key(&mut self, writer: &mut JsonWriter) -> Result<(), Malformed> {
        if self.peek() != Some(b'"') {
            return Err(self.wrong("a name in double quotes"));
        }
        self.at = writer.key_from(self.source, self.at + 1)?;
        if self.peek() != Some(b':') {
            return Err(self.wrong("`:`"));
        }
        self.at += 1;
        Ok(())
    }

    fn scalar(&mut self, writer: &mut JsonWriter) -> Result<(), Malformed> {
        let rest = &self.source[self.at..];
        match self.peek() {
            Some(b'"') => {
                self.at = writer.string_from(self.source, self.at + 1)?;
                return Ok(());
            }
            Some(b'-' | b'0'..=b'9') => {
                let length = number::length(rest.as_bytes())
                    .ok_or_else(|| Malformed::new(self.at, "not a JSON number"))?;
                writer.number_from(&rest[..length]).ok_or_else(|| {
                    Malformed::new(self.at, "a number is larger than a 64-bit float")
                })?;
                self.at += length;
                return Ok(());
            }
            _ => {}
        }
        let literal = ["true", "false", "null"]
            .into_iter()
            .find(|literal| rest.starts_with(literal))
            .ok_or_else(|| self.wrong("a value"))?;
        writer.literal(literal);
        self.at += literal.len();
        Ok(())
    }

    /// The next byte after white space.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.source.as_bytes();
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn wrong(&self, expected: &str) -> Malformed {
        let why = match self.source.get(self.at..).and_then(|it| it.chars().next()) {
            Some(char) => format!("{expected} was expected, not {char:?}"),
            None => format!("it ends where {expected} was expected"),
        };
        Malformed::new(self.at, why)
    }
}
