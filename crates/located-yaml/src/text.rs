//! Text of files: invalid UTF-8, and quotations in messages.

use std::borrow::Cow;

/// Replaces each invalid UTF-8 byte by U+FFFD, as Go does.
pub fn repaired(text: &[u8]) -> Cow<'_, str> {
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

/// Longest quotation of names and values in a problem. Units: characters.
const SHOWN: usize = 60;

/// Truncates and quotes a name or a value.
pub fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
