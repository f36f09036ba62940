use proptest::prelude::*;

use super::*;
use crate::layer_tests::TestLayer;

fn everything() -> FileSelection {
    FileSelection {
        is_wanted: Arc::new(|_| true),
        limit_files: 100,
        limit_bytes: 1000,
    }
}

/// Reads `layers`, topmost first.
fn read(
    selection: FileSelection,
    layers: &[Vec<u8>],
) -> Result<(tempfile::TempDir, FileTree), Error> {
    let folder = tempfile::tempdir().unwrap();
    let mut overlay = LayerMerge::new(selection, folder.path().to_owned());
    for layer in layers {
        overlay.add(&mut layer.as_slice())?;
    }
    Ok((folder, overlay.tree))
}

fn text(tree: &FileTree, path: &str) -> Option<String> {
    tree.file(path)
        .map(|file| fs::read_to_string(file).unwrap())
}

fn names<'a>(tree: &'a FileTree, path: &str) -> Vec<&'a str> {
    tree.names_in(path).collect()
}

#[test]
fn folders_are_read_through_links() {
    let layer = TestLayer::new()
        .link("lib64", "usr/lib64")
        .entry(EntryType::Directory, "usr/lib64/", "", b"")
        .file("usr/lib64/libc.so.6.1", "c")
        .link("usr/lib64/libc.so.6", "libc.so.6.1")
        .link("usr/lib64/libx.so", "/etc/alternatives/x")
        .link("etc/alternatives/x", "../../usr/lib64/./libc.so.6")
        .entry(
            EntryType::Link,
            "usr/lib64/libsame.so",
            "./usr/lib64/libc.so.6.1",
            b"",
        )
        .file("usr/lib64/deep/libd.so", "d")
        .file("usr/lib64x/libe.so", "e")
        .tar();
    let (_folder, tree) = read(everything(), &[layer]).unwrap();
    let expected = ["libc.so.6", "libc.so.6.1", "libsame.so", "libx.so"];
    assert_eq!(names(&tree, "lib64"), expected);
    for name in expected {
        assert_eq!(
            text(&tree, &format!("/lib64/{name}")).unwrap(),
            "c",
            "{name}"
        );
    }
    assert_eq!(names(&tree, "lib64/deep"), ["libd.so"]);
    assert_eq!(names(&tree, "lib64/libc.so.6"), [""; 0]);
    assert_eq!(text(&tree, "lib64/libc.so.6/x"), None);
    assert_eq!(text(&tree, "lib64"), None);
}

#[test]
fn upper_layers_hide_lower_ones() {
    let top = TestLayer::new()
        .file("lib/a", "new")
        .file("lib/.wh.b", "")
        .file("opt/.wh..wh..opq", "")
        .file("opt/kept", "k")
        .link("moved", "lib")
        .entry(EntryType::Directory, "unlinked/", "", b"")
        .tar();
    let bottom = TestLayer::new()
        .file("lib/a", "old")
        .file("lib/b", "b")
        .file("lib/c", "c")
        .file("opt/gone", "g")
        .file("moved/gone", "g")
        .link("unlinked", "lib")
        .tar();
    let (_folder, tree) = read(everything(), &[top, bottom]).unwrap();
    assert_eq!(text(&tree, "lib/a").unwrap(), "new");
    assert_eq!(names(&tree, "lib"), ["a", "c"]);
    assert_eq!(names(&tree, "opt"), ["kept"]);
    assert_eq!(names(&tree, "moved"), ["a", "c"]);
    assert_eq!(names(&tree, "unlinked"), [""; 0]);
}

#[test]
fn only_selected_files_are_written() {
    let selection = FileSelection {
        is_wanted: Arc::new(|path| path == "a"),
        ..everything()
    };
    let layer = TestLayer::new()
        .file("a", "a")
        .file("b", "b")
        .link("c", "a")
        .tar();
    let (folder, tree) = read(selection, &[layer]).unwrap();
    assert_eq!(text(&tree, "c").unwrap(), "a");
    assert_eq!(tree.file("b"), None);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let mode = fs::metadata(tree.file("a").unwrap()).unwrap().permissions();
    assert_eq!(mode.mode() & 0o7777, 0o750);
}

#[test]
fn a_later_entry_replaces_an_earlier_one() {
    let layer = TestLayer::new()
        .file("a", "first")
        .file("a", "second")
        .tar();
    let (folder, tree) = read(everything(), &[layer]).unwrap();
    assert_eq!(text(&tree, "a").unwrap(), "second");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn hostile_entries_are_ignored() {
    let layer = TestLayer::new()
        .file("../../evil", "x")
        .file("/abs", "y")
        .link("up", "../../../../etc/passwd")
        .link("out", "/etc/passwd")
        .link("loop", "loop")
        .link("a", "b")
        .link("b", "a")
        .entry(EntryType::Link, "hard", "../../etc/passwd", b"")
        .entry(EntryType::Char, "null", "", b"")
        .entry(EntryType::Block, "disk", "", b"")
        .entry(EntryType::Fifo, "pipe", "", b"")
        .tar();
    let (folder, tree) = read(everything(), &[layer]).unwrap();
    assert_eq!(text(&tree, "abs").unwrap(), "y");
    for path in [
        "evil", "up", "out", "loop", "a", "hard", "null", "disk", "pipe", "..", "",
    ] {
        assert_eq!(tree.file(path), None, "{path}");
        assert_eq!(tree.names_in(path).count(), 0, "{path}");
    }
    // Only `abs` exists: no device and no link was created on disk.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn limits_are_enforced() {
    let layer = || TestLayer::new().file("a", "12345").file("b", "12345").tar();
    let small = FileSelection {
        limit_bytes: 9,
        ..everything()
    };
    let few = FileSelection {
        limit_files: 1,
        ..everything()
    };
    for (selection, limit) in [(small, 9), (few, 1)] {
        let refused = read(selection, &[layer()]).unwrap_err();
        assert!(
            matches!(refused, Error::TooLarge { limit: found, .. } if found == limit),
            "{refused}"
        );
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        read(everything(), &[bytes]).ok();
    }

    #[test]
    fn any_links_come_to_an_end(
        links in prop::collection::vec(("[a-c](/[a-c]){0,2}", "/?([a-c]|\\.\\.)(/([a-c]|\\.\\.)){0,3}"), 0..8),
        path in "[a-c](/[a-c]){0,3}",
    ) {
        let nodes = links.into_iter().map(|(path, target)| (path, TreeNode::Link(target)));
        let tree = FileTree { nodes: nodes.collect() };
        prop_assert_eq!(tree.file(&path), None);
    }
}
