//! Broken archives: reading ends, with a result or an error.
//!
//! Those that once broke it are kept in `tests/data/broken/archive/`.

use faults::{fuzz_tests, kept, with_tar_checksums};

use super::*;
use crate::archive::{Set, verify};

/// Largest member that is read. Units: bytes.
const MOST: u64 = 1 << 20;

fn archive(bytes: &[u8]) {
    for bytes in [bytes.to_vec(), with_tar_checksums(bytes)] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("mirror_000001.tar"), bytes).unwrap();
        let _ = verify(folder.path(), None, &RunProgress::default());
        let Ok(set) = Set::open(folder.path()) else {
            continue;
        };
        for digest in set.manifests() {
            if let Some(place) = set.blob(&digest) {
                let _ = place.manifest(&digest);
                let _ = place.read(MOST);
            }
        }
    }
}

/// With our index, and as another tool packs the same.
fn corpus() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let mut sample = Sample::of(2, 700);
    sample.list("misc/multi");
    let own = folder.path().join("own");
    let files = sample.write(&own, WIDE);
    let other = folder.path().join("other");
    repack(&files, &other, |path, _, bytes| {
        Some((path.to_owned(), bytes))
    });
    let mut all = kept(&own);
    all.extend(kept(&other));
    assert_eq!(all.len(), 2, "{:?} {:?}", names(&own), names(&other));
    all.extend(kept(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/broken/archive"),
    ));
    all
}

fuzz_tests! {
    archive: corpus(), 200, broken_archives_end_well, half_an_hour_of_broken_archives_end_well;
}
