//! YAML 1.1 converted to the normal form.

mod expand;

use located_yaml::DocumentError;
use located_yaml::v1_1::{Nodes, with_nodes};

use super::cut::MAX_DOCUMENT_BYTES;
use crate::normal::{JsonWriter, Malformed, Style};

/// opm silently reads the first document only.
const UNSEPARATED: &str =
    "another document begins here; put a line `---` before it, or only the first is read";

/// Writes the single document of `text`; returns its first line, `None` for an empty or null document.
pub(super) fn read(text: &str, writer: &mut JsonWriter) -> Result<Option<usize>, DocumentError> {
    with_nodes(text, UNSEPARATED, |nodes| write(nodes, writer))
}

fn write(nodes: &Nodes<'_>, writer: &mut JsonWriter) -> Result<Option<usize>, DocumentError> {
    writer.clear();
    if nodes.is_null() {
        return Ok(None);
    }
    expand::write(nodes, writer, MAX_DOCUMENT_BYTES)?;
    Ok(nodes.first_line())
}

/// Converts a YAML 1.1 document to JSON as Go prints it: one line, members sorted, integers with all digits, `<`, `>`
/// and `&` escaped. `null` for an empty document.
///
/// Errors: not YAML, or more than one document.
///
/// # Examples
/// ```
/// let json = catalog::yaml_to_json("b: yes\na: [0x1F, '<']");
/// assert_eq!(json.as_deref(), Ok(r#"{"a":[31,"\u003c"],"b":true}"#));
/// ```
pub fn to_json(text: &str) -> Result<String, Malformed> {
    let mut writer = JsonWriter::new(Style::Go);
    let at_line = |wrong: DocumentError| {
        let before = text
            .split_inclusive('\n')
            .take(wrong.at.line.saturating_sub(1));
        Malformed::new(before.map(str::len).sum(), wrong.reason)
    };
    match read(text, &mut writer).map_err(at_line)? {
        Some(_) => Ok(writer.into_text()),
        None => Ok("null".to_owned()),
    }
}

#[cfg(test)]
mod tests;
