//! The members of every object of Ignition 3.0 to 3.6, as one table: [`CONFIG`] is its root.
//!
//! Everything that handles configurations without knowing their meaning walks this table: the strict check, merging,
//! conversion. In snake case ([`butane_name`]) it is the schema of Butane, too.
//! Source: coreos/ignition, config/v3_0/types/schema.go to config/v3_6/types/schema.go.

mod tables;

pub use tables::{
    CLEVIS, CLEVIS_CUSTOM, CONFIG, DIRECTORY, DISK, DROPIN, FILE, FILESYSTEM, HTTP_HEADER,
    IGNITION, KERNEL_ARGUMENTS, LINK, LUKS, OWNER, PARTITION, PASSWD, PASSWD_GROUP, PASSWD_USER,
    PROXY, RAID, REFERENCE, REFERENCES, RESOURCE, STORAGE, SYSTEMD, TANG, TLS, UNIT, VERIFICATION,
};

use located_yaml::v1_2::ConfigNode;

use crate::config::SpecVersion;

/// An object of the specification.
#[derive(Debug)]
pub struct ObjectSchema {
    /// Members in the specification's order.
    pub members: &'static [MemberSchema],
    /// The member that identifies an item in a list of such objects.
    pub key: ItemKey,
}

/// The identity of a list's item, for merging and for the search of duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKey {
    /// Never in a list.
    None,
    /// The member of this name.
    Member(&'static str),
    /// `number` unless it is 0, else `label`.
    Partition,
}

/// A member of an object.
#[derive(Debug)]
pub struct MemberSchema {
    /// Name.
    pub name: &'static str,
    /// The first version that has it.
    pub since: SpecVersion,
    /// Its values.
    pub kind: ValueKind,
    /// Whether the specification demands it.
    pub is_required: bool,
    /// How its items merge, if it is a list.
    pub merging: ListMerging,
}

/// The values of a member.
#[derive(Debug, Clone, Copy)]
pub enum ValueKind {
    /// True or false.
    Bool,
    /// A whole number of 64 bits.
    Integer,
    /// Text.
    Text,
    /// An object.
    Object(&'static ObjectSchema),
    /// A list of texts, each its own key.
    Texts,
    /// A list of objects.
    Objects(&'static ObjectSchema),
}

/// How the items of a parent's and a child's list become one list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListMerging {
    /// Items of the same key become one.
    ByKey,
    /// As `ByKey`; all lists of the object with the same group share one set of keys.
    Shared(&'static str),
    /// The child's items follow the parent's; repeated items stay.
    Append,
    /// As `ByKey`; a child's item without `value` removes the parent's.
    Headers,
}

impl ObjectSchema {
    /// The member of this name in any version.
    pub fn member(&self, name: &str) -> Option<&'static MemberSchema> {
        self.members.iter().find(|member| member.name == name)
    }
}

impl ValueKind {
    /// The identity of an item in a list of this kind.
    /// Source: coreos/ignition, the functions `Key` of config/v3_5/types.
    pub(crate) fn item_key(self, item: &ConfigNode) -> String {
        let text = |name: &str| item.get(name).and_then(ConfigNode::as_text);
        let key = match self {
            Self::Objects(object) => object.key,
            _ => return item.as_text().unwrap_or_default().to_owned(),
        };
        match key {
            ItemKey::None => String::new(),
            ItemKey::Member(name) => text(name).unwrap_or_default().to_owned(),
            ItemKey::Partition => {
                let number = item.get("number").and_then(ConfigNode::as_integer);
                match (number.filter(|number| *number != 0), text("label")) {
                    (Some(number), _) => format!("number:{number}"),
                    (None, Some(label)) => format!("label:{label}"),
                    (None, None) => String::new(),
                }
            }
        }
    }
}

/// The name of a member in Butane: `sizeMiB` is `size_mib`.
pub fn butane_name(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.replace("MiB", "Mib").chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Objects reachable from the root, each once.
    fn objects() -> Vec<&'static ObjectSchema> {
        let mut found: Vec<&'static ObjectSchema> = vec![&CONFIG];
        let mut next = 0;
        while let Some(object) = found.get(next) {
            next += 1;
            for member in object.members {
                if let ValueKind::Object(inner) | ValueKind::Objects(inner) = member.kind
                    && !found.iter().any(|other| std::ptr::eq(*other, inner))
                {
                    found.push(inner);
                }
            }
        }
        found
    }

    #[test]
    fn the_table_is_sound() {
        let objects = objects();
        assert_eq!(objects.len(), 32);
        for object in objects {
            let names: BTreeSet<_> = object.members.iter().map(|member| member.name).collect();
            assert_eq!(names.len(), object.members.len(), "{names:?}");
            let mut sorted: Vec<_> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
            sorted.sort();
            let listed: Vec<_> = object
                .members
                .iter()
                .map(|member| member.name.to_ascii_lowercase())
                .collect();
            assert_eq!(listed, sorted, "members are in order");
            if let ItemKey::Member(key) = object.key {
                assert!(object.member(key).is_some(), "{key}");
            }
            for member in object.members {
                if let ValueKind::Objects(inner) = member.kind {
                    let needs_key = member.merging != ListMerging::Append;
                    assert!(!needs_key || inner.key != ItemKey::None, "{}", member.name);
                }
            }
        }
    }

    #[test]
    fn butane_names_are_snake_case() {
        for (name, snake) in [
            ("sizeMiB", "size_mib"),
            ("typeGuid", "type_guid"),
            ("sshAuthorizedKeys", "ssh_authorized_keys"),
            ("httpResponseHeaders", "http_response_headers"),
            ("tpm2", "tpm2"),
            ("noProxy", "no_proxy"),
            ("wipePartitionEntry", "wipe_partition_entry"),
        ] {
            assert_eq!(butane_name(name), snake);
        }
    }
}
