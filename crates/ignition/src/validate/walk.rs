//! The walk through the table: checks of every object, and duplicates in every list.

use std::collections::HashMap;

use super::CHECKS;
use super::node::{CheckedNode, Step};
use crate::path::NodePath;
use crate::problem::{ProblemList, quoted};
use crate::schema::{ItemKey, ListMerging, ObjectSchema, ValueKind};

pub(super) fn object(
    checked: &CheckedNode<'_>,
    schema: &'static ObjectSchema,
    problems: &mut ProblemList,
) {
    for (of, check) in CHECKS {
        if std::ptr::eq(*of, schema) {
            check(checked, problems);
        }
    }
    duplicates(checked, schema, problems);
    for row in schema.members {
        let Some(node) = checked.node.get(row.name) else {
            continue;
        };
        let path = NodePath::Member(checked.path, row.name);
        let visit = |node, path: &NodePath<'_>, inner, problems: &mut ProblemList| {
            let version = checked.version;
            let inner_node = CheckedNode {
                node,
                path,
                version,
            };
            object(&inner_node, inner, problems);
        };
        match row.kind {
            ValueKind::Object(inner) => visit(node, &path, inner, problems),
            ValueKind::Objects(inner) => {
                for (index, item) in node.items().iter().enumerate() {
                    visit(item, &NodePath::Item(&path, index), inner, problems);
                }
            }
            _ => {}
        }
    }
}

/// Items of the same key within one list, or within lists that share their keys.
fn duplicates(
    checked: &CheckedNode<'_>,
    schema: &'static ObjectSchema,
    problems: &mut ProblemList,
) {
    let mut first: HashMap<(&str, String), (&str, usize)> = HashMap::new();
    for row in schema.members {
        let group = match row.merging {
            ListMerging::Append => continue,
            ListMerging::Shared(group) => group,
            ListMerging::ByKey | ListMerging::Headers => row.name,
        };
        for (index, item) in checked.items(row.name).iter().enumerate() {
            let key = row.kind.item_key(item);
            let shown = shown(row.kind, &key);
            let place = (row.name, index);
            if let Some((name, index)) = first.insert((group, key), place) {
                let above = NodePath::Member(checked.path, name);
                let first = NodePath::Item(&above, index);
                let reason = format!("{shown} is already used at {first}");
                let steps = [Step::Member(row.name), Step::Item(place.1)];
                checked.refuse(problems, &steps, reason);
            }
        }
    }
}

/// A key for a message. URLs stay out of it: they may have credentials.
fn shown(kind: ValueKind, key: &str) -> String {
    match kind {
        ValueKind::Objects(ObjectSchema { key: of, .. }) => match of {
            ItemKey::Partition => key.replacen(':', " ", 1),
            ItemKey::Member(name @ ("source" | "url")) => format!("the same {name}"),
            _ => quoted(key),
        },
        _ => quoted(key),
    }
}
