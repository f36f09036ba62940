//! Broken images: every reader ends, with a result or an error.
//!
//! Images that once broke a reader are kept in `tests/data/broken/FORMAT/`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use faults::{run_binary_mutations, run_binary_mutations_for};
use ignition::archive;

use super::erofs::find_in_erofs;
use super::squashfs::Squashfs;
use super::{BaseImage, InitrdArchives, full_iso, minimal_iso, nmstatectl_archive, pristine};

/// Of the long runs.
const TIME: Duration = Duration::from_mins(30);
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
    let read = |folder: &Path| -> Vec<(String, Vec<u8>)> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        let named = files.map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).unwrap())
        });
        named.collect()
    };
    let mut all = read(&data);
    all.retain(|(name, _)| name.ends_with(end));
    all.extend(read(&data.join("broken").join(format)));
    all.sort();
    all.into_iter().map(|(_, bytes)| bytes).collect()
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
    let kargs = ["a=b".to_owned()];
    let archives = InitrdArchives::default;
    let _ = full_iso(&image, b"{}", archives(), &kargs);
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

macro_rules! formats {
    ($($body:ident: $corpus:expr, $cases:literal, $short:ident, $long:ident;)*) => {
        $(
            #[test]
            fn $short() {
                run_binary_mutations(&$corpus, $body, $cases);
            }

            #[test]
            #[ignore = "takes half an hour"]
            fn $long() {
                let count = run_binary_mutations_for(&$corpus, $body, TIME);
                println!("{count} mutations");
            }
        )*
    };
}

formats! {
    squashfs: corpus("squashfs", ".squashfs"), 500, broken_squashfs_images_end_well, half_an_hour_of_broken_squashfs_images_end_well;
    erofs: corpus("erofs", ".erofs"), 300, broken_erofs_images_end_well, half_an_hour_of_broken_erofs_images_end_well;
    iso: isos(), 300, broken_isos_end_well, half_an_hour_of_broken_isos_end_well;
    ramdisk: ramdisks(), 1000, broken_ramdisks_end_well, half_an_hour_of_broken_ramdisks_end_well;
}
