//! One record of a file, with the positions of its members.

use located_yaml::Position;
use located_yaml::v1_1::{Located, Value};
use serde::de::DeserializeOwned;

use super::tree::{InOrder, member, members};

/// A record: a whole document, or an item of a list.
#[derive(Clone, Copy)]
pub struct RecordNode<'a> {
    /// Name of the file.
    pub file: &'a str,
    /// Its content.
    pub root: &'a Located,
}

/// A record whose members have other types than expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct DecodeError {
    /// Path of the member.
    pub field: String,
    /// The expected type; values are not repeated.
    pub reason: String,
}

/// A member that was looked for.
pub(crate) struct Lookup<'a> {
    pub(crate) value: Option<&'a Located>,
    /// Position of the value, or of the innermost value around it that exists.
    pub(crate) place: Position,
    /// As `spec.taints[0].key`.
    pub(crate) field: String,
}

impl<'a> RecordNode<'a> {
    /// Kind, as `BareMetalHost`.
    pub fn kind(&self) -> &'a str {
        self.text(&["kind"])
    }

    /// API version, as `metal3.io/v1alpha1`.
    pub fn api_version(&self) -> &'a str {
        self.text(&["apiVersion"])
    }

    /// Name.
    pub fn name(&self) -> &'a str {
        self.text(&["metadata", "name"])
    }

    /// Namespace; empty if it has none.
    pub fn namespace(&self) -> &'a str {
        self.text(&["metadata", "namespace"])
    }

    /// The value at a path; a number selects an element of a list.
    pub fn get(&self, path: &[&str]) -> Option<&'a Located> {
        self.lookup(path).value.filter(|it| it.value != Value::Null)
    }

    /// The text at a path; empty without one.
    pub fn text(&self, path: &[&str]) -> &'a str {
        match self.get(path).map(|it| &it.value) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// The flag at a path.
    pub fn flag(&self, path: &[&str]) -> Option<bool> {
        match self.get(path).map(|it| &it.value) {
            Some(Value::Bool(flag)) => Some(*flag),
            _ => None,
        }
    }

    /// The list at a path.
    pub fn list(&self, path: &[&str]) -> &'a [Located] {
        match self.get(path).map(|it| &it.value) {
            Some(Value::List(list)) => list,
            _ => &[],
        }
    }

    /// Names and texts of the members at a path.
    pub(crate) fn texts(
        &self,
        path: &[&str],
    ) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let all = self.get(path).map(members).unwrap_or_default().iter();
        all.filter_map(|member| match &member.value.value {
            Value::Text(text) => Some((member.name.as_str(), text.as_str())),
            _ => None,
        })
    }

    pub(crate) fn lookup(&self, path: &[&str]) -> Lookup<'a> {
        let mut lookup = Lookup {
            value: Some(self.root),
            place: self.root.place,
            field: String::new(),
        };
        for step in path {
            let value = lookup.value.take();
            let is_list = matches!(value.map(|it| &it.value), Some(Value::List(_)));
            lookup.value = value.and_then(|value| child(value, step));
            if let Some(found) = lookup.value {
                lookup.place = found.place;
            }
            lookup.field = if is_list {
                format!("{}[{step}]", lookup.field)
            } else {
                join(&lookup.field, step)
            };
        }
        lookup
    }

    /// Decodes the record.
    ///
    /// Errors: a member of another type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        let unusable = |reason: String| DecodeError {
            field: String::new(),
            reason,
        };
        let json = serde_json::to_value(InOrder(self.root))
            .map_err(|error| unusable(error.to_string()))?;
        serde_path_to_error::deserialize(json).map_err(|error| {
            let field = error.path().to_string();
            // The texts of serde quote the value.
            let reason = match error.into_inner().to_string() {
                text if text.starts_with("missing field") => text,
                _ => "has another type than expected".to_owned(),
            };
            DecodeError { field, reason }
        })
    }
}

fn child<'a>(value: &'a Located, step: &str) -> Option<&'a Located> {
    match &value.value {
        Value::List(list) => list.get(step.parse::<usize>().ok()?),
        _ => member(value, step).map(|it| &it.value),
    }
}

/// A path with one more name, in brackets where dots would mislead.
pub(crate) fn join(path: &str, name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_".contains(c);
    if !name.chars().all(is_plain) || name.is_empty() {
        return format!("{path}[{}]", name.escape_debug());
    }
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}
