use super::*;
use crate::layer_tests::TestLayer;

/// Files in the order of their visits.
#[derive(Default)]
struct Files {
    found: Vec<(String, Vec<u8>)>,
    enough: usize,
}

impl FileVisitor for Files {
    fn file(&mut self, path: &str, content: &mut FileContent<'_>) -> Result<(), Error> {
        let mut bytes = Vec::new();
        while let Some(chunk) = content.next_chunk()? {
            bytes.extend_from_slice(&chunk);
        }
        assert_eq!(bytes.len() as u64, content.size());
        self.found.push((path.to_owned(), bytes));
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.enough > 0 && self.found.len() >= self.enough
    }
}

fn visit(wanted: &[&str]) -> ImageVisit<Files> {
    ImageVisit {
        open: wanted.iter().map(|path| (*path).to_owned()).collect(),
        visitor: Files::default(),
    }
}

#[test]
fn the_topmost_layer_wins() {
    let mut visit = visit(&["a/x", "a/y", "b/z", "c/d", "e"]);
    let layers = [
        TestLayer::new()
            .entry(EntryType::Directory, "a", "", b"")
            .file("./a/x", "top")
            .file("a/.wh.y", "")
            .file("a/other", "not wanted")
            .link("c", "elsewhere"),
        TestLayer::new()
            .file("a/x", "hidden")
            .file("a/y", "removed")
            .file("b/z", vec![7; 200_000])
            .file("c/d", "below a link")
            .file("b/.wh..wh..opq", ""),
        TestLayer::new().file("b/z", "closed").file("e", "lowest"),
    ];
    for layer in layers {
        visit.read(&mut &layer.zstd()[..]).unwrap();
    }
    let expected = [
        ("a/x".to_owned(), b"top".to_vec()),
        ("b/z".to_owned(), vec![7; 200_000]),
        ("e".to_owned(), b"lowest".to_vec()),
    ];
    assert!(visit.visitor.found == expected);
    assert!(visit.open.is_empty());
}

#[test]
fn content_that_is_not_read_is_skipped() {
    struct Sizes(Vec<u64>);
    impl FileVisitor for Sizes {
        fn file(&mut self, _: &str, content: &mut FileContent<'_>) -> Result<(), Error> {
            self.0.push(content.size());
            Ok(())
        }
        fn is_complete(&self) -> bool {
            false
        }
    }
    let mut visit = ImageVisit {
        open: ["a".to_owned(), "b".to_owned()].into(),
        visitor: Sizes(Vec::new()),
    };
    let layer = TestLayer::new().file("a", vec![1; 100_000]).file("b", "2");
    visit.read(&mut &layer.gzip()[..]).unwrap();
    assert_eq!(visit.visitor.0, [100_000, 1]);
}

#[test]
fn a_layer_that_ends_in_a_file_is_refused() {
    let whole = TestLayer::new().file("a", vec![1; 100_000]).tar();
    let refused = visit(&["a"]).read(&mut &whole[..50_000]).unwrap_err();
    assert!(
        refused.to_string().contains("of the 100000 bytes"),
        "{refused}"
    );
}
