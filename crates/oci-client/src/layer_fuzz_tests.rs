//! Broken layers: reading ends, with a result or an error, and extracts nothing but the wanted files.
//!
//! Layers that once broke it are kept in `tests/data/broken/layer/`.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use faults::{fuzz_tests, kept, with_tar_checksums};
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::extract_files;

const WANTED: [&str; 3] = ["bin/program", "etc/link", "etc/gone"];

fn layer(bytes: &[u8]) {
    for bytes in [bytes.to_vec(), with_tar_checksums(bytes)] {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        let dest = folder.path().join("dest");
        fs::create_dir(&dest).unwrap();
        let wanted = WANTED.map(str::to_owned);
        let _ = extract_files(&bytes[..], &wanted, &dest);
        assert!(!outside.exists());
        for entry in fs::read_dir(&dest).unwrap() {
            let name = entry.unwrap().file_name();
            assert!(["0", "1", "2"].iter().any(|own| name == *own), "{name:?}");
        }
    }
}

fn entry(archive: &mut Builder<Vec<u8>>, kind: EntryType, path: &str, content: &[u8]) {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o4755);
    header.set_size(content.len() as u64);
    if kind.is_symlink() || kind.is_hard_link() {
        header.set_size(0);
        header.set_link_name("../../outside").unwrap();
        archive.append_data(&mut header, path, &[][..]).unwrap();
    } else {
        archive.append_data(&mut header, path, content).unwrap();
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    entry(&mut archive, EntryType::Directory, "bin", b"");
    entry(&mut archive, EntryType::Regular, "bin/program", &[7; 3000]);
    entry(&mut archive, EntryType::Symlink, "etc/link", b"");
    entry(&mut archive, EntryType::Link, "etc/hard", b"");
    entry(&mut archive, EntryType::Regular, "etc/.wh.gone", b"");
    entry(&mut archive, EntryType::Regular, "var/.wh..wh..opq", b"");
    let long = format!("long/{}", "name/".repeat(60));
    entry(
        &mut archive,
        EntryType::Regular,
        &format!("{long}file"),
        b"x",
    );
    archive
        .append_pax_extensions([("path", &b"etc/pax"[..]), ("size", b"4")])
        .unwrap();
    entry(&mut archive, EntryType::Regular, "other", b"text");
    let plain = archive.into_inner().unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&plain).unwrap();
    let mut all = vec![plain, gzip.finish().unwrap()];
    all.extend(kept(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/broken/layer"),
    ));
    all
}

fuzz_tests! {
    layer: corpus(), 500, broken_layers_end_well, half_an_hour_of_broken_layers_end_well;
}
