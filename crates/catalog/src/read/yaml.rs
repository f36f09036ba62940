//! YAML 1.1, as the peer's library reads it, written in the normal form.
//!
//! What stands between the separators is one document. It becomes a flat list of nodes first, because a node with an
//! anchor is written again wherever it is named.

mod expand;
pub mod located;
mod nodes;
mod quoted;
mod scalar;

use self::nodes::Nodes;
use self::quoted::Deepened;
use super::cut::MAX_DOCUMENT_BYTES;
use crate::normal::{JsonWriter, Malformed, Style};

/// The peer would read the first only, and say nothing.
const UNSEPARATED: &str =
    "another document begins here; put a line `---` before it, or only the first is read";

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlError {
    pub place: Position,
    pub why: String,
}

/// Where something stands in a text, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    /// Units: characters.
    pub column: usize,
}

impl YamlError {
    fn new(place: Position, why: impl Into<String>) -> Self {
        Self {
            place,
            why: why.into(),
        }
    }
}

/// Writes the one document that `text` consists of; returns the line in which it begins, nothing where there is none or
/// it is null.
pub(super) fn read(text: &str, writer: &mut JsonWriter) -> Result<Option<usize>, YamlError> {
    with_nodes(text, UNSEPARATED, |nodes| write(nodes, writer))
}

/// Does `work` with the nodes of the one document that `text` consists of; `beyond` is what to say of another.
fn with_nodes<T>(
    text: &str,
    beyond: &'static str,
    work: impl FnOnce(&Nodes<'_>) -> Result<T, YamlError>,
) -> Result<T, YamlError> {
    match nodes::read(text, beyond) {
        Ok(nodes) => work(&nodes),
        Err(wrong) => match Deepened::new(text) {
            Some(deepened) => match nodes::read(&deepened.text, beyond) {
                Ok(nodes) if deepened.is_harmless(nodes.quoted()) => work(&nodes),
                _ => Err(wrong),
            },
            None => Err(wrong),
        },
    }
}

fn write(nodes: &Nodes<'_>, writer: &mut JsonWriter) -> Result<Option<usize>, YamlError> {
    writer.clear();
    if nodes.is_null() {
        return Ok(None);
    }
    expand::write(nodes, writer, MAX_DOCUMENT_BYTES)?;
    Ok(nodes.first_line())
}

/// One document of YAML 1.1 as JSON, printed as Go does: one line, members sorted, whole numbers with all their digits,
/// `<`, `>` and `&` escaped. `null` where there is none.
///
/// Errors: it is no YAML, or more than one document.
///
/// # Examples
/// ```
/// let json = catalog::yaml_to_json("b: yes\na: [0x1F, '<']");
/// assert_eq!(json.as_deref(), Ok(r#"{"a":[31,"\u003c"],"b":true}"#));
/// ```
pub fn to_json(text: &str) -> Result<String, Malformed> {
    let mut writer = JsonWriter::new(Style::Go);
    let at_line = |wrong: YamlError| {
        let before = text
            .split_inclusive('\n')
            .take(wrong.place.line.saturating_sub(1));
        Malformed::new(before.map(str::len).sum(), wrong.why)
    };
    match read(text, &mut writer).map_err(at_line)? {
        Some(_) => Ok(writer.into_text()),
        None => Ok("null".to_owned()),
    }
}

#[cfg(test)]
mod tests;
