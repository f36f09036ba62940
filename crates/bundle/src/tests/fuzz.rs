//! Broken bundles: reading ends, with a result or an error, and extracts nothing outside of its folder.
//!
//! Those that once broke it are kept in `tests/data/broken/bundle/`.

use faults::{fuzz_tests, kept, with_tar_checksums};

use super::*;

/// Reads `bytes` as a bundle: as they are, with right checksums of its headers, and as the manifest of a sound head with
/// content that is zeros.
fn bundle(bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bundle.tar");
    for bytes in [bytes.to_vec(), with_tar_checksums(bytes)] {
        fs::write(&file, bytes).unwrap();
        read(&file, folder.path());
    }
    let Some(manifest) = manifest_of(bytes) else {
        return;
    };
    let crafted = with_text(folder.path(), &manifest);
    let length = fs::metadata(&crafted).unwrap().len();
    let parsed = BundleManifest::parse(&manifest);
    let whole = parsed.map_or(0, |manifest| manifest.size);
    // Longer ones are refused by their length alone.
    if (length..=MOST).contains(&whole) {
        let file = fs::OpenOptions::new().write(true).open(&crafted).unwrap();
        file.set_len(whole).unwrap();
    }
    read(&crafted, folder.path());
}

/// Length of a crafted bundle. Units: bytes.
const MOST: u64 = 4 << 20;

/// The manifest at its place in the head, which mutations leave readable where they change digits.
fn manifest_of(bytes: &[u8]) -> Option<Vec<u8>> {
    let start = crate::framing::BLOCK_BYTES;
    let size = header_size(bytes.get(..start)?)?;
    Some(bytes.get(start..start.checked_add(size)?)?.to_vec())
}

/// Of a header of tar: octal digits at 124.
fn header_size(header: &[u8]) -> Option<usize> {
    let digits = std::str::from_utf8(&header[124..135]).ok()?;
    usize::from_str_radix(digits.trim_matches(['\0', ' ']), 8).ok()
}

fn read(file: &Path, folder: &Path) {
    let Ok(bundle) = BundleFile::open(file, None) else {
        return;
    };
    let _ = bundle.verify(&mut |_| {});
    let dest = folder.join("dest");
    for (number, member) in bundle.manifest().members.iter().enumerate() {
        let _ = bundle.extract(member, &dest.join(number.to_string()));
        let _ = bundle.bytes(&member.path, MOST);
    }
    let images: Vec<_> = bundle.manifest().images.iter().collect();
    let _ = bundle.extract_layout(&images, &dest.join("layout"));
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name();
        let own = ["bundle.tar", "crafted.tar", "dest"];
        assert!(own.iter().any(|own| name == *own), "{name:?}");
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let (signer, _) = Signer::generate().unwrap();
    let mut all: Vec<_> = [fixture(None), fixture(Some(&signer))]
        .map(|fixture| fs::read(fixture.file).unwrap())
        .into();
    // Mutations of the whole file would seldom hit the head.
    let head = all[0][..16 << 10].to_vec();
    all.push(head);
    all.extend(kept(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/broken/bundle"),
    ));
    all
}

fuzz_tests! {
    bundle: corpus(), 150, broken_bundles_end_well, half_an_hour_of_broken_bundles_end_well;
}
