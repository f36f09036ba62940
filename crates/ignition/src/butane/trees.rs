//! `storage.trees`: whole directories of local files.

use std::collections::HashMap;

use located_yaml::Position;
use located_yaml::v1_2::{ConfigMember, ConfigNode, NodeValue};

use super::desugar::set_encoded;
use super::files::{FileReader, LocalEntry, LocalEntryKind, join};
use super::node::{member_mut, members_mut, number, set, text};
use super::resource::AutoCompression;
use crate::problem::{ProblemClass, ProblemList};

const FILE_MODE: i64 = 0o644;
const EXECUTABLE_MODE: i64 = 0o755;
const DIRECTORY_MODE: i64 = 0o755;

/// The lists of Ignition's storage that share paths.
const LISTS: [&str; 3] = ["directories", "files", "links"];
const DIRECTORIES: usize = 0;
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
            let settings = TreeSettings::of(tree);
            let entries = match self.files.list(local) {
                Ok(entries) => entries,
                Err(reason) => {
                    self.problems
                        .add(ProblemClass::Refused, tree.at, &path, reason);
                    continue;
                }
            };
            if settings.describes_directories() && join(base, "") == "/" {
                let reason = "owner and dir_mode are those of the root directory of the host, too: give the tree a path";
                self.problems
                    .add(ProblemClass::Doubtful, tree.at, &path, reason);
            }
            let top = LocalEntry {
                path: String::new(),
                kind: LocalEntryKind::Directory,
            };
            for entry in std::iter::once(top).chain(entries) {
                if let Err(reason) = self.entry(local, base, entry, &settings, &mut nodes) {
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
        settings: &TreeSettings<'_>,
        nodes: &mut StorageNodes,
    ) -> Result<(), String> {
        let path = join(base, &entry.path);
        let at = settings.at;
        match entry.kind {
            LocalEntryKind::Directory if settings.describes_directories() => {
                let directory = nodes.new_node(DIRECTORIES, &path, settings)?;
                let mode = settings.directory_mode.unwrap_or(DIRECTORY_MODE);
                set(directory, number("mode", at, mode));
                Ok(())
            }
            LocalEntryKind::Directory => Ok(()),
            LocalEntryKind::Other => Err(format!(
                "{:?} is no file, directory or symbolic link",
                entry.path
            )),
            LocalEntryKind::Link { target } => {
                let link = nodes.empty_node(LINKS, &path, &["target"], settings)?;
                set(link, text("target", at, target));
                Ok(())
            }
            LocalEntryKind::File { is_executable } => {
                let file = nodes.empty_node(FILES, &path, &["contents", "source"], settings)?;
                let contents = self.files.read(&format!("{local}/{}", entry.path))?;
                let resource = member_mut(file, "contents", at);
                set_encoded(resource, &contents, self.compression, at);
                let mode = if is_executable {
                    EXECUTABLE_MODE
                } else {
                    FILE_MODE
                };
                let mode = settings.file_mode.unwrap_or(mode);
                if file.get("mode").is_none() {
                    set(file, number("mode", at, mode));
                }
                Ok(())
            }
        }
    }
}

/// Owner and modes of the nodes of a tree. Source: coreos/butane, base/v0_7/translate.go.
struct TreeSettings<'t> {
    at: Position,
    user: Option<&'t ConfigNode>,
    group: Option<&'t ConfigNode>,
    file_mode: Option<i64>,
    directory_mode: Option<i64>,
}

impl<'t> TreeSettings<'t> {
    fn of(tree: &'t ConfigNode) -> Self {
        let owner = |name| tree.get(name).filter(|owner| !owner.members().is_empty());
        let mode = |name| tree.get(name).and_then(ConfigNode::as_integer);
        Self {
            at: tree.at,
            user: owner("user"),
            group: owner("group"),
            file_mode: mode("file_mode"),
            directory_mode: mode("dir_mode"),
        }
    }

    /// Whether directories are more than Ignition makes by itself.
    fn describes_directories(&self) -> bool {
        self.directory_mode.is_some() || self.user.is_some() || self.group.is_some()
    }

    fn node(&self, path: &str) -> ConfigNode {
        let mut node = ConfigNode::object(self.at, vec![text("path", self.at, path)]);
        for (name, owner) in [("user", self.user), ("group", self.group)] {
            if let Some(owner) = owner {
                set(&mut node, ConfigMember::new(name, owner.clone()));
            }
        }
        node
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
        settings: &TreeSettings<'_>,
    ) -> Result<&mut ConfigNode, String> {
        let index = match self.indexes.get(path) {
            Some((other, index)) if *other == list => *index,
            _ => return self.new_node(list, path, settings),
        };
        let node = &mut self.lists[list][index];
        let found = node.find(contents).and_then(ConfigNode::as_text);
        if found.is_some_and(|found| !found.is_empty()) {
            return Err(format!("{path:?} has contents already"));
        }
        Ok(node)
    }

    /// A new node of the path, with the owner of its tree.
    ///
    /// Errors: there is one.
    fn new_node(
        &mut self,
        list: usize,
        path: &str,
        settings: &TreeSettings<'_>,
    ) -> Result<&mut ConfigNode, String> {
        if let Some((other, _)) = self.indexes.get(path) {
            return Err(format!("{path:?} is already in storage.{}", LISTS[*other]));
        }
        let items = &mut self.lists[list];
        let index = items.len();
        self.indexes.insert(path.to_owned(), (list, index));
        items.push(settings.node(path));
        Ok(&mut items[index])
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
