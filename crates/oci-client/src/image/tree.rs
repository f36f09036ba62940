//! Extraction of many files of an image at once, over all layers, and the links between paths.
//!
//! Paths inside an image are only compared, never used as paths on disk, and links are followed by name alone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::Error;
use tar::EntryType;

use super::location::{ImageLocation, ResolvedImage};
use super::{parts, resolve};
use crate::Client;
use crate::layer::{self, EntryEffect, LayerEntry, too_large, unreadable};
use oci::{Descriptor, Platform, Reference};

/// Limit of links on the way to one path, as in the kernel.
const LINK_LIMIT: usize = 40;
/// Units: bytes. Memory limit of the paths and links of one image; an image of 100,000 files has 20 MiB.
const KNOWN_LIMIT_BYTES: usize = 128 << 20;
/// Units: bytes. Overhead of an entry beside its path.
const ENTRY_BYTES: usize = 128;
/// Units: bytes. Longest path, as in the kernel; longer ones cannot be requested.
const PATH_LIMIT_BYTES: usize = 4096;

/// Files to extract from an image, and their limits.
#[derive(Clone)]
pub struct FileSelection {
    /// Whether to extract the file at a path (without a leading slash, as in its layer).
    pub is_wanted: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// Number of files.
    pub limit_files: usize,
    /// Total size of the files. Units: bytes.
    pub limit_bytes: u64,
}

impl fmt::Debug for FileSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection")
            .field("limit_files", &self.limit_files)
            .field("limit_bytes", &self.limit_bytes)
            .finish_non_exhaustive()
    }
}

/// The paths of an image, and the locations of extracted files.
#[derive(Debug, Default)]
pub struct FileTree {
    nodes: BTreeMap<String, TreeNode>,
}

#[derive(Debug, PartialEq, Eq)]
enum TreeNode {
    Folder,
    /// A file, and its location if it was extracted.
    File(Option<PathBuf>),
    /// A symbolic link.
    Link(String),
    /// A hard link. It is followed like a symbolic link, through all layers: when an upper layer replaces or removes
    /// the file, this name is removed, too, although the kernel would keep the old file here.
    Same(String),
    /// A device or a socket: it exists, but is not extracted.
    Other,
}

/// Extracts the files of `selection` from an image to `dest`, an empty folder; reads every layer once.
///
/// Errors: as [`super::fetch_file`]; TooLarge – more than the selection's limits.
pub async fn fetch_tree(
    client: &Client,
    reference: &Reference,
    platform: &Platform,
    selection: &FileSelection,
    dest: &Path,
) -> Result<FileTree, Error> {
    let manifest = resolve(client, reference, platform).await?;
    let (_, layers) = parts(&manifest)?;
    let location = ImageLocation::Registry {
        client: client.clone(),
        reference: reference.clone(),
    };
    overlay(&location, layers, selection, dest).await
}

impl ResolvedImage {
    /// Extracts the files of `selection` to `dest`, an empty folder; reads every layer once.
    ///
    /// Errors: as [`super::fetch_tree`].
    pub async fn fetch_tree(
        &self,
        selection: &FileSelection,
        dest: &Path,
    ) -> Result<FileTree, Error> {
        let (_, layers) = parts(&self.manifest)?;
        overlay(&self.location, layers, selection, dest).await
    }
}

/// Merges the layers, topmost first.
async fn overlay(
    location: &ImageLocation,
    layers: &[Descriptor],
    selection: &FileSelection,
    dest: &Path,
) -> Result<FileTree, Error> {
    let mut overlay = LayerMerge::new(selection.clone(), dest.to_owned());
    for layer in layers.iter().rev() {
        overlay = location
            .with_layer(layer, move |bytes| {
                overlay.add(bytes)?;
                Ok(overlay)
            })
            .await?;
    }
    Ok(overlay.tree)
}

impl FileTree {
    /// The location of the file at `path`, links followed; `None` when it is absent or was not extracted.
    pub fn file(&self, path: &str) -> Option<&Path> {
        match self.nodes.get(&self.resolved(path)?)? {
            TreeNode::File(file) => file.as_deref(),
            _ => None,
        }
    }

    /// Names in the folder at `path`, links followed; none when it is not a folder.
    pub fn names_in<'a>(&'a self, path: &str) -> impl Iterator<Item = &'a str> {
        let prefix = self.resolved(path).map(|folder| format!("{folder}/"));
        prefix
            .into_iter()
            .flat_map(|prefix| self.names_below(prefix))
    }

    /// All files below `folder` at any depth, by relative path in byte order, with their locations, links
    /// followed; `None` for files that are absent or were not extracted.
    pub fn below<'a>(
        &'a self,
        folder: &str,
    ) -> impl Iterator<Item = (&'a str, Option<&'a Path>)> + 'a {
        let prefix = match layer::normalized(folder) {
            Some(folder) => format!("{folder}/"),
            None => String::new(),
        };
        let from = self.nodes.range(prefix.clone()..);
        from.map_while(move |(path, node)| Some((path, path.strip_prefix(&prefix)?, node)))
            .filter(|(.., node)| **node != TreeNode::Folder)
            .map(|(path, rest, _)| (rest, self.file(path)))
    }

    fn names_below(&self, prefix: String) -> impl Iterator<Item = &str> {
        let from = self.nodes.range(prefix.clone()..);
        from.map_while(move |(path, _)| path.strip_prefix(&prefix))
            .filter(|name| !name.contains('/'))
    }

    /// `path` without links, resolved like by the kernel with the image as root.
    fn resolved(&self, path: &str) -> Option<String> {
        let mut ahead: VecDeque<String> = path.split('/').map(str::to_owned).collect();
        let mut walked: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(step) = ahead.pop_front() {
            match step.as_str() {
                "" | "." => continue,
                ".." => {
                    walked.pop();
                    continue;
                }
                _ => walked.push(step),
            }
            let (target, is_absolute) = match self.nodes.get(&walked.join("/")) {
                Some(TreeNode::Link(target)) => (target, target.starts_with('/')),
                Some(TreeNode::Same(target)) => (target, true),
                Some(TreeNode::File(_) | TreeNode::Other) if !ahead.is_empty() => return None,
                _ => continue,
            };
            links += 1;
            if links > LINK_LIMIT {
                return None;
            }
            if is_absolute {
                walked.clear();
            } else {
                walked.pop();
            }
            for step in target.rsplit('/') {
                ahead.push_front(step.to_owned());
            }
        }
        (!walked.is_empty()).then(|| walked.join("/"))
    }
}

/// The layers read so far, topmost first.
struct LayerMerge {
    selection: FileSelection,
    dest: PathBuf,
    tree: FileTree,
    /// Paths hidden from lower layers.
    hidden: BTreeSet<String>,
    /// Opaque folders, closed to lower layers.
    closed: BTreeSet<String>,
    files: usize,
    bytes: u64,
    known_bytes: usize,
}

/// Entries of one layer.
#[derive(Default)]
struct LayerEntries {
    nodes: BTreeMap<String, TreeNode>,
    hidden: BTreeSet<String>,
    closed: BTreeSet<String>,
}

impl LayerMerge {
    fn new(selection: FileSelection, dest: PathBuf) -> Self {
        Self {
            selection,
            dest,
            tree: FileTree::default(),
            hidden: BTreeSet::new(),
            closed: BTreeSet::new(),
            files: 0,
            bytes: 0,
            known_bytes: 0,
        }
    }

    /// Merges the next lower layer.
    fn add(&mut self, layer: &mut dyn Read) -> Result<(), Error> {
        let own = layer::unpacked(layer, |archive| self.scan(archive))?;
        for (path, node) in own.nodes {
            self.tree.nodes.entry(path).or_insert(node);
        }
        self.hidden.extend(own.hidden);
        self.closed.extend(own.closed);
        Ok(())
    }

    fn scan(&mut self, archive: &mut dyn Read) -> Result<LayerEntries, Error> {
        let mut own = LayerEntries::default();
        layer::each_entry(archive, |effect, entry| {
            let (EntryEffect::Exists(path) | EntryEffect::Hides(path) | EntryEffect::Closes(path)) =
                &effect;
            if path.len() > PATH_LIMIT_BYTES {
                return Ok(());
            }
            self.count_known(path.len())?;
            match effect {
                EntryEffect::Closes(path) => {
                    own.closed.insert(path);
                }
                EntryEffect::Hides(path) => {
                    own.hidden.insert(path);
                }
                EntryEffect::Exists(path) if self.decides(&path) => {}
                EntryEffect::Exists(path) => {
                    let node = self.node(&path, entry)?;
                    self.insert(&mut own, path, node)?;
                }
            }
            Ok(())
        })?;
        Ok(own)
    }

    /// Whether an upper layer already determines `path`.
    fn decides(&self, path: &str) -> bool {
        if self.tree.nodes.contains_key(path) || self.hidden.contains(path) {
            return true;
        }
        if self.closed.contains("") {
            return true;
        }
        path.match_indices('/').any(|(end, _)| {
            let above = &path[..end];
            self.hidden.contains(above)
                || self.closed.contains(above)
                || !matches!(self.tree.nodes.get(above), None | Some(TreeNode::Folder))
        })
    }

    fn node(&mut self, path: &str, entry: &mut LayerEntry<'_, '_>) -> Result<TreeNode, Error> {
        let target = entry
            .link_name_bytes()
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .filter(|target| target.len() <= PATH_LIMIT_BYTES);
        Ok(match (entry.header().entry_type(), target) {
            (EntryType::Directory, _) => TreeNode::Folder,
            (EntryType::Symlink, Some(target)) => {
                self.count_known(target.len())?;
                TreeNode::Link(target)
            }
            (EntryType::Link, Some(target)) => {
                self.count_known(target.len())?;
                TreeNode::Same(target)
            }
            (EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse, _) => {
                let is_wanted = (self.selection.is_wanted)(path);
                TreeNode::File(is_wanted.then(|| self.write(entry)).transpose()?)
            }
            _ => TreeNode::Other,
        })
    }

    /// Adds an entry; a later entry of one path replaces an earlier one, as in unpacking.
    fn insert(
        &mut self,
        own: &mut LayerEntries,
        path: String,
        node: TreeNode,
    ) -> Result<(), Error> {
        let Some(TreeNode::File(Some(replaced))) = own.nodes.insert(path, node) else {
            return Ok(());
        };
        let failed = |e| Error::internal(format!("removing {}", replaced.display()), e);
        self.bytes -= fs::metadata(&replaced).map_err(failed)?.len();
        fs::remove_file(&replaced).map_err(failed)
    }

    fn write(&mut self, entry: &mut LayerEntry<'_, '_>) -> Result<PathBuf, Error> {
        if self.files == self.selection.limit_files {
            let limit = self.selection.limit_files as u64;
            return Err(too_large("number of files in an image", limit));
        }
        let file = self.dest.join(self.files.to_string());
        self.files += 1;
        let failed = |e| Error::internal(format!("writing {}", file.display()), e);
        let mode = entry.header().mode().map_err(unreadable)?;
        let mut out = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&file)
            .map_err(failed)?;
        let limit = self.selection.limit_bytes;
        let mut bounded = entry.take((limit - self.bytes).saturating_add(1));
        self.bytes += layer::copy(&mut bounded, &mut out, &file)?;
        if self.bytes > limit {
            return Err(too_large("files taken out of an image", limit));
        }
        // Never set-uid, and always readable by the caller.
        let mode = fs::Permissions::from_mode(mode & 0o777 | 0o400);
        out.set_permissions(mode).map_err(failed)?;
        Ok(file)
    }

    fn count_known(&mut self, text_bytes: usize) -> Result<(), Error> {
        self.known_bytes += text_bytes + ENTRY_BYTES;
        if self.known_bytes > KNOWN_LIMIT_BYTES {
            let limit = KNOWN_LIMIT_BYTES as u64;
            return Err(too_large("list of an image's files", limit));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
