//! Layers for tests.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tar::EntryType;

/// A layer under construction.
pub(crate) struct TestLayer(tar::Builder<Vec<u8>>);

impl TestLayer {
    pub(crate) fn new() -> Self {
        Self(tar::Builder::new(Vec::new()))
    }

    pub(crate) fn entry(
        mut self,
        kind: EntryType,
        path: &str,
        target: &str,
        content: &[u8],
    ) -> Self {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o4750);
        header.set_size(content.len() as u64);
        // Not `set_path` and `set_link_name`, which refuse hostile paths.
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        header.as_mut_bytes()[157..157 + target.len()].copy_from_slice(target.as_bytes());
        header.set_cksum();
        self.0.append(&header, content).unwrap();
        self
    }

    pub(crate) fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.entry(EntryType::Regular, path, "", content.as_ref())
    }

    pub(crate) fn link(self, path: &str, target: &str) -> Self {
        self.entry(EntryType::Symlink, path, target, b"")
    }

    pub(crate) fn tar(self) -> Vec<u8> {
        self.0.into_inner().unwrap()
    }

    pub(crate) fn gzip(self) -> Vec<u8> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&self.tar()).unwrap();
        gzip.finish().unwrap()
    }

    pub(crate) fn zstd(self) -> Vec<u8> {
        compress_to_vec(&self.tar()[..], CompressionLevel::Fastest)
    }
}
