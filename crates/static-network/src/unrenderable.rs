//! Refusals of a configuration that keyfiles cannot express, each with its place in the document.

use std::fmt;

use located_yaml::Position;
use located_yaml::v1_2::ConfigNode;

/// Longest reason; a value or a list of known names may be part of it. Units: characters.
const REASON_LENGTH: usize = 300;

/// A step of a path in the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathStep {
    Member(String),
    Item(usize),
}

/// A part that keyfiles cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unrenderable {
    path: Vec<PathStep>,
    reason: String,
}

impl From<String> for Unrenderable {
    fn from(reason: String) -> Self {
        Self {
            path: Vec::new(),
            reason,
        }
    }
}

impl From<&str> for Unrenderable {
    fn from(reason: &str) -> Self {
        reason.to_owned().into()
    }
}

impl Unrenderable {
    /// A refusal of the member `name`.
    pub(crate) fn member(name: &str, reason: impl Into<String>) -> Self {
        Self::from(reason.into()).below(name)
    }

    /// An error of serde, whose path begins at the document.
    pub(crate) fn from_serde(error: serde_path_to_error::Error<serde_json::Error>) -> Self {
        use serde_path_to_error::Segment;
        let steps = error.path().iter().filter_map(|segment| match segment {
            Segment::Seq { index } => Some(PathStep::Item(*index)),
            Segment::Map { key } => Some(PathStep::Member(key.clone())),
            Segment::Enum { .. } | Segment::Unknown => None,
        });
        let path = steps.collect();
        let reason = error.into_inner().to_string();
        let name = || reason.split('`').nth(1).unwrap_or_default();
        let path: Vec<PathStep> = path;
        let is_kind = matches!(
            &path[..],
            [PathStep::Member(list), _, PathStep::Member(member)]
                if list == "interfaces" && member == "type"
        );
        // The known names are dozens.
        let reason = if reason.starts_with("unknown field ") {
            format!("keyfiles cannot express the member {}", name())
        } else if is_kind && reason.starts_with("unknown variant ") {
            format!("keyfiles cannot express the type {}", name())
        } else {
            reason
        };
        Self { path, reason }
    }

    /// The refusal with the member `name` in front of its path.
    pub(crate) fn below(mut self, name: &str) -> Self {
        self.path.insert(0, PathStep::Member(name.to_owned()));
        self
    }

    /// The refusal with the item `index` of the member `name` in front of its path.
    pub(crate) fn below_item(mut self, name: &str, index: usize) -> Self {
        self.path.insert(0, PathStep::Item(index));
        self.below(name)
    }

    /// The position of the part, or of the deepest one around it that the document has.
    pub(crate) fn position(&self, document: &ConfigNode) -> Position {
        let mut node = document;
        for step in &self.path {
            let inner = match step {
                PathStep::Member(name) => node.get(name),
                PathStep::Item(index) => node.items().get(*index),
            };
            match inner {
                Some(inner) => node = inner,
                None => break,
            }
        }
        node.at
    }

    /// The path, with a dot or an index in front.
    pub(crate) fn path(&self) -> String {
        self.path.iter().map(ToString::to_string).collect()
    }

    /// The reason; one about an interface names it and its type.
    pub(crate) fn reason(&self, document: &ConfigNode) -> String {
        let reason = shortened(&self.reason, REASON_LENGTH);
        let [PathStep::Member(list), PathStep::Item(index), ..] = &self.path[..] else {
            return reason;
        };
        let interface = document
            .get(list)
            .filter(|_| list == "interfaces")
            .and_then(|list| list.items().get(*index));
        let Some(interface) = interface else {
            return reason;
        };
        let text = |member: &str| {
            let text = interface.get(member).and_then(ConfigNode::as_text);
            text.map(|text| shortened(text, 80))
        };
        let name = text("name").unwrap_or_else(|| "without a name".to_owned());
        let kind = text("type").unwrap_or_else(|| "ethernet".to_owned());
        format!("interface {name} of type {kind}: {reason}")
    }
}

impl fmt::Display for PathStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(name) => write!(f, ".{}", shortened(name, 80)),
            Self::Item(index) => write!(f, "[{index}]"),
        }
    }
}

/// The beginning of a text.
pub(crate) fn shortened(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
