//! Files, directories and links.

use std::collections::HashSet;

use super::node::CheckedNode;
use super::node::Step::{Item, Member};
use crate::config::SpecVersion;
use crate::problem::{ProblemList, quoted};

/// The highest permission bits: set-user-id, set-group-id and sticky included.
const MODE_MAX: i64 = 0o7777;

/// Set-user-id, set-group-id and sticky: applied since 3.6, ignored before.
pub(crate) const SPECIAL_BITS: i64 = 0o7000;

/// Units: bytes. The longest path of Linux.
const PATH_MAX: usize = 4096;

/// The problem of a path that Ignition would refuse. Source: config/v3_5/types/path.go.
pub(super) fn path_problem(path: &str) -> Option<String> {
    if path.is_empty() {
        return Some("an absolute path is needed here".to_owned());
    }
    if !path.starts_with('/') {
        return Some(format!("{} is not an absolute path", quoted(path)));
    }
    let clean = clean(path);
    if clean != path {
        return Some(format!(
            "{} is not the shortest form, write {}",
            quoted(path),
            quoted(&clean)
        ));
    }
    None
}

/// The shortest form of an absolute path. Source: Go, `path.Clean`.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Every file, directory and link.
pub(super) fn path(node: &CheckedNode<'_>, problems: &mut ProblemList) {
    if let Some(reason) = node_path_problem(node) {
        node.refuse(problems, &[Member("path")], reason);
    }
}

fn node_path_problem(node: &CheckedNode<'_>) -> Option<String> {
    match node.node.get("path") {
        None => path_problem(""),
        // Another type than text is reported as such.
        Some(path) => path_problem(path.as_text()?),
    }
}

/// Every file and directory.
pub(super) fn node(node: &CheckedNode<'_>, problems: &mut ProblemList) {
    path(node, problems);
    let Some(bits) = node.integer("mode") else {
        return;
    };
    let at = [Member("mode")];
    if !(0..=MODE_MAX).contains(&bits) {
        let reason = format!(
            "{bits} is not a file mode; modes are decimal here, 0644 is written 420 and the highest is {MODE_MAX}"
        );
        node.refuse(problems, &at, reason);
    } else if bits & SPECIAL_BITS != 0 && node.version < SpecVersion::V3_6 {
        let reason = "set-user-id, set-group-id and sticky bits are ignored before version 3.6.0";
        node.doubt(problems, &at, reason);
    }
}

/// Every file.
pub(super) fn file(file: &CheckedNode<'_>, problems: &mut ProblemList) {
    let has_source = file.node.find(&["contents", "source"]).is_some();
    if file.is_true("overwrite") && !has_source {
        let reason = "overwrite needs contents.source";
        file.refuse(problems, &[Member("overwrite")], reason);
    }
}

/// `user` and `group`
pub(super) fn owner(owner: &CheckedNode<'_>, problems: &mut ProblemList) {
    if owner.has("id") && owner.filled("name").is_some() {
        owner.refuse(problems, &[], "id and name exclude each other");
    }
}

/// Nothing is below a link: it would be written through it.
pub(super) fn symbolic_links(storage: &CheckedNode<'_>, problems: &mut ProblemList) {
    let paths = |list| {
        let nodes = storage.items(list).iter();
        nodes.map(|node| node.get("path").and_then(|path| path.as_text()))
    };
    let links: HashSet<&str> = paths("links").flatten().collect();
    for list in ["directories", "files", "links"] {
        for (index, path) in paths(list).enumerate() {
            let Some(path) = path.filter(|path| path.len() <= PATH_MAX) else {
                continue;
            };
            let mut above = path.match_indices('/').map(|(end, _)| &path[..end]);
            if let Some(link) = above.find(|above| links.contains(above)) {
                let reason = format!("the path is below the link {}", quoted(link));
                storage.refuse(problems, &[Member(list), Item(index)], reason);
            }
        }
    }
}

/// Targets and owners of links.
pub(super) fn links(storage: &CheckedNode<'_>, problems: &mut ProblemList) {
    let directories: HashSet<&str> = storage
        .items("directories")
        .iter()
        .filter_map(|directory| directory.get("path")?.as_text())
        .collect();
    for (index, node) in storage.items("links").iter().enumerate() {
        let link = CheckedNode { node, ..*storage };
        if link.is_blank("target") && storage.version >= SpecVersion::V3_3 {
            let steps = [Member("links"), Item(index), Member("target")];
            storage.refuse(problems, &steps, "a link needs a target");
            continue;
        }
        let target = link.text("target").unwrap_or_default();
        if !link.is_true("hard") {
            continue;
        }
        let target = if target.starts_with('/') {
            clean(target)
        } else {
            // Relative to the link itself, not to its directory: as Ignition resolves it in this check.
            clean(&format!(
                "{}/{target}",
                link.text("path").unwrap_or_default()
            ))
        };
        if directories.contains(target.as_str()) {
            let reason = "the target of a hard link is a directory";
            storage.refuse(problems, &[Member("links"), Item(index)], reason);
        }
        for (owner, name) in [
            ("user", "id"),
            ("user", "name"),
            ("group", "id"),
            ("group", "name"),
        ] {
            if node.find(&[owner, name]).is_some() {
                let steps = [Member("links"), Item(index), Member(owner), Member(name)];
                storage.doubt(problems, &steps, "a hard link has the owner of its target");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_absolute_and_short() {
        for path in ["/", "/a", "/a/b.c", "/...", "/a/ b"] {
            assert_eq!(path_problem(path), None, "{path}");
        }
        for path in [
            "", "a", "./a", "//a", "/a/", "/a//b", "/a/./b", "/a/../b", "/..", "/a/..",
        ] {
            assert!(path_problem(path).is_some(), "{path}");
        }
        assert!(
            path_problem("/a//b/../c/")
                .unwrap()
                .ends_with("write \"/a/c\"")
        );
    }
}
