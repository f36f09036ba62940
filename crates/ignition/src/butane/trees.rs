//! `storage.trees`: whole directories of local files.

use std::collections::HashMap;

use super::desugar::set_encoded;
use super::files::{FileReader, LocalEntry, LocalEntryKind, join};
use super::node::{member_mut, members_mut, number, set, text};
use super::resource::AutoCompression;
use crate::problem::{ProblemClass, ProblemList};
use crate::tree::{ConfigNode, NodeValue, SourcePosition};

const FILE_MODE: i64 = 0o644;
const EXECUTABLE_MODE: i64 = 0o755;

/// The lists of Ignition's storage that share paths.
const LISTS: [&str; 3] = ["directories", "files", "links"];
const FILES: usize = 1;
const LINKS: usize = 2;

/// Adds the files and links of trees to a configuration. A file or link that is there without contents gets the
/// tree's; directories are made by Ignition.
///
/// Source: coreos/butane, base/v0_2/translate.go.
pub(super) struct TreeWalk<'w, 'f> {
    pub(super) files: &'w mut FileReader<'f>,
    pub(super) compression: AutoCompression,
    pub(super) problems: &'w mut ProblemList,
}

impl TreeWalk<'_, '_> {
    /// Adds all trees of the document's storage, which was checked.
    pub(super) fn add(&mut self, trees: &ConfigNode, config: &mut ConfigNode) {
        if trees.items().is_empty() {
            return;
        }
        let storage = member_mut(config, "storage", trees.at);
        let mut nodes = StorageNodes::take(storage);
        for (index, tree) in trees.items().iter().enumerate() {
            let path = format!("storage.trees[{index}]");
            let part = |name| tree.get(name).and_then(ConfigNode::as_text);
            let local = part("local").unwrap_or_default();
            let base = part("path").filter(|base| !base.is_empty()).unwrap_or("/");
            let entries = match self.files.list(local) {
                Ok(entries) => entries,
                Err(reason) => {
                    self.problems
                        .add(ProblemClass::Refused, tree.at, &path, reason);
                    continue;
                }
            };
            for entry in entries {
                if let Err(reason) = self.entry(local, base, entry, tree.at, &mut nodes) {
                    self.problems
                        .add(ProblemClass::Refused, tree.at, &path, reason);
                }
            }
        }
        nodes.put_back(storage);
        if storage.members().is_empty() {
            members_mut(config).retain(|member| member.name != "storage");
        }
    }

    fn entry(
        &mut self,
        local: &str,
        base: &str,
        entry: LocalEntry,
        at: SourcePosition,
        nodes: &mut StorageNodes,
    ) -> Result<(), String> {
        let path = join(base, &entry.path);
        match entry.kind {
            LocalEntryKind::Directory => Ok(()),
            LocalEntryKind::Other => Err(format!(
                "{:?} is no file, directory or symbolic link",
                entry.path
            )),
            LocalEntryKind::Link { target } => {
                let link = nodes.empty_node(LINKS, &path, &["target"], at)?;
                set(link, text("target", at, target));
                Ok(())
            }
            LocalEntryKind::File { is_executable } => {
                let file = nodes.empty_node(FILES, &path, &["contents", "source"], at)?;
                let contents = self.files.read(&format!("{local}/{}", entry.path))?;
                let resource = member_mut(file, "contents", at);
                set_encoded(resource, &contents, self.compression, at);
                let mode = if is_executable {
                    EXECUTABLE_MODE
                } else {
                    FILE_MODE
                };
                if file.get("mode").is_none() {
                    set(file, number("mode", at, mode));
                }
                Ok(())
            }
        }
    }
}

/// The files, directories and links of a configuration, found by path.
struct StorageNodes {
    /// Items by the index in [`LISTS`].
    lists: [Vec<ConfigNode>; 3],
    /// List and index of each path.
    indexes: HashMap<String, (usize, usize)>,
}

impl StorageNodes {
    fn take(storage: &mut ConfigNode) -> Self {
        let mut nodes = Self {
            lists: Default::default(),
            indexes: HashMap::new(),
        };
        let members = members_mut(storage);
        for (list, name) in LISTS.iter().enumerate() {
            let member = members.iter_mut().find(|member| member.name == *name);
            if let Some(NodeValue::List(items)) = member.map(|member| &mut member.node.value) {
                nodes.lists[list] = std::mem::take(items);
            }
            for (index, item) in nodes.lists[list].iter().enumerate() {
                let path = item.get("path").and_then(ConfigNode::as_text);
                let path = path.unwrap_or_default().to_owned();
                nodes.indexes.insert(path, (list, index));
            }
        }
        nodes
    }

    /// The node of the path, a new one if there is none.
    ///
    /// Errors: the path has another type, or contents already.
    fn empty_node(
        &mut self,
        list: usize,
        path: &str,
        contents: &[&str],
        at: SourcePosition,
    ) -> Result<&mut ConfigNode, String> {
        let items = &mut self.lists[list];
        let index = match self.indexes.get(path) {
            Some((other, index)) if *other == list => *index,
            Some((other, _)) => {
                return Err(format!("{path:?} is already in storage.{}", LISTS[*other]));
            }
            None => {
                items.push(ConfigNode::object(at, vec![text("path", at, path)]));
                self.indexes
                    .insert(path.to_owned(), (list, items.len() - 1));
                items.len() - 1
            }
        };
        let node = &mut items[index];
        let found = node.find(contents).and_then(ConfigNode::as_text);
        if found.is_some_and(|found| !found.is_empty()) {
            return Err(format!("{path:?} has contents already"));
        }
        Ok(node)
    }

    fn put_back(self, storage: &mut ConfigNode) {
        for (name, items) in LISTS.into_iter().zip(self.lists) {
            if let Some(first) = items.first() {
                let at = first.at;
                member_mut(storage, name, at).value = NodeValue::List(items);
            }
        }
    }
}
