//! Extraction of single files from layers: tar, plain or compressed by gzip or zstd, read once from front to back.
//!
//! Paths inside a layer are only compared, never used as paths on disk.

mod zstd;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use model::Error;
use tar::EntryType;

use zstd::ZstdReader;

/// Units: bytes. Largest extracted file; an installer binary has about 1 GiB.
const FILE_LIMIT_BYTES: u64 = 4 << 30;
/// Units: bytes. Largest layer after decompression, including holes of its files, against decompression bombs.
const LAYER_LIMIT_BYTES: u64 = 64 << 30;
/// Units: bytes. Headers of one entry, long names and attributes included, which are read into memory.
const HEADERS_LIMIT_BYTES: u64 = 1 << 20;
/// Units: bytes. Read-ahead of the decompression.
pub(crate) const BUFFER_BYTES: usize = 64 * 1024;
/// Start of a member.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Prefix of a whiteout, which hides an entry of a lower layer. Source: OCI image-spec, whiteouts.
const WHITEOUT: &str = ".wh.";
/// Opaque whiteout, which hides everything of the lower layers in its folder.
const OPAQUE: &str = ".wh..wh..opq";

/// Result of the search for a path in a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayerMatch {
    /// A file, extracted to this path with its mode.
    File(PathBuf),
    /// A link: search for this path instead, from the topmost layer on.
    Link(String),
    /// Absent from this layer, and hidden in the lower ones by a whiteout.
    Removed,
}

/// Reads a layer to its end and extracts the `wanted` files; paths that the layer does not have are absent from the
/// result. Files are named `0`, `1`, … in `dest`, by their position in `wanted`, and keep their mode bits.
///
/// Blocking. Errors: Invalid – an unreadable layer; TooLarge; Internal – `dest` cannot be written.
pub fn extract_files(
    layer: impl Read,
    wanted: &[String],
    dest: &Path,
) -> Result<BTreeMap<String, LayerMatch>, Error> {
    unpacked(layer, |archive| scan(archive, wanted, dest))
}

/// Runs `work` with the decompressed tar archive of `layer`, and reads the layer to its end.
///
/// Blocking. Errors: Invalid – an unreadable layer; those of `work`.
pub(crate) fn unpacked<T>(
    layer: impl Read,
    work: impl FnOnce(&mut dyn Read) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut layer = BufReader::with_capacity(BUFFER_BYTES, layer);
    let magic = io::BufRead::fill_buf(&mut layer).map_err(unreadable)?;
    if magic.starts_with(&GZIP_MAGIC) {
        let mut gzip = MultiGzDecoder::new(layer);
        let value = work(&mut gzip)?;
        drain(&mut gzip)?;
        drain(&mut gzip.into_inner())?;
        Ok(value)
    } else if magic.starts_with(&zstd::MAGIC) {
        let mut zstd = ZstdReader::new(layer);
        let value = work(&mut zstd)?;
        drain(&mut zstd)?;
        Ok(value)
    } else {
        let value = work(&mut layer)?;
        drain(&mut layer)?;
        Ok(value)
    }
}

/// [`extract_files`] for a layer on disk, on the blocking pool.
pub async fn extract_files_of(
    layer: &Path,
    wanted: Vec<String>,
    dest: &Path,
) -> Result<BTreeMap<String, LayerMatch>, Error> {
    let (path, dest) = (layer.to_owned(), dest.to_owned());
    let work = move || {
        let file = File::open(&path)
            .map_err(|e| Error::internal(format!("opening {}", path.display()), e))?;
        extract_files(file, &wanted, &dest)
    };
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Error::internal("reading a layer", error)))
}

/// Effect of an entry by its name.
pub(crate) enum EntryEffect {
    /// The path exists.
    Exists(String),
    /// The path is hidden in the lower layers.
    Hides(String),
    /// The content of the folder is hidden in the lower layers.
    Closes(String),
}

impl EntryEffect {
    fn of(path: String) -> Self {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", &path));
        if name == OPAQUE {
            Self::Closes(parent.to_owned())
        } else if let Some(name) = name.strip_prefix(WHITEOUT) {
            Self::Hides(joined(parent, name))
        } else {
            Self::Exists(path)
        }
    }
}

/// A file, folder or link in a layer.
pub(crate) type LayerEntry<'a, 'b> = tar::Entry<'a, BudgetReader<'b>>;

/// Calls `visit` for every entry of the tar archive `layer` whose path is inside the root.
///
/// Errors: Invalid – not an archive; TooLarge – the layer or the headers of an entry; those of `visit`.
pub(crate) fn each_entry(
    layer: &mut dyn Read,
    mut visit: impl FnMut(EntryEffect, &mut LayerEntry<'_, '_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let allowed = Rc::new(Cell::new(u64::MAX));
    let mut archive = tar::Archive::new(BudgetReader {
        layer: layer.take(LAYER_LIMIT_BYTES),
        allowed: Rc::clone(&allowed),
    });
    let mut entries = archive.entries().map_err(unreadable)?;
    let mut left = LAYER_LIMIT_BYTES;
    loop {
        allowed.set(HEADERS_LIMIT_BYTES);
        let Some(entry) = entries.next() else {
            return Ok(());
        };
        let mut entry = entry.map_err(|error| match allowed.get() {
            0 => too_large("header of a file in a layer", HEADERS_LIMIT_BYTES),
            _ => unreadable(error),
        })?;
        allowed.set(u64::MAX);
        left = left
            .checked_sub(entry.size())
            .ok_or_else(|| too_large("layer", LAYER_LIMIT_BYTES))?;
        if let Some(path) = normalized(&String::from_utf8_lossy(&entry.path_bytes())) {
            visit(EntryEffect::of(path), &mut entry)?;
        }
        // Skip to the next entry, so that only its headers count against the limit.
        io::copy(&mut entry, &mut io::sink()).map_err(unreadable)?;
    }
}

/// A reader with a budget, which is set before each entry.
pub(crate) struct BudgetReader<'a> {
    layer: io::Take<&'a mut dyn Read>,
    allowed: Rc<Cell<u64>>,
}

impl Read for BudgetReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let allowed = self.allowed.get();
        if allowed == 0 {
            return Err(io::Error::other("the budget is exceeded"));
        }
        let count = self.layer.by_ref().take(allowed).read(buffer)?;
        self.allowed.set(allowed - count as u64);
        Ok(count)
    }
}

pub(crate) fn too_large(what: &'static str, limit: u64) -> Error {
    Error::TooLarge { what, limit }
}

fn scan(
    layer: &mut dyn Read,
    wanted: &[String],
    dest: &Path,
) -> Result<BTreeMap<String, LayerMatch>, Error> {
    let (mut found, mut hidden) = (BTreeMap::new(), Vec::new());
    each_entry(layer, |effect, entry| {
        let path = match effect {
            EntryEffect::Exists(path) => path,
            EntryEffect::Hides(path) | EntryEffect::Closes(path) => {
                hidden.push(path);
                return Ok(());
            }
        };
        let (parent, _) = path.rsplit_once('/').unwrap_or_default();
        let kind = entry.header().entry_type();
        let target = entry
            .link_name_bytes()
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        for (index, wish) in wanted.iter().enumerate() {
            let Some(rest) = below(wish, &path) else {
                continue;
            };
            let value = match (kind, &target) {
                (EntryType::Symlink, Some(target)) => {
                    followed(parent, target, rest).map(LayerMatch::Link)
                }
                (EntryType::Link, Some(target)) if rest.is_empty() => {
                    normalized(target).map(LayerMatch::Link)
                }
                (EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse, _)
                    if rest.is_empty() =>
                {
                    let file = dest.join(index.to_string());
                    write_file(entry, &file)?;
                    Some(LayerMatch::File(file))
                }
                _ => None,
            };
            found.extend(value.map(|value| (wish.clone(), value)));
        }
        Ok(())
    })?;
    for wish in wanted {
        if hidden
            .iter()
            .any(|path| path.is_empty() || below(wish, path).is_some())
        {
            found.entry(wish.clone()).or_insert(LayerMatch::Removed);
        }
    }
    Ok(found)
}

fn write_file(entry: &mut LayerEntry<'_, '_>, file: &Path) -> Result<(), Error> {
    if entry.size() > FILE_LIMIT_BYTES {
        return Err(too_large("file in a layer", FILE_LIMIT_BYTES));
    }
    let failed = |e| Error::internal(format!("writing {}", file.display()), e);
    let mode = entry.header().mode().map_err(unreadable)?;
    // Truncates: a later entry of one path replaces an earlier one, as in unpacking.
    let mut out = File::create(file).map_err(failed)?;
    copy(entry, &mut out, file)?;
    // Never set-uid: extracted programs run as the caller.
    fs::set_permissions(file, fs::Permissions::from_mode(mode & 0o777)).map_err(failed)?;
    out.sync_all().map_err(failed)
}

/// `io::copy` with separate errors for an unreadable layer and a failed write.
pub(crate) fn copy(from: &mut impl Read, to: &mut File, file: &Path) -> Result<u64, Error> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut copied = 0;
    loop {
        let n = from.read(&mut buffer).map_err(unreadable)?;
        if n == 0 {
            return Ok(copied);
        }
        io::Write::write_all(to, &buffer[..n])
            .map_err(|e| Error::internal(format!("writing {}", file.display()), e))?;
        copied += n as u64;
    }
}

/// Reads to the end, where the source of the bytes verifies their digest.
fn drain(layer: &mut impl Read) -> Result<(), Error> {
    io::copy(&mut layer.take(LAYER_LIMIT_BYTES), &mut io::sink())
        .map(drop)
        .map_err(unreadable)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "stands where a function is passed"
)]
pub(crate) fn unreadable(error: io::Error) -> Error {
    Error::invalid(
        "layer",
        format!("it cannot be read as tar, plain or compressed by gzip or zstd: {error}"),
    )
}

/// `a/b` for `/a/./b/`; `None` for the root, and for a path that leaves it.
pub(crate) fn normalized(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return None,
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

fn joined(parent: &str, name: &str) -> String {
    if parent.is_empty() {
        name.to_owned()
    } else {
        format!("{parent}/{name}")
    }
}

/// The part of `path` below `ancestor`: empty when they are equal, `None` when it is not below.
pub(crate) fn below<'a>(path: &'a str, ancestor: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(ancestor)?;
    if rest.is_empty() {
        Some(rest)
    } else {
        rest.strip_prefix('/')
    }
}

/// The target of a symbolic link in `parent`, joined with `rest`. As in a chroot, `..` stops at the root.
fn followed(parent: &str, target: &str, rest: &str) -> Option<String> {
    let base = if target.starts_with('/') { "" } else { parent };
    let mut parts: Vec<&str> = Vec::new();
    for part in [base, target, rest]
        .into_iter()
        .flat_map(|path| path.split('/'))
    {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

#[cfg(test)]
#[path = "layer_fuzz_tests.rs"]
mod fuzz_tests;
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::layer_tests::TestLayer;

    fn extract(layer: &[u8], wanted: &[&str]) -> (tempfile::TempDir, BTreeMap<String, LayerMatch>) {
        let dir = tempfile::tempdir().unwrap();
        let wanted: Vec<_> = wanted.iter().map(|path| (*path).to_owned()).collect();
        let found = extract_files(layer, &wanted, dir.path()).unwrap();
        (dir, found)
    }

    #[test]
    fn files_keep_bytes_and_mode() {
        let big = vec![9; 300_000];
        let make = || {
            TestLayer::new()
                .file("./usr/bin/run", &big)
                .file("etc/x", "x")
        };
        for layer in [make().tar(), make().gzip(), make().zstd()] {
            let (_dir, found) = extract(&layer, &["usr/bin/run", "etc/x", "etc/none"]);
            let Some(LayerMatch::File(run)) = found.get("usr/bin/run") else {
                panic!("{found:?}")
            };
            assert_eq!(fs::read(run).unwrap(), big);
            assert_eq!(
                fs::metadata(run).unwrap().permissions().mode() & 0o7777,
                0o750
            );
            assert!(matches!(found.get("etc/x"), Some(LayerMatch::File(_))));
            assert!(!found.contains_key("etc/none"));
        }
    }

    #[test]
    fn links_are_followed_by_name() {
        let layer = TestLayer::new()
            .link("bin", "usr/bin")
            .link("usr/bin/a", "../lib/./b")
            .link("c", "/../../d")
            .entry(EntryType::Link, "e", "./f", b"")
            .tar();
        let (_dir, found) = extract(&layer, &["bin/x", "usr/bin/a", "c", "e"]);
        let link = |text: &str| Some(LayerMatch::Link(text.to_owned()));
        assert_eq!(found.get("bin/x").cloned(), link("usr/bin/x"));
        assert_eq!(found.get("usr/bin/a").cloned(), link("usr/lib/b"));
        assert_eq!(found.get("c").cloned(), link("d"));
        assert_eq!(found.get("e").cloned(), link("f"));
    }

    #[test]
    fn whiteouts_hide_lower_layers_only() {
        let layer = TestLayer::new()
            .file("a/.wh.gone", "")
            .file("b/.wh..wh..opq", "")
            .file("b/kept", "1")
            .tar();
        let (_dir, found) = extract(
            &layer,
            &["a/gone", "a/gone/deep", "a/gone2", "b/kept", "b/other"],
        );
        assert_eq!(found.get("a/gone"), Some(&LayerMatch::Removed));
        assert_eq!(found.get("a/gone/deep"), Some(&LayerMatch::Removed));
        assert_eq!(found.get("a/gone2"), None);
        assert!(matches!(found.get("b/kept"), Some(LayerMatch::File(_))));
        assert_eq!(found.get("b/other"), Some(&LayerMatch::Removed));
    }

    #[test]
    fn nothing_is_written_outside() {
        let layer = TestLayer::new()
            .file("../../evil", "x")
            .file("/abs", "y")
            .tar();
        let (dir, found) = extract(&layer, &["evil", "abs"]);
        assert_eq!(found.get("evil"), None);
        assert_eq!(
            found.get("abs"),
            Some(&LayerMatch::File(dir.path().join("1")))
        );
        assert!(!dir.path().join("../../evil").exists());
    }

    #[test]
    fn damaged_layers_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let make = || TestLayer::new().file("a", vec![1; 100_000]);
        let (whole, zstd) = (make().gzip(), make().zstd());
        for wrong in [
            &whole[..whole.len() / 2],
            &zstd[..zstd.len() / 2],
            &b"not a tar archive, although it is long enough".repeat(30),
            b"\x28\xb5\x2f\xfdzstd",
        ] {
            let refused = extract_files(wrong, &["a".to_owned()], dir.path());
            assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
        }
        assert!(
            extract_files(&b""[..], &["a".to_owned()], dir.path())
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn long_headers_are_not_read_into_memory() {
        let dir = tempfile::tempdir().unwrap();
        let read = |kind, size: u64| {
            let size = usize::try_from(size).unwrap();
            let layer = TestLayer::new()
                .file("before", vec![1; 3 << 20])
                .entry(kind, "extension", "", &vec![b'x'; size])
                .file("a", "content");
            extract_files(layer.gzip().as_slice(), &["a".to_owned()], dir.path())
        };
        // Enough for every path, and for a few extended attributes.
        assert!(
            read(EntryType::GNULongLink, 10_000)
                .unwrap()
                .contains_key("a")
        );
        for kind in [
            EntryType::GNULongName,
            EntryType::GNULongLink,
            EntryType::XHeader,
        ] {
            let refused = read(kind, HEADERS_LIMIT_BYTES).unwrap_err();
            assert!(matches!(refused, Error::TooLarge { .. }), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let dir = tempfile::tempdir().unwrap();
            extract_files(bytes.as_slice(), &["a".to_owned()], dir.path()).ok();
        }

        #[test]
        fn normalized_paths_stay_inside(path in "[a./]{0,20}") {
            if let Some(path) = normalized(&path) {
                prop_assert!(path.split('/').all(|part| !["", ".", ".."].contains(&part)));
            }
        }
    }
}
