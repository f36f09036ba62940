//! Indented JSON. Source: `opm render` indents by four spaces.

use std::io::{self, Write};

const INDENT: &str = "    ";

/// Indents JSON of the normal form.
pub(super) fn write(json: &str, out: &mut impl Write) -> io::Result<()> {
    let bytes = json.as_bytes();
    let mut depth = 0;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let end = match byte {
            b'"' => string_end(bytes, at),
            _ => at + 1,
        };
        let token = &bytes[at..end];
        match byte {
            b'{' | b'[' if matches!(bytes.get(end), Some(b'}' | b']')) => {
                out.write_all(&bytes[at..=end])?;
                at = end + 1;
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                out.write_all(token)?;
                break_line(depth, out)?;
            }
            b'}' | b']' => {
                depth -= 1;
                break_line(depth, out)?;
                out.write_all(token)?;
            }
            b',' => {
                out.write_all(token)?;
                break_line(depth, out)?;
            }
            b':' => out.write_all(b": ")?,
            _ => out.write_all(token)?,
        }
        at = end;
    }
    out.write_all(b"\n")
}

/// Offset after the closing quote of the string at `start`.
fn string_end(json: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &json[at..]) {
        at += found + 1;
        if json[at - 1] == b'"' {
            return at;
        }
        at += 1;
    }
    json.len()
}

fn break_line(depth: usize, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"\n")?;
    (0..depth).try_for_each(|_| out.write_all(INDENT.as_bytes()))
}
