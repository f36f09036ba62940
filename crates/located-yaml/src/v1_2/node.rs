//! Values and members with their positions.

use serde_json::{Map, Number, Value};

use crate::Position;

/// A value with its position.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigNode {
    /// Start of the value.
    pub at: Position,
    /// The value.
    pub value: NodeValue,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeValue {
    /// Null, a bool, a number or text.
    Scalar {
        /// Its resolved type.
        kind: ScalarKind,
        /// Its text: without quotes and escapes, otherwise as it is written.
        text: String,
    },
    /// Items in order.
    List(Vec<ConfigNode>),
    /// Members in order. JSON may name one twice; YAML may not.
    Object(Vec<ConfigMember>),
}

/// The type of a scalar, with its value where the text has several spellings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScalarKind {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A number without fraction and exponent.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// Text, also plain text of YAML.
    Text,
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigMember {
    /// Name as it is written.
    pub name: String,
    /// Start of the name.
    pub at: Position,
    /// Value.
    pub node: ConfigNode,
}

impl ConfigMember {
    /// A member whose name and value have the same position.
    pub fn new(name: impl Into<String>, node: ConfigNode) -> Self {
        Self {
            name: name.into(),
            at: node.at,
            node,
        }
    }
}

impl ConfigNode {
    /// Text.
    pub fn text(at: Position, text: impl Into<String>) -> Self {
        Self::scalar(at, ScalarKind::Text, text)
    }

    /// True or false.
    pub fn bool(at: Position, value: bool) -> Self {
        Self::scalar(at, ScalarKind::Bool(value), value.to_string())
    }

    /// A whole number.
    pub fn integer(at: Position, value: i64) -> Self {
        Self::scalar(at, ScalarKind::Integer(value), value.to_string())
    }

    /// A list.
    pub fn list(at: Position, items: Vec<Self>) -> Self {
        let value = NodeValue::List(items);
        Self { at, value }
    }

    /// An object.
    pub fn object(at: Position, members: Vec<ConfigMember>) -> Self {
        let value = NodeValue::Object(members);
        Self { at, value }
    }

    pub(super) fn scalar(at: Position, kind: ScalarKind, text: impl Into<String>) -> Self {
        let text = text.into();
        let value = NodeValue::Scalar { kind, text };
        Self { at, value }
    }

    /// The last member of this name that is not null; none in anything but an object.
    pub fn get(&self, name: &str) -> Option<&Self> {
        let members = self.members().iter().rev();
        let mut found = members.filter(|member| member.name == name);
        found.find_map(|member| (!member.node.is_null()).then_some(&member.node))
    }

    /// As [`get`](Self::get), to change it.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Self> {
        let NodeValue::Object(members) = &mut self.value else {
            return None;
        };
        let mut found = members.iter_mut().rev().map(|member| {
            let is_wanted = member.name == name && !member.node.is_null();
            is_wanted.then_some(&mut member.node)
        });
        found.find_map(|node| node)
    }

    /// The value at a path of members, as [`get`](Self::get).
    pub fn find(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, name| node.get(name))
    }

    /// Members of an object; none in anything else.
    pub fn members(&self) -> &[ConfigMember] {
        match &self.value {
            NodeValue::Object(members) => members,
            _ => &[],
        }
    }

    /// Items of a list; none in anything else.
    pub fn items(&self) -> &[Self] {
        match &self.value {
            NodeValue::List(items) => items,
            _ => &[],
        }
    }

    /// The text of a text scalar.
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Scalar {
                kind: ScalarKind::Text,
                text,
            } => Some(text),
            _ => None,
        }
    }

    /// The value of a bool.
    pub fn as_bool(&self) -> Option<bool> {
        match self.value {
            NodeValue::Scalar {
                kind: ScalarKind::Bool(value),
                ..
            } => Some(value),
            _ => None,
        }
    }

    /// The value of a whole number.
    pub fn as_integer(&self) -> Option<i64> {
        match self.value {
            NodeValue::Scalar {
                kind: ScalarKind::Integer(value),
                ..
            } => Some(value),
            _ => None,
        }
    }

    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        matches!(
            self.value,
            NodeValue::Scalar {
                kind: ScalarKind::Null,
                ..
            }
        )
    }

    /// The type in words, for messages.
    pub fn type_name(&self) -> &'static str {
        match self.value {
            NodeValue::List(_) => "a list",
            NodeValue::Object(_) => "an object",
            NodeValue::Scalar { kind, .. } => match kind {
                ScalarKind::Null => "null",
                ScalarKind::Bool(_) => "true or false",
                ScalarKind::Integer(_) => "a whole number",
                ScalarKind::Float(_) => "a number that is no 64-bit integer",
                ScalarKind::Text => "text",
            },
        }
    }

    /// The number of values, this one included.
    pub fn count(&self) -> usize {
        1 + match &self.value {
            NodeValue::Scalar { .. } => 0,
            NodeValue::List(items) => items.iter().map(Self::count).sum(),
            NodeValue::Object(members) => members.iter().map(|member| member.node.count()).sum(),
        }
    }

    /// The length of all names and scalars. Units: bytes.
    pub(super) fn text_bytes(&self) -> usize {
        match &self.value {
            NodeValue::Scalar { text, .. } => text.len(),
            NodeValue::List(items) => items.iter().map(Self::text_bytes).sum(),
            NodeValue::Object(members) => members
                .iter()
                .map(|member| member.name.len() + member.node.text_bytes())
                .sum(),
        }
    }

    /// The value without positions. Of a member that comes twice, the last counts.
    pub fn to_json(&self) -> Value {
        match &self.value {
            NodeValue::List(items) => items.iter().map(Self::to_json).collect(),
            NodeValue::Object(members) => {
                let members = members.iter();
                let members = members.map(|member| (member.name.clone(), member.node.to_json()));
                Value::Object(members.collect::<Map<_, _>>())
            }
            NodeValue::Scalar { kind, text } => match *kind {
                ScalarKind::Null => Value::Null,
                ScalarKind::Bool(value) => Value::Bool(value),
                ScalarKind::Integer(value) => Value::from(value),
                ScalarKind::Float(value) => {
                    Number::from_f64(value).map_or(Value::Null, Value::Number)
                }
                ScalarKind::Text => Value::String(text.clone()),
            },
        }
    }
}
