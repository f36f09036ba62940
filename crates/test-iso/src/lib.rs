//! Live images with the genuine layout that the image service reads, for labs and tests.
//!
//! The images hold the real structures (volume descriptors, 8.3 names, embed areas, boot catalog, archives) and
//! made-up programs: a machine that boots one halts. Written without external tools, sparse on disk, and the
//! same options always give the same bytes.

mod boot;
mod content;
mod layout;
mod options;
mod records;
mod tree;

use std::io;
use std::path::Path;

pub use options::{LiveImageOptions, Written};

/// Writes a live image to `path`.
///
/// Errors: those of the file system, and `InvalidInput` when a size does not fit into the format.
pub fn write(path: &Path, options: &LiveImageOptions) -> io::Result<Written> {
    layout::write(path, options, content::tree(options)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt as _, MetadataExt as _};

    use super::*;

    fn written(options: &LiveImageOptions) -> (tempfile::TempDir, Vec<u8>, Written) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("live.iso");
        let written = write(&path, options).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        (directory, bytes, written)
    }

    #[test]
    fn descriptors_have_the_properties_of_the_image() {
        let (_directory, bytes, written) = written(&LiveImageOptions::small());
        assert_eq!(bytes.len() as u64, written.length);
        assert_eq!(&bytes[32768..32774], b"\x01CD001");
        assert_eq!(&bytes[32808..32840], b"rhcos-418.94.202511191518-0     ");
        let sectors = u32::from_le_bytes(bytes[32848..32852].try_into().unwrap());
        assert_eq!(u64::from(sectors) * 2048, written.length);
        assert_eq!(
            &bytes[34816..34846],
            b"\x00CD001\x01EL TORITO SPECIFICATION"
        );
    }

    #[test]
    fn areas_are_at_the_recorded_offsets() {
        let (_directory, bytes, written) = written(&LiveImageOptions::small());
        let file = |path: &str| {
            let (start, length) = written.files[path];
            &bytes[usize::try_from(start).unwrap()..][..usize::try_from(length).unwrap()]
        };
        assert!(file("images/ignition.img").iter().all(|byte| *byte == 0));
        assert_eq!(
            file("images/ignition.img").len(),
            ignition::archive::EMBED_AREA
        );
        let kargs: serde_json::Value = serde_json::from_slice(file("coreos/kargs.json")).unwrap();
        let size = usize::try_from(kargs["size"].as_u64().unwrap()).unwrap();
        for area in kargs["files"].as_array().unwrap() {
            let offset = usize::try_from(area["offset"].as_u64().unwrap()).unwrap();
            let file = file(area["path"].as_str().unwrap());
            let text = std::str::from_utf8(&file[offset..][..size]).unwrap();
            let default = kargs["default"].as_str().unwrap();
            assert_eq!(text.trim_end_matches('#'), format!("{default}\n"));
            assert!(file[offset + size..].starts_with(b"# COREOS_KARG_EMBED_AREA\n"));
        }
        assert_eq!(&file("images/pxeboot/rootfs.img")[124..128], b"hsqs");
    }

    #[test]
    fn a_genuine_size_is_sparse_on_disk() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("live.iso");
        let written = write(&path, &LiveImageOptions::default()).unwrap();
        let metadata = std::fs::metadata(&path).unwrap();
        assert_eq!(metadata.len(), written.length);
        assert!(written.files["images/pxeboot/rootfs.img"].1 >= 100 * 1024 * 1024);
        assert!(metadata.blocks() * 512 < metadata.len() / 10);
        let mut magic = [0; 5];
        let file = std::fs::File::open(&path).unwrap();
        file.read_exact_at(&mut magic, 32769).unwrap();
        assert_eq!(&magic, b"CD001");
    }

    #[test]
    fn the_same_options_give_the_same_bytes() {
        let options = LiveImageOptions {
            cpu_architecture: "arm64".to_owned(),
            joliet: false,
            ..LiveImageOptions::small()
        };
        assert_eq!(written(&options).1, written(&options).1);
    }
}
