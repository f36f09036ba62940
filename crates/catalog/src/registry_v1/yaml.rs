//! First document of a YAML or JSON file. Source: Kubernetes, `apimachinery/pkg/util/yaml`.

use serde_json::value::RawValue;

use crate::normal::{html_escaped, normalised};
use crate::yaml_to_json;

const SEPARATOR: &str = "---";

/// The first document as JSON: that of JSON files verbatim, that of YAML files as Go converts it.
///
/// Errors: neither JSON nor YAML.
pub(super) fn first_document(content: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(content).map_err(|e| format!("it is not UTF-8: {e}"))?;
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('{') {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        let first = values.next().and_then(Result::ok);
        // Flow style of YAML begins as JSON does.
        if let Some(first) = first {
            return Ok(first.get().to_owned());
        }
    }
    yaml_to_json(first_chunk(text)).map_err(|malformed| {
        let before = &text.as_bytes()[..malformed.at.min(text.len())];
        let line = 1 + memchr::memchr_iter(b'\n', before).count();
        format!("line {line}: {}", malformed.why)
    })
}

/// The text before the second separator: a separator at the start of the file belongs to no document.
fn first_chunk(text: &str) -> &str {
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let rest = line.strip_prefix(SEPARATOR);
        if rest.is_some_and(|rest| rest.trim().is_empty()) {
            if at > start {
                return &text[start..at];
            }
            start = at + line.len();
        }
        at += line.len();
    }
    &text[start..]
}

/// JSON as Go prints it: members sorted, `<`, `>` and `&` escaped.
///
/// Errors: not JSON.
pub(super) fn as_go_prints(json: &str) -> Result<String, String> {
    let json = normalised(json).map_err(|e| e.to_string())?;
    // These three are in strings only.
    Ok(html_escaped(&json).into_owned())
}
