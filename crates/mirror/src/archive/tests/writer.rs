//! Files that are written at once, in pieces, and by several.

use std::thread;

use super::*;
use crate::archive::journal;

/// The folder of unfinished files of the only layout there is.
fn unfinished(folder: &Path) -> PathBuf {
    let layouts = fs::read_dir(folder.join(".mirror.part")).unwrap();
    let mut layouts = layouts
        .map(|it| it.unwrap().path())
        .filter(|it| it.is_dir());
    let only = layouts.next().unwrap();
    assert_eq!(layouts.next(), None);
    only
}

#[test]
fn every_way_makes_the_same_files() {
    let dir = tempfile::tempdir().unwrap();
    let sample = Sample::of(6, 3000);
    let at_once = sample.write(&dir.path().join("a"), 20_000);
    assert!(at_once.len() > 2);
    let folder = dir.path().join("b");
    let plan = || sample.plan(20_000).unwrap();
    // Never more than one blob, and half of the next one.
    loop {
        let writer = ArchiveWriter::open(&folder, plan()).unwrap();
        let missing = writer.missing();
        let Some(first) = missing.first() else { break };
        sample.fetch(&writer, &first.digest);
        if let Some(next) = missing.get(1) {
            let mut blob = writer.blob(&next.digest).unwrap().unwrap();
            let (from, half) = (blob.written(), next.size / 2);
            assert_eq!(from, next.written);
            let piece = usize::try_from(from).unwrap()..usize::try_from(from.max(half)).unwrap();
            blob.write(&sample.blobs[&next.digest][piece]).unwrap();
            drop(blob);
            assert_eq!(writer.missing()[0].written, half);
        }
    }
    let in_pieces = ArchiveWriter::open(&folder, plan())
        .unwrap()
        .finish()
        .unwrap();
    assert_eq!(names(&folder), names(&dir.path().join("a")));
    for (one, other) in at_once.iter().zip(&in_pieces) {
        assert!(
            fs::read(one).unwrap() == fs::read(other).unwrap(),
            "{}",
            one.display()
        );
    }
}

#[test]
fn several_write_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let sample = Sample::of(16, 20_000);
    let writer = ArchiveWriter::open(dir.path(), sample.plan(100_000).unwrap()).unwrap();
    let missing = writer.missing();
    thread::scope(|scope| {
        for share in missing.chunks(5) {
            let (writer, sample) = (writer.clone(), &sample);
            scope.spawn(move || {
                for it in share {
                    sample.fetch(&writer, &it.digest);
                }
            });
        }
    });
    writer.finish().unwrap();
    let report = crate::archive::verify(dir.path(), None, &RunProgress::default()).unwrap();
    assert_eq!(report.faults.len(), 0, "{:?}", report.faults);
}

#[test]
fn blobs_come_in_the_order_of_images() {
    let dir = tempfile::tempdir().unwrap();
    let sample = Sample::of(5, 300);
    let writer = ArchiveWriter::open(dir.path(), sample.plan(WIDE).unwrap()).unwrap();
    let order: Vec<_> = writer.missing().into_iter().map(|it| it.digest).collect();
    let mut needed = Vec::new();
    for image in &sample.content.images {
        for blob in sample.content.manifests[&image.digest].blobs() {
            if !needed.contains(&blob.digest) {
                needed.push(blob.digest.clone());
            }
        }
    }
    assert_eq!(order, needed);
}

#[test]
fn wrong_bytes_are_refused_and_begun_again() {
    let dir = tempfile::tempdir().unwrap();
    let sample = Sample::of(1, 3000);
    let writer = ArchiveWriter::open(dir.path(), sample.plan(WIDE).unwrap()).unwrap();
    let digest = Digest::sha256(&noise("all", 3000));
    let begin = || writer.blob(&digest).unwrap().unwrap();
    let mut blob = begin();
    blob.write(&noise("other", 3000)).unwrap();
    let error = blob.finish().unwrap_err().to_string();
    assert!(
        error.contains(&digest.to_string()) && error.contains("another digest"),
        "{error}"
    );
    let mut blob = begin();
    assert_eq!(blob.written(), 0);
    assert!(
        writer
            .blob(&digest)
            .unwrap_err()
            .to_string()
            .contains("being written")
    );
    blob.write(&noise("all", 1000)).unwrap();
    assert!(
        blob.write(&noise("all", 3000))
            .unwrap_err()
            .to_string()
            .contains("larger")
    );
    let error = blob.finish().unwrap_err().to_string();
    assert!(error.contains("smaller"), "{error}");
    assert_eq!(begin().written(), 1000);
    let missing = writer.clone().finish().unwrap_err().to_string();
    assert!(missing.contains("not in the archive yet"), "{missing}");
    assert_eq!(names(dir.path()), [".mirror.part"]);
    // From a source that compares the digest itself, bytes are hashed once.
    let mut blob = begin();
    let mut hasher = blob.take_hasher();
    hasher.update(&sample.blobs[&digest][1000..]);
    assert_eq!(hasher.finish(), digest);
    blob.write(&sample.blobs[&digest][1000..]).unwrap();
    blob.finish().unwrap();
    assert!(writer.blob(&digest).unwrap().is_none());
    assert!(writer.blob(&Digest::sha256(b"?")).is_err());
}

#[test]
fn other_plans_take_over_complete_blobs() {
    let dir = tempfile::tempdir().unwrap();
    let sample = Sample::of(4, 3000);
    let writer = ArchiveWriter::open(dir.path(), sample.plan(WIDE).unwrap()).unwrap();
    let missing = writer.missing();
    let (some, rest) = missing.split_at(5);
    for it in some {
        sample.fetch(&writer, &it.digest);
    }
    drop(writer);
    let mut other = Sample::new();
    other.image("misc/new", &[&noise("new", 100)]);
    for (number, image) in sample.content.images.iter().enumerate().skip(1) {
        other.image(
            &image.wanted.repository.to_string(),
            &[&noise("all", 3000), &noise(&number.to_string(), 3000)],
        );
    }
    // In two places: with the image, and as a file of a catalog.
    let shared = Digest::sha256(&noise("all", 3000));
    other.extras.push(Extra::blob(
        "catalogs/r/c/layout/blobs/sha256/x",
        shared.clone(),
        3000,
    ));
    let old = unfinished(dir.path());
    let writer = ArchiveWriter::open(dir.path(), other.plan(15_000).unwrap()).unwrap();
    assert_ne!(unfinished(dir.path()), old);
    let still: BTreeSet<_> = writer.missing().into_iter().map(|it| it.digest).collect();
    let expected = other
        .content
        .blobs
        .keys()
        .filter(|it| !some.iter().any(|had| had.digest == **it));
    assert_eq!(still, expected.cloned().collect());
    assert!(rest.iter().any(|it| still.contains(&it.digest)) && !still.contains(&shared));
    other.fetch_all(&writer);
    writer.finish().unwrap();
    let report = crate::archive::verify(dir.path(), None, &RunProgress::default()).unwrap();
    assert_eq!(report.faults.len(), 0, "{:?}", report.faults);
    let set = crate::archive::Set::open(dir.path()).unwrap();
    let copy = set.place("catalogs/r/c/layout/blobs/sha256/x").unwrap();
    assert_eq!(copy.read(3000).unwrap(), noise("all", 3000));
}

#[test]
fn another_time_of_the_run_changes_no_layout() {
    let dir = tempfile::tempdir().unwrap();
    let mut sample = Sample::of(2, 3000);
    sample
        .extras
        .push(Extra::inline("isc_20261129000000", "kind: X"));
    let writer = ArchiveWriter::open(dir.path(), sample.plan(WIDE).unwrap()).unwrap();
    let first = writer.missing()[0].digest.clone();
    sample.fetch(&writer, &first);
    let folder = unfinished(dir.path());
    drop(writer);
    sample.metadata.past_mirror.timestamp += 60;
    sample.metadata.uid = Uuid::from_u128(8);
    sample.extras.pop();
    sample
        .extras
        .push(Extra::inline("isc_20261129000100", "kind: X"));
    let writer = ArchiveWriter::open(dir.path(), sample.plan(WIDE).unwrap()).unwrap();
    assert_eq!(unfinished(dir.path()), folder);
    assert!(writer.missing().iter().all(|it| it.digest != first));
    sample.fetch_all(&writer);
    writer.finish().unwrap();
    let set = crate::archive::Set::open(dir.path()).unwrap();
    assert_eq!(*set.metadata(), sample.metadata);
}

#[test]
fn blobs_lost_in_a_crash_are_fetched_again() {
    let dir = tempfile::tempdir().unwrap();
    let sample = Sample::of(2, 3000);
    let writer = ArchiveWriter::open(dir.path(), sample.plan(WIDE).unwrap()).unwrap();
    let missing = writer.missing();
    let (lost, kept, half) = (&missing[0].digest, &missing[1].digest, &missing[2].digest);
    sample.fetch(&writer, lost);
    sample.fetch(&writer, kept);
    writer.blob(half).unwrap().unwrap().write(b"x").unwrap();
    drop(writer);
    // As the journal is when the machine was down meanwhile.
    let folder = unfinished(dir.path());
    let path = folder.join(journal::NAME);
    let text = fs::read_to_string(&path).unwrap();
    let others: Vec<_> = text
        .lines()
        .filter(|line| !line.contains(" boot "))
        .collect();
    fs::write(&path, others.join("\n") + "\n").unwrap();
    let plan = sample.plan(WIDE).unwrap();
    let of = |digest: &Digest| {
        plan.files[0]
            .members
            .iter()
            .find(|it| it.path == format!("blobs/{digest}"))
            .unwrap()
    };
    let part = folder.join("mirror_seq1_000000.tar.part");
    let mut bytes = fs::read(&part).unwrap();
    bytes[usize::try_from(of(lost).offset).unwrap()] ^= 1;
    fs::write(&part, bytes).unwrap();
    for _ in 0..2 {
        let writer = ArchiveWriter::open(dir.path(), plan.clone()).unwrap();
        let missing: BTreeMap<_, _> = writer
            .missing()
            .into_iter()
            .map(|it| (it.digest, it.written))
            .collect();
        assert!(!missing.contains_key(kept));
        assert_eq!((missing[lost], missing[half]), (0, 0));
    }
}

#[test]
fn lost_files_are_fetched_again() {
    let dir = tempfile::tempdir().unwrap();
    let sample = Sample::of(4, 5000);
    let plan = sample.plan(15_000).unwrap();
    let writer = ArchiveWriter::open(dir.path(), plan.clone()).unwrap();
    sample.fetch_all(&writer);
    drop(writer);
    let part = unfinished(dir.path()).join("mirror_seq1_000002.tar.part");
    let length = fs::metadata(&part).unwrap().len();
    fs::remove_file(&part).unwrap();
    for _ in 0..2 {
        let writer = ArchiveWriter::open(dir.path(), plan.clone()).unwrap();
        assert!(!writer.missing().is_empty());
        assert_eq!(fs::metadata(&part).unwrap().len(), length);
    }
    let writer = ArchiveWriter::open(dir.path(), plan).unwrap();
    sample.fetch_all(&writer);
    writer.finish().unwrap();
    let report = crate::archive::verify(dir.path(), None, &RunProgress::default()).unwrap();
    assert_eq!(report.faults.len(), 0, "{:?}", report.faults);
}

#[test]
fn two_do_not_write_in_one_place() {
    let dir = tempfile::tempdir().unwrap();
    let sample = Sample::of(1, 10);
    let writer = ArchiveWriter::open(dir.path(), sample.plan(WIDE).unwrap()).unwrap();
    let error = ArchiveWriter::open(dir.path(), sample.plan(WIDE).unwrap())
        .unwrap_err()
        .to_string();
    assert!(error.contains("another run writes there"), "{error}");
    assert!(error.contains(&dir.path().display().to_string()), "{error}");
    drop(writer);
    ArchiveWriter::open(dir.path(), sample.plan(WIDE).unwrap()).unwrap();
}

#[test]
fn a_stopped_rename_is_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let sample = Sample::of(4, 5000);
    let files = sample.write(&dir.path().join("a"), 15_000);
    let folder = dir.path().join("b");
    let plan = sample.plan(15_000).unwrap();
    let writer = ArchiveWriter::open(&folder, plan.clone()).unwrap();
    sample.fetch_all(&writer);
    drop(writer);
    // As when it was killed between two names.
    let parts = unfinished(&folder);
    let (_, mut journal) = journal::ArchiveJournal::open(&parts).unwrap();
    journal.note_finishing().unwrap();
    for number in 2..files.len() {
        let name = crate::archive::file_name(1, number);
        fs::rename(parts.join(format!("{name}.part")), folder.join(name)).unwrap();
    }
    let writer = ArchiveWriter::open(&folder, plan).unwrap();
    assert_eq!(names(&folder), [".mirror.part"]);
    assert_eq!(writer.missing(), []);
    writer.finish().unwrap();
    assert_eq!(names(&folder), names(&dir.path().join("a")));
    for file in files {
        let other = folder.join(file.file_name().unwrap());
        assert!(fs::read(file).unwrap() == fs::read(other).unwrap());
    }
}

#[test]
fn older_files_of_the_sequence_go() {
    let dir = tempfile::tempdir().unwrap();
    let many = Sample::of(6, 5000).write(dir.path(), 15_000).len();
    let other = dir.path().join("mirror_seq2_000000.tar");
    fs::write(&other, "x").unwrap();
    let few = Sample::of(1, 3000).write(dir.path(), WIDE).len();
    assert!(few < many);
    assert_eq!(
        names(dir.path()),
        ["mirror_seq1_000000.tar", "mirror_seq2_000000.tar"]
    );
}

#[test]
fn local_files_must_not_change() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("chart.tgz");
    fs::write(&path, "chart").unwrap();
    let mut sample = Sample::of(1, 10);
    sample
        .extras
        .push(Extra::local("charts/chart.tgz", path.clone()).unwrap());
    let folder = dir.path().join("out");
    sample.write(&folder, WIDE);
    let set = crate::archive::Set::open(&folder).unwrap();
    assert_eq!(
        set.place("charts/chart.tgz").unwrap().read(10).unwrap(),
        "chart"
    );
    for changed in ["short", "much longer", "cha"] {
        fs::write(&path, changed).unwrap();
        let error = ArchiveWriter::open(&folder, sample.plan(WIDE).unwrap())
            .unwrap_err()
            .to_string();
        assert!(error.contains("charts/chart.tgz"), "{error}");
    }
}

#[test]
fn without_room_nothing_is_begun() {
    let dir = tempfile::tempdir().unwrap();
    let mut sample = Sample::of(1, 10);
    let huge = Digest::sha256(b"huge");
    sample
        .extras
        .push(Extra::blob("catalogs/huge", huge, 1 << 45));
    let error = ArchiveWriter::open(dir.path(), sample.plan(1 << 46).unwrap())
        .unwrap_err()
        .to_string();
    assert!(error.contains("bytes more have to be free"), "{error}");
}
