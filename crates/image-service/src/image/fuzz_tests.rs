//! Broken images: every reader ends, with a result or an error.
//!
//! Images that once broke a reader are kept in `tests/data/broken/FORMAT/`.

use std::fs;
use std::path::{Path, PathBuf};

use faults::kept;
use ignition::archive;

use super::erofs::find_in_erofs;
use super::squashfs::Squashfs;
use super::{
    BaseImage, InitrdArchives, KargsChange, customised, minimal_iso, nmstatectl_archive, pristine,
};

const DEPLOYED: [&str; 8] = [
    "ostree",
    "deploy",
    "*",
    "deploy",
    "*",
    "usr",
    "bin",
    "nmstatectl",
];
/// Units: bytes. Of a program.
const MOST: u64 = 1 << 20;

/// The sound images, whose names end with `end`, and the kept broken ones of the format.
fn corpus(format: &str, end: &str) -> Vec<Vec<u8>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let entries = fs::read_dir(&data).unwrap().map(Result::unwrap);
    let paths = entries.map(|entry| entry.path());
    let is_sound = |path: &PathBuf| path.is_file() && path.to_string_lossy().ends_with(end);
    let mut sound: Vec<_> = paths.filter(is_sound).collect();
    sound.sort();
    let sound = sound.iter().map(|path| fs::read(path).unwrap());
    sound
        .chain(kept(&data.join("broken").join(format)))
        .collect()
}

fn squashfs(bytes: &[u8]) {
    if let Ok(image) = Squashfs::open(bytes) {
        let _ = image.find(&DEPLOYED, MOST);
    }
}

fn erofs(bytes: &[u8]) {
    let _ = find_in_erofs(bytes, &DEPLOYED, MOST);
}

/// Everything that is made of an image.
fn iso(bytes: &[u8]) {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    let Ok(image) = BaseImage::open(file.path()) else {
        return;
    };
    let _ = image.check_sizes(file.path());
    let kargs = KargsChange {
        delete: vec!["rw".to_owned()],
        replace: vec!["a=b=c".to_owned()],
        append: vec!["a=b".to_owned()],
    };
    let archives = InitrdArchives::default;
    let _ = customised(&image, Some(b"{}"), archives(), &kargs);
    let _ = minimal_iso(&image, b"{}", archives(), &kargs, "http://a/rootfs");
    let _ = pristine(&image);
    let _ = image.default_kernel_arguments();
    let _ = nmstatectl_archive(&image);
}

fn ramdisk(bytes: &[u8]) {
    let _ = archive::read(bytes);
}

fn isos() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.iso");
    let options = testkit::iso::LiveImageOptions {
        rootfs_bytes: 20_000,
        ..testkit::iso::LiveImageOptions::small()
    };
    testkit::iso::write(&path, &options).unwrap();
    let mut all = corpus("iso", ".iso");
    all.push(fs::read(path).unwrap());
    all
}

fn ramdisks() -> Vec<Vec<u8>> {
    let one = archive::write(b"{\"ignition\":{\"version\":\"3.2.0\"}}").unwrap();
    let plain = ignition::cpio::write(&[ignition::cpio::CpioMember {
        name: "etc/assisted/network/host0/a.yml",
        mode: 0o100_644,
        data: b"interfaces: []",
    }]);
    let plain = plain.unwrap();
    let mut all = corpus("ramdisk", ".cpio");
    all.extend([
        [&one[..], &plain].concat(),
        [&plain[..], &one].concat(),
        one,
        plain,
    ]);
    all
}

faults::fuzz_tests! {
    squashfs: corpus("squashfs", ".squashfs"), 500, broken_squashfs_images_end_well, half_an_hour_of_broken_squashfs_images_end_well;
    erofs: corpus("erofs", ".erofs"), 300, broken_erofs_images_end_well, half_an_hour_of_broken_erofs_images_end_well;
    iso: isos(), 300, broken_isos_end_well, half_an_hour_of_broken_isos_end_well;
    ramdisk: ramdisks(), 1000, broken_ramdisks_end_well, half_an_hour_of_broken_ramdisks_end_well;
}
