//! The walk over a file by its table of members: names in their own case, values of the right shape, overrides apart.

use located_yaml::Position;
use located_yaml::v1_2::{ConfigMember, ConfigNode, NodeValue, ScalarKind};
use model::{Error, nearest};
use rules::input;
use serde_json::{Map, Value};

use crate::problems::SiteProblems;
use crate::schema::{self, Member, MemberEffect, MemberKind};

/// Characters of a member's name that a refusal repeats.
const SHOWN_NAME: usize = 80;
/// Wrong letters of a name that still suggest a known one.
const TYPOS: usize = 2;

/// A file without unknown, absent and ineffective members.
#[derive(Debug)]
pub(crate) struct FileMembers {
    /// Name of the file.
    pub(crate) file: &'static str,
    /// Members that the declaration reads, or that override the generated install-config.
    pub(crate) root: ConfigNode,
    /// Members that override the generated install-config, as an object like the file.
    pub(crate) overrides: Map<String, Value>,
}

impl FileMembers {
    /// Reads a document by a table.
    pub(crate) fn read(
        file: &'static str,
        document: &ConfigNode,
        table: &'static [Member],
        problems: &mut SiteProblems,
    ) -> Self {
        let mut overrides = Map::new();
        let mut walk = MemberWalk { file, problems };
        let root = walk.object(document, table, "", &mut overrides);
        Self {
            file,
            root,
            overrides,
        }
    }

    /// The value at a path such as `hosts[0].role`.
    pub(crate) fn node(&self, path: &str) -> Option<&ConfigNode> {
        let mut parts = path.split(['.', '[']).filter(|part| !part.is_empty());
        parts.try_fold(&self.root, inner)
    }

    /// The position of the value at a path, or of the closest one above it.
    pub(crate) fn position(&self, path: &str) -> Position {
        let mut node = &self.root;
        let mut parts = path.split(['.', '[']).filter(|part| !part.is_empty());
        while let Some(found) = parts.next().and_then(|part| inner(node, part)) {
            node = found;
        }
        node.at
    }

    /// Text at a path; none for an absent one.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        self.node(path)?.as_text().map(str::to_owned)
    }

    /// A whole number at a path.
    pub(crate) fn integer(&self, path: &str) -> Option<i64> {
        self.node(path)?.as_integer()
    }

    /// True or false at a path.
    pub(crate) fn bool(&self, path: &str) -> Option<bool> {
        self.node(path)?.as_bool()
    }

    /// Number of items of the list at a path.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.node(path).map_or(0, |node| node.items().len())
    }

    /// Texts of the list at a path.
    pub(crate) fn texts(&self, path: &str) -> Option<Vec<String>> {
        let items = self.node(path)?.items().iter();
        Some(
            items
                .filter_map(|item| item.as_text().map(str::to_owned))
                .collect(),
        )
    }

    /// Adds a refusal of the value at a path, unless the check passed.
    pub(crate) fn check<T>(
        &self,
        problems: &mut SiteProblems,
        path: &str,
        checked: Result<T, Error>,
    ) -> Option<T> {
        match checked {
            Ok(value) => Some(value),
            Err(Error::Invalid { reason, .. }) => {
                problems.refuse(self.file, self.position(path), path, reason);
                None
            }
            Err(error) => {
                problems.refuse(self.file, self.position(path), path, error.to_string());
                None
            }
        }
    }

    /// Adds a refusal of the value at a path.
    pub(crate) fn refuse(
        &self,
        problems: &mut SiteProblems,
        path: &str,
        reason: impl Into<String>,
    ) {
        problems.refuse(self.file, self.position(path), path, reason);
    }

    /// Adds a refusal that repeats the value.
    pub(crate) fn refuse_value(
        &self,
        problems: &mut SiteProblems,
        path: &str,
        (value, remedy): (&str, &str),
    ) {
        self.check(
            problems,
            path,
            Err::<(), _>(input::refuse("", value, remedy)),
        );
    }
}

fn inner<'a>(node: &'a ConfigNode, part: &str) -> Option<&'a ConfigNode> {
    match part.strip_suffix(']') {
        Some(index) => node.items().get(index.parse::<usize>().ok()?),
        None => node.get(part),
    }
}

struct MemberWalk<'p> {
    file: &'static str,
    problems: &'p mut SiteProblems,
}

impl MemberWalk<'_> {
    fn object(
        &mut self,
        node: &ConfigNode,
        table: &'static [Member],
        path: &str,
        overrides: &mut Map<String, Value>,
    ) -> ConfigNode {
        let NodeValue::Object(members) = &node.value else {
            self.wrong_type(node, "an object", path);
            return ConfigNode::object(node.at, Vec::new());
        };
        let mut read: Vec<ConfigMember> = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        for given in members {
            let exact = table.iter().find(|row| row.name == given.name);
            let folded = || {
                let mut rows = table.iter();
                rows.find(|row| row.name.eq_ignore_ascii_case(&given.name))
            };
            let Some(row) = exact.or_else(folded) else {
                self.unknown(given, table, path);
                continue;
            };
            let path = below(path, row.name);
            if seen.contains(&row.name) {
                let reason = "is present twice: the installer matches names in any letter case";
                self.problems.refuse(self.file, given.at, &path, reason);
                continue;
            }
            seen.push(row.name);
            if given.node.is_null() {
                continue;
            }
            self.member(given, row, &path, (&mut read, overrides));
        }
        ConfigNode::object(node.at, read)
    }

    fn member(
        &mut self,
        given: &ConfigMember,
        row: &'static Member,
        path: &str,
        (read, overrides): (&mut Vec<ConfigMember>, &mut Map<String, Value>),
    ) {
        match row.effect {
            MemberEffect::None => {}
            MemberEffect::Refused(reason) => {
                self.problems.refuse(self.file, given.at, path, reason);
            }
            MemberEffect::Note(text) => {
                if has_content(&given.node) {
                    self.problems.note(self.file, path, text);
                }
            }
            MemberEffect::Override => {
                let value = self.value(&given.node, row.kind, path, &mut Map::new());
                if let Some(node) = value {
                    overrides.insert(row.name.to_owned(), without_nulls(&node));
                    let (name, at) = (row.name.to_owned(), given.at);
                    read.push(ConfigMember { name, at, node });
                }
            }
            MemberEffect::Declared => {
                let mut inner = Map::new();
                let value = self.value(&given.node, row.kind, path, &mut inner);
                if let Some(node) = value {
                    let (name, at) = (row.name.to_owned(), given.at);
                    read.push(ConfigMember { name, at, node });
                }
                if !inner.is_empty() {
                    overrides.insert(row.name.to_owned(), Value::Object(inner));
                }
            }
        }
    }

    /// A value of the right shape; none, with a refusal, for another one.
    fn value(
        &mut self,
        node: &ConfigNode,
        kind: MemberKind,
        path: &str,
        overrides: &mut Map<String, Value>,
    ) -> Option<ConfigNode> {
        match kind {
            MemberKind::Any => Some(node.clone()),
            MemberKind::Object(table) => Some(self.object(node, table, path, overrides)),
            MemberKind::List(item) => {
                let NodeValue::List(items) = &node.value else {
                    self.wrong_type(node, "a list", path);
                    return None;
                };
                let mut read = Vec::new();
                for (index, given) in items.iter().enumerate() {
                    // An item that is refused keeps the places of those after it.
                    let empty = || ConfigNode::text(given.at, "");
                    let item = self.value(given, *item, &format!("{path}[{index}]"), overrides);
                    read.push(item.unwrap_or_else(empty));
                }
                Some(ConfigNode::list(node.at, read))
            }
            // In a list; in an object it is absent.
            MemberKind::Text if node.is_null() => Some(ConfigNode::text(node.at, "")),
            MemberKind::Text => {
                if let NodeValue::Scalar { text, .. } = &node.value {
                    return Some(ConfigNode::text(node.at, text.clone()));
                }
                self.wrong_type(node, "text", path);
                None
            }
            MemberKind::Integer => {
                if node.as_integer().is_none() {
                    self.wrong_type(node, "a whole number", path);
                    return None;
                }
                Some(node.clone())
            }
            MemberKind::Bool => {
                let value = as_bool(node);
                if value.is_none() {
                    self.wrong_type(node, "true or false", path);
                }
                value.map(|value| ConfigNode::bool(node.at, value))
            }
        }
    }

    fn wrong_type(&mut self, node: &ConfigNode, wanted: &str, path: &str) {
        let found = node.type_name();
        let remedy = match (wanted, found) {
            ("text", "an object" | "a list") => " in quotes",
            ("a whole number", "text") => " without quotes",
            ("a list", "text") => " of one item: put it into [ ]",
            _ => "",
        };
        let reason = format!("is {found}: write {wanted}{remedy}");
        self.problems.refuse(self.file, node.at, path, reason);
    }

    fn unknown(&mut self, given: &ConfigMember, table: &[Member], path: &str) {
        let shown: String = given.name.chars().take(SHOWN_NAME).collect();
        // A suggestion that is not listed costs nothing.
        let listed = if self.problems.is_full() { &[] } else { table };
        let known = listed.iter().map(|row| row.name);
        let places = if self.problems.is_full() {
            Vec::new()
        } else {
            schema::places_of(&shown)
        };
        let reason = match nearest(&shown, known, TYPOS) {
            _ if !places.is_empty() => format!("is unknown here: it is {}", places.join(" or ")),
            Some(name) => format!("is unknown: its name is {name}"),
            None => "is unknown: the installer refuses it, too; leave it out".to_owned(),
        };
        self.problems
            .refuse(self.file, given.at, below(path, &shown), reason);
    }
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() {
        return name.to_owned();
    }
    format!("{path}.{name}")
}

/// True and false in the words of YAML 1.1, which the installer reads.
fn as_bool(node: &ConfigNode) -> Option<bool> {
    let word = node.as_text().map(str::to_ascii_lowercase);
    match word.as_deref() {
        None => node.as_bool(),
        Some("yes" | "on" | "y") => Some(true),
        Some("no" | "off" | "n") => Some(false),
        Some(_) => None,
    }
}

/// Whether some scalar is in it.
fn has_content(node: &ConfigNode) -> bool {
    match &node.value {
        NodeValue::Scalar { kind, text } => *kind != ScalarKind::Null && !text.is_empty(),
        NodeValue::List(items) => items.iter().any(has_content),
        NodeValue::Object(members) => members.iter().any(|member| has_content(&member.node)),
    }
}

fn without_nulls(node: &ConfigNode) -> Value {
    let mut value = node.to_json();
    remove_nulls(&mut value);
    value
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, inner| !inner.is_null());
            members.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}
