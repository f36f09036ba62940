//! Opening sets: ours, those of other tools, and incomplete ones.

use blob_store::conformance::EMPTY_LAYER;
use proptest::prelude::*;

use super::*;
use crate::archive::{METADATA, Set, describe};

fn sample() -> Sample {
    let mut sample = Sample::of(4, 3000);
    sample.list("misc/multi");
    sample
}

fn open_error(path: &Path) -> String {
    Set::open(path).unwrap_err().to_string()
}

fn check(set: &Set, sample: &Sample) {
    assert_eq!(*set.metadata(), sample.metadata);
    let content = set.content().unwrap();
    let key = |image: &ResolvedImage| {
        (
            image.pinned(),
            image.wanted.repository.clone(),
            image.wanted.tag.clone(),
        )
    };
    let all = |content: &ImageContent| content.images.iter().map(key).collect::<Vec<_>>();
    assert_eq!(all(&content), all(&sample.content));
    assert_eq!(content.manifests, sample.content.manifests);
    assert!(content.blobs.keys().eq(sample.content.blobs.keys()));
    for (digest, bytes) in &sample.blobs {
        assert_eq!(content.blobs[digest].size, bytes.len() as u64);
        assert_eq!(set.blob(digest).unwrap().read(1 << 20).unwrap(), bytes);
    }
    let catalogs: Vec<_> = set
        .below("catalogs/")
        .map(|(path, place)| (path, place.size))
        .collect();
    assert_eq!(catalogs, [("catalogs/r/c/index/index.json", 2)]);
}

#[test]
fn folders_and_files_are_opened() {
    let dir = tempfile::tempdir().unwrap();
    let sample = sample();
    let files = sample.write(dir.path(), 14_000);
    assert!(files.len() > 2);
    for path in [dir.path(), &files[0], &files[1]] {
        check(&Set::open(path).unwrap(), &sample);
        assert_eq!(describe(path).unwrap(), sample.metadata);
    }
}

#[test]
fn archives_of_others_are_opened() {
    let dir = tempfile::tempdir().unwrap();
    let mut sample = sample();
    let files = sample.write(&dir.path().join("a"), 14_000);
    let other = dir.path().join("b");
    repack(&files, &other, |path, _, bytes| {
        let bytes = match path {
            METADATA => [&bytes[..], b"]} left over"].concat(),
            _ => bytes,
        };
        Some((format!("./{path}"), bytes))
    });
    check(&Set::open(&other).unwrap(), &sample);
    // In one file, of any name, the metadata anywhere.
    let single = dir.path().join("c");
    sample.metadata.past_mirror.sequence = 3;
    let files = sample.write(&dir.path().join("d"), WIDE);
    repack(&files, &single, |path, _, bytes| {
        Some((path.to_owned(), bytes))
    });
    let path = single.join("moved.tar");
    fs::rename(single.join("mirror_seq3_000000.tar"), &path).unwrap();
    check(&Set::open(&single).unwrap(), &sample);
    check(&Set::open(&path).unwrap(), &sample);
    fs::rename(&files[0], dir.path().join("d/own.tar")).unwrap();
    check(&Set::open(&dir.path().join("d")).unwrap(), &sample);
}

#[test]
fn images_come_as_they_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut sample = Sample::of(5, 3000);
    // The peer lists them in any order.
    sample.metadata.past_mirror.associations.reverse();
    sample.write(dir.path(), 14_000);
    check(&Set::open(dir.path()).unwrap(), &sample);
}

#[test]
fn folders_without_a_set_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    assert!(open_error(&path("nowhere")).contains("nowhere was not found"));
    assert!(open_error(dir.path()).contains("no archives found in directory"));
    fs::write(path("x.tar"), b"neither this nor that").unwrap();
    assert!(
        open_error(dir.path()).contains("x.tar: "),
        "{}",
        open_error(dir.path())
    );
    fs::write(path("x.tar"), b"\x1f\x8bcompressed").unwrap();
    assert!(open_error(dir.path()).contains("gunzip"));
    let mut builder = tar::Builder::new(File::create(path("x.tar")).unwrap());
    let mut header = tar::Header::new_gnu();
    header.set_size(1);
    builder
        .append_data(&mut header, "a", b"a".as_slice())
        .unwrap();
    builder.finish().unwrap();
    assert!(open_error(dir.path()).contains("metadata is not in archive"));
}

#[test]
fn headers_that_lead_astray_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tar");
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..6].copy_from_slice(b"../etc");
    header.set_size(0);
    header.set_cksum();
    fs::write(&path, [header.as_bytes().as_slice(), &[0; 1024]].concat()).unwrap();
    assert!(open_error(&path).contains("leads out of the archive"));
    // A name of two MiB is not read into memory.
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::GNULongName);
    header.set_size(2 << 20);
    header.set_cksum();
    fs::write(
        &path,
        [header.as_bytes().as_slice(), &vec![b'a'; 3 << 20]].concat(),
    )
    .unwrap();
    assert!(
        open_error(&path).contains("too long"),
        "{}",
        open_error(&path)
    );
}

#[test]
fn several_sets_in_a_folder_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut sample = sample();
    sample.write(dir.path(), 14_000);
    sample.metadata.past_mirror.sequence = 2;
    let second = sample.write(&dir.path().join("below"), 14_000);
    let error = open_error(dir.path());
    assert!(error.contains("sequences 1, 2"), "{error}");
    assert!(describe(dir.path()).is_err());
    check(&Set::open(&second[0]).unwrap(), &sample);
    // Called otherwise than its metadata says.
    let third = dir.path().join("third");
    for (number, file) in sample.write(&third, 14_000).iter().enumerate() {
        fs::rename(file, third.join(crate::archive::file_name(3, number))).unwrap();
    }
    let error = open_error(&third);
    assert!(
        error.contains("sequence 3") && error.contains("says 2"),
        "{error}"
    );
    // The same file twice.
    let fourth = dir.path().join("fourth");
    let files = sample.write(&fourth, 14_000);
    fs::create_dir(fourth.join("copy")).unwrap();
    fs::copy(&files[0], fourth.join("copy/mirror_seq2_000000.tar")).unwrap();
    assert!(open_error(&fourth).contains("as well"));
}

#[test]
fn missing_exchanged_and_foreign_files_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut sample = sample();
    let files = sample.write(dir.path(), 14_000);
    let moved = dir.path().join("away");
    for file in &files {
        fs::rename(file, &moved).unwrap();
        let error = open_error(dir.path());
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(error.contains(name) && error.contains("missing"), "{error}");
        fs::rename(&moved, file).unwrap();
    }
    fs::rename(&files[1], &moved).unwrap();
    fs::rename(&files[2], &files[1]).unwrap();
    fs::rename(&moved, &files[2]).unwrap();
    let error = open_error(dir.path());
    assert!(
        error.contains("000001.tar") && error.contains("another set"),
        "{error}"
    );
    sample.metadata.uid = Uuid::from_u128(9);
    sample.write(dir.path(), 14_000);
    Set::open(dir.path()).unwrap();
    let mut other = Sample::of(5, 3000);
    other.metadata.uid = Uuid::from_u128(10);
    let foreign = other.write(&dir.path().join("other"), 14_000);
    fs::rename(&foreign[1], &files[1]).unwrap();
    fs::remove_dir_all(dir.path().join("other")).unwrap();
    let error = open_error(dir.path());
    assert!(
        error.contains("000001.tar") && error.contains("another set"),
        "{error}"
    );
}

#[test]
fn missing_and_foreign_files_of_the_peer_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut sample = sample();
    let keep = |path: &str, _: &mut tar::Header, bytes| Some((path.to_owned(), bytes));
    let files = sample.write(&dir.path().join("a"), 14_000);
    let other = dir.path().join("b");
    for number in 0..files.len() {
        repack(&files, &other, keep);
        let name = crate::archive::file_name(1, number);
        fs::remove_file(other.join(&name)).unwrap();
        let error = Set::open(&other)
            .and_then(|set| set.content())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&name) || error.contains("missing") || error.contains("not found"),
            "{error}"
        );
    }
    // Two sets under names that say nothing.
    sample.metadata.uid = Uuid::from_u128(9);
    let foreign = sample.write(&dir.path().join("c"), 14_000);
    let mixed = dir.path().join("d");
    repack(&files[..1], &mixed, keep);
    fs::rename(mixed.join("mirror_seq1_000000.tar"), mixed.join("a.tar")).unwrap();
    repack(&foreign[..1], &mixed, keep);
    fs::rename(mixed.join("mirror_seq1_000000.tar"), mixed.join("b.tar")).unwrap();
    let error = open_error(&mixed);
    let (one, two) = (
        Uuid::from_u128(7).to_string(),
        Uuid::from_u128(9).to_string(),
    );
    assert!(error.contains(&one) && error.contains(&two), "{error}");
}

#[test]
fn later_sets_reference_content_of_earlier_ones() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = Sample::of(1, 3000);
    first.image("acme/old", &[&noise("all", 3000)]);
    let mut second = Sample::new();
    second.image("acme/new", &[&noise("all", 3000), &noise("new", 3000)]);
    second.metadata.past_mirror.sequence = 2;
    let shared = Digest::sha256(&noise("all", 3000));
    let write = |sample: &Sample, folder: &str| {
        let contents = Contents {
            format: ArchiveFormat::V1,
            metadata: serde_json::to_vec(&sample.metadata).unwrap().into(),
            extras: Vec::new(),
            content: &sample.content,
            local: &BTreeMap::new(),
            carried: &BTreeSet::from([shared.clone()]),
        };
        let folder = dir.path().join(folder);
        let writer =
            ArchiveWriter::open(&folder, SetPlan::new(contents, WIDE, None).unwrap()).unwrap();
        sample.fetch_all(&writer);
        writer.finish().unwrap();
        Set::open(&folder).unwrap().content()
    };
    let error = write(&second, "a").unwrap_err().to_string();
    assert!(
        error.contains(&shared.to_string()) && error.contains("acme/new"),
        "{error}"
    );
    let past = &mut second.metadata.past_associations;
    past.extend(first.metadata.past_mirror.associations.clone());
    past.extend(second.metadata.past_mirror.associations.clone());
    let content = write(&second, "b").unwrap();
    assert!(content.blobs.contains_key(&shared));
    let set = Set::open(&dir.path().join("b")).unwrap();
    assert_eq!(set.blob(&shared), None);
}

#[test]
fn truncated_files_are_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    let sample = sample();
    let files = sample.write(&dir.path().join("a"), WIDE);
    let own = dir.path().join("b.tar");
    let other = dir.path().join("c");
    repack(&files, &other, |path, _, bytes| {
        Some((path.to_owned(), bytes))
    });
    let other = other.join("mirror_seq1_000000.tar");
    for (whole, to) in [(&files[0], &own), (&other, &other)] {
        let bytes = fs::read(whole).unwrap();
        for part in 0..16 {
            fs::write(to, &bytes[..bytes.len() * part / 16]).unwrap();
            let error = open_error(to);
            assert!(
                error.contains(to.file_name().unwrap().to_str().unwrap()),
                "{part}/16: {error}"
            );
        }
        fs::write(to, &bytes[..bytes.len() - 1024]).unwrap();
        assert!(open_error(to).contains("cop"), "{}", open_error(to));
        fs::write(to, &bytes).unwrap();
        check(&Set::open(to).unwrap(), &sample);
    }
}

#[test]
fn manifests_of_schema_1_keep_their_signatures() {
    let dir = tempfile::tempdir().unwrap();
    let mut sample = sample();
    let bytes = Bytes::from_static(include_bytes!("../../../../oci/fixtures/schema1.json"));
    let manifest = Manifest::parse(bytes.clone(), None).unwrap();
    assert_ne!(manifest.digest, Digest::sha256(&bytes));
    sample.wanted("misc/old", &manifest.digest);
    sample.associate("misc/old", &manifest, true);
    // Its only layer, an archive without entries.
    sample.blob(&Bytes::from_static(&EMPTY_LAYER));
    sample
        .content
        .manifests
        .insert(manifest.digest.clone(), manifest.clone());
    sample.write(dir.path(), WIDE);
    let content = Set::open(dir.path()).unwrap().content().unwrap();
    assert_eq!(content.manifests[&manifest.digest], manifest);
    let report = crate::archive::verify(dir.path(), None, &RunProgress::default()).unwrap();
    assert_eq!(report.faults.len(), 0, "{:?}", report.faults);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_damage_makes_it_panic(places in prop::collection::vec((0_usize..30_000, any::<u8>()), 1..20)) {
        let dir = tempfile::tempdir().unwrap();
        let mut sample = Sample::of(2, 500);
        sample.extras.push(Extra::inline(format!("charts/{}", "n".repeat(150)), "long"));
        let file = sample.write(dir.path(), WIDE).remove(0);
        let mut bytes = fs::read(&file).unwrap();
        let length = bytes.len();
        for (at, byte) in places {
            bytes[at % length] = byte;
        }
        fs::write(&file, bytes).unwrap();
        let report = crate::archive::verify(dir.path(), None, &RunProgress::default()).unwrap();
        let content = Set::open(dir.path()).and_then(|set| set.content());
        // Padding between members is not verified.
        if report.faults.is_empty() {
            prop_assert_eq!(content.unwrap().manifests, sample.content.manifests);
        }
    }
}

#[test]
fn archives_are_read_at_their_place_in_a_bundle() {
    let dir = tempfile::tempdir().unwrap();
    let sample = sample();
    let mut later = sample.clone();
    later.metadata.past_mirror.sequence += 1;
    let bundle = dir.path().join("a bundle.tar");
    let mut tar = tar::Builder::new(fs::File::create(&bundle).unwrap());
    let mut add = |path: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, path, bytes).unwrap();
    };
    add("manifest.json", b"{}");
    for (number, sample) in [(1, &sample), (2, &later)] {
        for file in sample.write(&dir.path().join(number.to_string()), 14_000) {
            let name = file.file_name().unwrap().to_str().unwrap();
            let bytes = fs::read(&file).unwrap();
            add(&format!("archives/{number}/{name}"), &bytes);
        }
    }
    add("images/live.iso", b"\0");
    tar.finish().unwrap();
    for (path, sample) in [
        ("archives/1", &sample),
        ("archives/2", &later),
        ("archives/1/mirror_seq1_000001.tar", &sample),
    ] {
        let path = bundle.join(path);
        check(&Set::open(&path).unwrap(), sample);
        assert_eq!(describe(&path).unwrap(), sample.metadata);
        let report = crate::archive::verify(&path, None, &RunProgress::default()).unwrap();
        assert!(report.faults.is_empty() && report.hashed_bytes > 0);
    }
    assert!(open_error(&bundle).contains("of the sequences 1, 2: name"));
    assert!(open_error(&bundle.join("archives/3")).contains("no archives found"));
    // Damaged content is found at its place.
    let mut bytes = fs::read(&bundle).unwrap();
    let set = Set::open(&bundle.join("archives/2")).unwrap();
    let (_, place) = set.below("blobs/").next().unwrap();
    let start = place.file.local().unwrap().start;
    bytes[usize::try_from(start + place.offset).unwrap()] ^= 1;
    fs::write(&bundle, bytes).unwrap();
    let faults = |number: u8| {
        let path = bundle.join(format!("archives/{number}"));
        crate::archive::verify(&path, None, &RunProgress::default())
            .unwrap()
            .faults
    };
    assert_eq!((faults(1).len(), faults(2).len()), (0, 1));
}
