//! Files and directories of an image, before they have a place.

use std::io;

/// Contents of a file: zeros, with bytes here and there.
#[derive(Debug, Clone, Default)]
pub(super) struct Data {
    /// Units: bytes.
    pub(super) length: u64,
    /// Offset and bytes, not overlapping.
    pub(super) parts: Vec<(u64, Vec<u8>)>,
}

impl From<Vec<u8>> for Data {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            length: bytes.len() as u64,
            parts: vec![(0, bytes)],
        }
    }
}

impl Data {
    pub(super) fn zeros(length: u64) -> Self {
        let parts = Vec::new();
        Self { length, parts }
    }

    /// The bytes from `start` on, at most `buffer` of them.
    pub(super) fn read(&self, start: u64, buffer: &mut [u8]) {
        buffer.fill(0);
        let end = start + buffer.len() as u64;
        for (offset, bytes) in &self.parts {
            let (from, to) = (*offset, offset + bytes.len() as u64);
            let (low, high) = (from.max(start), to.min(end));
            if low < high {
                let source = &bytes[index(low - from)..index(high - from)];
                buffer[index(low - start)..index(high - start)].copy_from_slice(source);
            }
        }
    }
}

/// An offset as an index of a buffer.
pub(super) fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("an offset within a slice fits into an index")
}

/// A file or directory.
#[derive(Debug, Clone)]
pub(super) struct TreeNode {
    pub(super) name: String,
    /// Index of its directory; the root's own for the root.
    pub(super) parent: usize,
    /// Contents; none for a directory.
    pub(super) data: Option<Data>,
}

/// All nodes: the root first, each directory before its children.
#[derive(Debug, Clone)]
pub(super) struct FileTree(pub(super) Vec<TreeNode>);

impl FileTree {
    pub(super) fn new() -> Self {
        Self(vec![TreeNode {
            name: String::new(),
            parent: 0,
            data: None,
        }])
    }

    /// Adds a file and the directories on the way.
    pub(super) fn add(&mut self, path: &str, data: impl Into<Data>) {
        let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut parent = 0;
        for directory in directories.split('/').filter(|part| !part.is_empty()) {
            parent = self
                .child(parent, directory)
                .unwrap_or_else(|| self.push(directory, parent, None));
        }
        self.push(name, parent, Some(data.into()));
    }

    pub(super) fn find(&self, path: &str) -> Option<usize> {
        path.split('/')
            .try_fold(0, |parent, name| self.child(parent, name))
    }

    pub(super) fn path(&self, mut node: usize) -> String {
        let mut names = Vec::new();
        while node != 0 {
            names.push(self.0[node].name.as_str());
            node = self.0[node].parent;
        }
        names.reverse();
        names.join("/")
    }

    pub(super) fn children(&self, parent: usize) -> impl Iterator<Item = usize> {
        let nodes = self.0.iter().enumerate().skip(1);
        nodes
            .filter(move |(_, node)| node.parent == parent)
            .map(|(index, _)| index)
    }

    /// Directories level by level, as path tables list them.
    pub(super) fn directories(&self) -> Vec<usize> {
        let mut directories = vec![0];
        let mut next = 0;
        while let Some(parent) = directories.get(next).copied() {
            let below = self.children(parent);
            directories.extend(below.filter(|child| self.0[*child].data.is_none()));
            next += 1;
        }
        directories
    }

    pub(super) fn length(&self, node: usize) -> io::Result<u32> {
        let length = self.0[node].data.as_ref().map_or(0, |data| data.length);
        u32::try_from(length).map_err(|_| {
            let text = format!("{} is larger than 4 GiB", self.path(node));
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })
    }

    fn child(&self, parent: usize, name: &str) -> Option<usize> {
        self.children(parent)
            .find(|child| self.0[*child].name == name)
    }

    fn push(&mut self, name: &str, parent: usize, data: Option<Data>) -> usize {
        self.0.push(TreeNode {
            name: name.to_owned(),
            parent,
            data,
        });
        self.0.len() - 1
    }
}
