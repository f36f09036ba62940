//! The files of a live image.

use std::fmt::Write as _;
use std::io;

use ignition::cpio::{self, CpioMember};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::boot;
use crate::options::LiveImageOptions;
use crate::tree::{Data, FileTree};

/// Units: bytes. Room after the default kernel arguments.
const KARGS_ROOM: usize = 1024;
/// Units: bytes. The pieces of rootfs.img that are hashed one by one.
const HASHED_CHUNK: u64 = 2 * 1024 * 1024;
/// Units: bytes. Distance of the marks in the made-up large files.
const MARK_DISTANCE: u64 = 1024 * 1024;

/// All files of the image; the layout fills in sectors.
pub(super) fn tree(options: &LiveImageOptions) -> io::Result<FileTree> {
    if options.cpu_architecture == "s390x" {
        return s390x_tree(options);
    }
    let is_x86 = options.cpu_architecture == "x86_64";
    let volume_id = options.volume_id();
    let kargs =
        format!("rw coreos.liveiso={volume_id} ignition.firstboot ignition.platform.id=metal");
    let grub = loader_config(GRUB, &kargs);
    let isolinux = loader_config(ISOLINUX, &kargs);
    let rootfs = rootfs(options.rootfs_bytes, &options.rootfs_head)?;

    let grub_path = format!("EFI/{}/grub.cfg", options.vendor);
    let mut areas = vec![area(&grub_path, &grub)];
    let mut tree = FileTree::new();
    tree.add(&grub_path, grub.into_bytes());
    if is_x86 {
        areas.push(area(ISOLINUX_PATH, &isolinux));
        tree.add(boot::CATALOG_X86, Data::zeros(2048));
        tree.add(boot::LOADER, boot::loader());
        tree.add(ISOLINUX_PATH, isolinux.into_bytes());
    } else {
        tree.add(boot::CATALOG_EFI, Data::zeros(2048));
    }
    let size = kargs.len() + 1 + KARGS_ROOM;
    let record = json!({ "default": kargs, "files": areas, "size": size });
    add_coreos_records(&mut tree, options, &json!({ "file": IGNITION }), &record);
    tree.add(
        boot::EFI_IMAGE,
        boot::efi_image(&volume_id, &options.vendor),
    );
    tree.add(IGNITION, Data::zeros(ignition::archive::EMBED_AREA as u64));
    tree.add("images/pxeboot/initrd.img", initrd(options, &rootfs)?);
    tree.add("images/pxeboot/rootfs.img", rootfs);
    tree.add("images/pxeboot/vmlinuz", vmlinuz(options.vmlinuz_bytes));
    Ok(tree)
}

const IGNITION: &str = "images/ignition.img";
const ISOLINUX_PATH: &str = "isolinux/isolinux.cfg";

const GRUB: [&str; 2] = [
    "# Comments, as in genuine images.\n# COREOS\nset timeout=5\nmenuentry 'CoreOS (Live)' --class fedora --class gnu-linux {\n\tlinux /images/pxeboot/vmlinuz ",
    "\tinitrd /images/pxeboot/initrd.img /images/ignition.img\n}\n",
];
const ISOLINUX: [&str; 2] = [
    "default linux\ntimeout 50\nlabel linux\n  menu default\n  kernel /images/pxeboot/vmlinuz\n  append initrd=/images/pxeboot/initrd.img,/images/ignition.img ",
    "menu end\n",
];

fn loader_config([before, after]: [&str; 2], kargs: &str) -> String {
    let room = "#".repeat(KARGS_ROOM);
    format!("{before}{kargs}\n{room}# COREOS_KARG_EMBED_AREA\n{after}")
}

fn area(path: &str, config: &str) -> serde_json::Value {
    let offset = config.find("rw coreos.liveiso=");
    json!({ "path": path, "offset": offset, "pad": "#", "end": "\n" })
}

fn add_coreos_records(
    tree: &mut FileTree,
    options: &LiveImageOptions,
    igninfo: &serde_json::Value,
    kargs: &serde_json::Value,
) {
    let mut add = |path: &str, record: &serde_json::Value| {
        tree.add(path, format!("{record:#}\n").into_bytes());
    };
    add("coreos/features.json", &features());
    if options.igninfo_json {
        add("coreos/igninfo.json", igninfo);
    }
    if options.kargs_json {
        add("coreos/kargs.json", kargs);
    }
}

/// One boot image holds the initrd, the kernel arguments and the ignition area. Source: the facts of live images of s390x
/// since 2023.
fn s390x_tree(options: &LiveImageOptions) -> io::Result<FileTree> {
    const KARGS_OFFSET: u64 = 66_688;
    const KARGS_SIZE: usize = 896;
    const INITRD_OFFSET: u64 = 1 << 20;
    let kargs = format!(
        "rw coreos.liveiso={} ignition.firstboot",
        options.volume_id()
    );
    let rootfs = rootfs(options.rootfs_bytes, &options.rootfs_head)?;
    let initrd = initrd(options, &rootfs)?;
    let ignition_offset = INITRD_OFFSET + initrd.len() as u64;
    let room = ignition::archive::EMBED_AREA as u64;
    let length = u32::try_from(initrd.len()).map_err(io::Error::other)?;
    let cdboot = Data {
        length: ignition_offset + room,
        parts: vec![
            (66_568, INITRD_OFFSET.to_be_bytes().to_vec()),
            (66_576, u64::from(length).to_be_bytes().to_vec()),
            (KARGS_OFFSET, kargs.clone().into_bytes()),
            (INITRD_OFFSET, initrd.clone()),
        ],
    };
    let mut tree = FileTree::new();
    tree.add(boot::CATALOG_EFI, Data::zeros(2048));
    let igninfo = json!({ "file": boot::S390X_IMAGE, "offset": ignition_offset, "length": room });
    let area =
        json!({ "path": boot::S390X_IMAGE, "offset": KARGS_OFFSET, "pad": "\0", "end": "\0" });
    let record = json!({ "default": kargs, "files": [area], "size": KARGS_SIZE });
    add_coreos_records(&mut tree, options, &igninfo, &record);
    let list = "images/pxeboot/vmlinuz 0x00000000\nimages/pxeboot/initrd.img 0x02000000\n";
    tree.add("generic.ins", list.as_bytes().to_vec());
    tree.add(boot::S390X_IMAGE, cdboot);
    let addrsize = [0, 0x0200_0000, 0, length].map(u32::to_be_bytes).concat();
    tree.add("images/initrd.addrsize", addrsize);
    tree.add("images/pxeboot/initrd.img", initrd);
    tree.add("images/pxeboot/rootfs.img", rootfs);
    tree.add("images/pxeboot/vmlinuz", vmlinuz(options.vmlinuz_bytes));
    Ok(tree)
}

fn features() -> serde_json::Value {
    json!({
        "installer-config": true,
        "installer-config-directives": { "append-karg": true, "dest-device": true, "ignition-file": true },
        "live-initrd-network": true,
    })
}

/// A fake kernel: the signatures that tools check, and marks.
fn vmlinuz(length: u64) -> Data {
    let mut data = marked(length);
    data.parts.insert(0, (0, b"MZ".to_vec()));
    data.parts.insert(1, (0x202, b"HdrS".to_vec()));
    data
}

/// Zeros, with the number of the mebibyte at 1 KiB into each, so that a shifted byte shows.
fn marked(length: u64) -> Data {
    let offsets = (0..).map(|index| (index, index * MARK_DISTANCE + 1024));
    let parts = offsets
        .take_while(|(_, offset)| offset + 8 <= length)
        .map(|(index, offset): (u64, u64)| (offset, index.to_be_bytes().to_vec()))
        .collect();
    Data { length, parts }
}

const EROFS_MAGIC: [u8; 4] = [0xe2, 0xe1, 0xf5, 0xe0];

/// An uncompressed archive whose first member is the root file system.
fn rootfs(length: u64, content: &[u8]) -> io::Result<Data> {
    let size = u32::try_from(length).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, "rootfs_bytes is 4 GiB or more")
    })?;
    let is_erofs = content.get(1024..1028) == Some(&EROFS_MAGIC);
    let name = if is_erofs {
        "root.erofs"
    } else {
        "root.squashfs"
    };
    let head = cpio::header(name, cpio::REGULAR | 0o644, size);
    let start = head.len() as u64;
    let made_up = marked(length).parts.into_iter();
    let mut parts = vec![(0, head)];
    if content.is_empty() {
        parts.push((start, b"hsqs".to_vec()));
    } else {
        parts.push((start, content.to_vec()));
    }
    parts.extend(
        made_up
            .filter(|(offset, _)| *offset >= content.len() as u64)
            .map(|(offset, bytes)| (start + offset, bytes)),
    );
    let marker = CpioMember {
        name: "etc/coreos-live-rootfs",
        mode: cpio::REGULAR | 0o644,
        data: b"",
    };
    let tail = cpio::write(&[marker]).map_err(io::Error::other)?;
    let tail_start = start + length + cpio::padding(length) as u64;
    let length = tail_start + tail.len() as u64;
    parts.push((tail_start, tail));
    Ok(Data { length, parts })
}

fn initrd(options: &LiveImageOptions, rootfs: &Data) -> io::Result<Vec<u8>> {
    let build = format!("{}\n", options.os_version);
    let hashes = stream_hash(rootfs);
    let features = format!("{:#}\n", features());
    let directory = |name| CpioMember {
        name,
        mode: cpio::DIRECTORY | 0o755,
        data: b"",
    };
    let file = |name, text| CpioMember {
        name,
        mode: cpio::REGULAR | 0o644,
        data: str::as_bytes(text),
    };
    let archive = cpio::write(&[
        directory("etc"),
        file("etc/coreos-live-initramfs", &build),
        file("etc/coreos-live-want-rootfs", &hashes),
        directory("etc/coreos"),
        file("etc/coreos/features.json", &features),
    ])
    .map_err(io::Error::other)?;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    io::Write::write_all(&mut encoder, &archive)?;
    encoder.finish()
}

/// Hashes that early boot compares a downloaded rootfs.img with.
fn stream_hash(rootfs: &Data) -> String {
    let mut text = format!("stream-hash sha256 {HASHED_CHUNK}\n");
    let mut buffer = vec![0; usize::try_from(HASHED_CHUNK).unwrap_or(usize::MAX)];
    let mut start = 0;
    while start < rootfs.length {
        let length = HASHED_CHUNK.min(rootfs.length - start);
        let chunk = &mut buffer[..super::tree::index(length)];
        rootfs.read(start, chunk);
        for byte in Sha256::digest(&chunk) {
            write!(text, "{byte:02x}").expect("a string takes all text");
        }
        text.push('\n');
        start += length;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rootfs_is_an_archive() {
        let rootfs = rootfs(5001, b"").unwrap();
        let mut bytes = vec![0; super::super::tree::index(rootfs.length)];
        rootfs.read(0, &mut bytes);
        let (members, length) = cpio::read(&bytes).unwrap();
        assert_eq!(length, bytes.len());
        assert_eq!(members[0].name, "root.squashfs");
        assert_eq!(members[0].data.len(), 5001);
        assert_eq!(&bytes[124..128], b"hsqs");
        assert_eq!(members[1].name, "etc/coreos-live-rootfs");
        let lines = stream_hash(&rootfs);
        assert_eq!(lines.lines().count(), 2);
    }

    #[test]
    fn the_initrd_can_be_unpacked() {
        let options = LiveImageOptions::small();
        let rootfs = rootfs(10, b"").unwrap();
        let files = ignition::archive::read(&initrd(&options, &rootfs).unwrap()).unwrap();
        let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
        assert!(names.contains(&"etc/coreos-live-initramfs"));
    }
}
