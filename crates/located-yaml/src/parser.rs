//! The parser of both dialects: they differ in the meaning of its events.

use std::borrow::Cow;

use granit_parser::{Event, Marker, Options, Parser, ScanError, Span, Tag};

use super::{DocumentError, Position};

/// The namespace of YAML's own tags.
const YAML_TAGS: &str = "tag:yaml.org,2002:";

/// The events of a text, without comments; lists and objects are nested at most `max_depth` levels deep.
pub(crate) fn events(
    text: &str,
    max_depth: usize,
) -> impl Iterator<Item = Result<(Event<'_>, Span), ScanError>> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.flow_nesting_limit = max_depth;
    options.block_nesting_limit = max_depth;
    Parser::new_from_str_with_options(text, options)
}

pub(crate) fn position(marker: Marker) -> Position {
    Position {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

pub(crate) fn not_yaml(error: &ScanError) -> DocumentError {
    let reason = format!("not YAML: {}", error.info());
    DocumentError::new(position(*error.marker()), reason)
}

/// The name of one of YAML's own tags.
pub(crate) fn own_tag(tag: Option<&Tag>) -> Option<Cow<'_, str>> {
    tag.and_then(|tag| tag.suffix_in_namespace(YAML_TAGS))
}
