//! Short constructors of Ignition's members, all at one position of the document, and changes of objects.

use located_yaml::Position;
use located_yaml::v1_2::{ConfigMember, ConfigNode, NodeValue};

pub(super) fn object<const N: usize>(at: Position, members: [ConfigMember; N]) -> ConfigNode {
    ConfigNode::object(at, members.into())
}

pub(super) fn text(name: &str, at: Position, value: impl Into<String>) -> ConfigMember {
    ConfigMember::new(name, ConfigNode::text(at, value))
}

pub(super) fn flag(name: &str, at: Position, value: bool) -> ConfigMember {
    ConfigMember::new(name, ConfigNode::bool(at, value))
}

pub(super) fn number(name: &str, at: Position, value: i64) -> ConfigMember {
    ConfigMember::new(name, ConfigNode::integer(at, value))
}

pub(super) fn texts<T: AsRef<str>>(name: &str, at: Position, values: &[T]) -> ConfigMember {
    let values = values
        .iter()
        .map(|value| ConfigNode::text(at, value.as_ref()));
    ConfigMember::new(name, ConfigNode::list(at, values.collect()))
}

/// The members of an object; anything else becomes an empty one.
pub(super) fn members_mut(node: &mut ConfigNode) -> &mut Vec<ConfigMember> {
    if !matches!(node.value, NodeValue::Object(_)) {
        node.value = NodeValue::Object(Vec::new());
    }
    match &mut node.value {
        NodeValue::Object(members) => members,
        _ => unreachable!("it was made an object"),
    }
}

/// The member of an object; a new empty object if there is none.
pub(super) fn member_mut<'n>(
    node: &'n mut ConfigNode,
    name: &str,
    at: Position,
) -> &'n mut ConfigNode {
    let members = members_mut(node);
    let index = members.iter().position(|member| member.name == name);
    let index = index.unwrap_or_else(|| {
        members.push(ConfigMember::new(name, ConfigNode::object(at, Vec::new())));
        members.len() - 1
    });
    &mut members[index].node
}

/// Sets a member of an object.
pub(super) fn set(node: &mut ConfigNode, member: ConfigMember) {
    let at = member.node.at;
    *member_mut(node, &member.name, at) = member.node;
}
