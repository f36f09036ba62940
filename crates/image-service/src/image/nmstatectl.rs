//! The program that applies network policies, as an archive for an initrd, which has none of its own.
//!
//! Source: assisted-image-service, pkg/isoeditor/nmstate_handler.go.

use std::io;
use std::path::Path;

use bytes::Bytes;
use ignition::archive;
use ignition::cpio::{self, CpioMember};

use super::base::BaseImage;
use super::erofs::find_in_erofs;
use super::squashfs::{ReadAt, Squashfs};

/// Path in the initrd.
const PROGRAM: &str = "/usr/bin/nmstatectl";
/// Paths in a root file system: deployed by ostree, or plain.
const PATHS: &[&[&str]] = &[
    &[
        "ostree",
        "deploy",
        "*",
        "deploy",
        "*",
        "usr",
        "bin",
        "nmstatectl",
    ],
    &["usr", "bin", "nmstatectl"],
];
/// Largest program. Units: bytes. The genuine one has about 15 MiB.
const MAX_PROGRAM: u64 = 128 << 20;
/// Most members of rootfs.img before the root file system, which is the first.
const MAX_MEMBERS: usize = 16;

/// Formats of root file systems.
#[derive(Debug, Clone, Copy)]
enum Format {
    Squashfs,
    Erofs,
}

/// The root file system inside an image.
struct RootFs<'a> {
    image: &'a BaseImage,
    /// Offset in rootfs.img.
    start: u64,
    /// Units: bytes.
    length: u64,
    format: Format,
}

impl RootFs<'_> {
    /// The contents of the first file at `path`, whose parts may be `*`.
    fn find(&self, path: &[&str]) -> io::Result<Option<Vec<u8>>> {
        match self.format {
            Format::Squashfs => Squashfs::open(self)?.find(path, MAX_PROGRAM),
            Format::Erofs => find_in_erofs(self, path, MAX_PROGRAM),
        }
    }
}

impl ReadAt for &RootFs<'_> {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.image.read_rootfs(buffer, self.start + offset)
    }
}

/// The compressed archive with `nmstatectl` of the image.
///
/// Errors: `InvalidData` – the root file system is of another format, or has no such program.
pub fn nmstatectl_archive(image: &BaseImage) -> io::Result<Bytes> {
    let root = root_fs(image)?;
    for path in PATHS {
        if let Some(program) = root.find(path)? {
            let member = CpioMember {
                name: PROGRAM,
                mode: cpio::REGULAR | 0o755,
                data: &program,
            };
            return archive::pack(&[member])
                .map(Bytes::from)
                .map_err(io::Error::other);
        }
    }
    Err(invalid("its root file system has no nmstatectl"))
}

/// The member of rootfs.img that is the root file system.
fn root_fs(image: &BaseImage) -> io::Result<RootFs<'_>> {
    let mut at = 0;
    for _ in 0..MAX_MEMBERS {
        let mut head = [0; cpio::HEADER];
        image.read_rootfs(&mut head, at)?;
        let (size, name_size) =
            cpio::sizes(&head).map_err(|error| invalid(&format!("rootfs.img: {error}")))?;
        let name_start = at + cpio::HEADER as u64;
        let mut name = vec![0; usize::try_from(name_size).unwrap_or_default().min(256)];
        image.read_rootfs(&mut name, name_start)?;
        let name_end = name_start + u64::from(name_size);
        let start = name_end + cpio::padding(name_end) as u64;
        let length = u64::from(size);
        let format = match name.as_slice() {
            b"root.squashfs\0" => Format::Squashfs,
            b"root.erofs\0" => Format::Erofs,
            _ => {
                at = start + length + cpio::padding(start + length) as u64;
                continue;
            }
        };
        return Ok(RootFs {
            image,
            start,
            length,
            format,
        });
    }
    Err(invalid("rootfs.img has no root file system"))
}

/// Whether the ramdisk has network policies, which its script applies with `nmstatectl`. The installer API decides on
/// the form of the network, so the version is not looked at here.
pub(crate) fn needs_nmstatectl(ramdisk: &[u8]) -> Result<bool, ignition::Error> {
    let files = archive::read(ramdisk)?;
    Ok(files.iter().any(|file| {
        let name = file.name.trim_start_matches('/');
        let policy = name.strip_prefix("etc/assisted/network/");
        policy.is_some_and(|path| {
            Path::new(path)
                .extension()
                .is_some_and(|kind| kind == "yml")
        })
    }))
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
