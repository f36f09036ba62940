//! Damage is found, wherever it is.

use super::*;
use crate::archive::{SetReport, verify};

fn check(folder: &Path, key: Option<&Verifier>) -> SetReport {
    verify(folder, key, &RunProgress::default()).unwrap()
}

fn fault_list(report: &SetReport) -> String {
    let lines: Vec<_> = report.faults.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[test]
fn complete_sets_have_no_faults() {
    let dir = tempfile::tempdir().unwrap();
    let mut sample = Sample::of(4, 3000);
    sample.list("misc/multi");
    let files = sample.write(dir.path(), 14_000);
    let progress = RunProgress::default();
    let report = verify(dir.path(), None, &progress).unwrap();
    assert_eq!(fault_list(&report), "");
    assert_eq!(
        (report.files, report.has_index, report.is_signed),
        (files.len(), true, false)
    );
    let blobs: usize = sample.blobs.values().map(Bytes::len).sum();
    assert!(report.hashed_bytes > blobs as u64);
    let (_, whole, done) = progress.now().unwrap();
    assert_eq!((whole, whole.bytes), (done, report.hashed_bytes));
}

#[test]
fn archives_of_others_are_compared_by_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let sample = Sample::of(3, 1000);
    let files = sample.write(&dir.path().join("a"), 14_000);
    let other = dir.path().join("b");
    repack(&files, &other, |path, _, bytes| {
        Some((path.to_owned(), bytes))
    });
    let report = check(&other, None);
    assert_eq!(
        (fault_list(&report).as_str(), report.has_index),
        ("", false)
    );
    let damaged = Digest::sha256(&noise("all", 1000));
    let manifest = sample.content.images[1].digest.clone();
    repack(&files, &other, |path, _, mut bytes| {
        if path.ends_with(damaged.hex()) || path.ends_with(manifest.hex()) {
            bytes[0] ^= 1;
        }
        Some((path.to_owned(), bytes))
    });
    let report = fault_list(&check(&other, None));
    for digest in [damaged, manifest] {
        assert!(
            report.contains(&format!("blobs/{digest} is damaged")),
            "{report}"
        );
    }
    let tag = "v2/acme/op2/manifests/v1";
    repack(&files, &other, |path, _, bytes| {
        (path != tag).then(|| (path.to_owned(), bytes))
    });
    let report = fault_list(&check(&other, None));
    assert!(
        report.contains("acme/op2") && report.contains("tag v1"),
        "{report}"
    );
}

#[test]
fn any_changed_byte_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let sample = Sample::of(3, 1000);
    let files = sample.write(dir.path(), 14_000);
    assert!(files.len() > 1);
    for file in &files {
        let bytes = fs::read(file).unwrap();
        let plan = sample.plan(14_000).unwrap();
        let number = files.iter().position(|it| it == file).unwrap();
        for member in &plan.files[number].members {
            let places = [member.start, member.offset, member.offset + member.size / 2];
            let is_index = member.path == "atoll/index.json";
            for at in places
                .into_iter()
                .take(if is_index || member.size == 0 { 1 } else { 3 })
            {
                let mut damaged = bytes.clone();
                damaged[usize::try_from(at).unwrap()] ^= 1;
                fs::write(file, &damaged).unwrap();
                let report = check(dir.path(), None);
                assert_ne!(fault_list(&report), "", "{} at {at}", member.path);
            }
        }
        fs::write(file, &bytes).unwrap();
    }
    assert_eq!(fault_list(&check(dir.path(), None)), "");
}

#[test]
fn every_fault_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let sample = Sample::of(6, 3000);
    let files = sample.write(dir.path(), 14_000);
    let plan = sample.plan(14_000).unwrap();
    let mut expected = Vec::new();
    for (file, planned) in files.iter().zip(&plan.files) {
        let mut bytes = fs::read(file).unwrap();
        for member in planned
            .members
            .iter()
            .filter(|it| it.path.starts_with("blobs/"))
        {
            bytes[usize::try_from(member.offset).unwrap()] ^= 1;
            expected.push(format!("{}: {} is damaged", file.display(), member.path));
        }
        fs::write(file, bytes).unwrap();
    }
    let report = check(dir.path(), None);
    let damaged: Vec<_> = fault_list(&report)
        .lines()
        .filter(|it| it.ends_with("is damaged"))
        .map(str::to_owned)
        .collect();
    assert_eq!(damaged, expected);
}

#[test]
fn added_removed_and_hidden_members_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let sample = Sample::of(2, 3000);
    let file = &sample.write(dir.path(), WIDE)[0];
    let bytes = fs::read(file).unwrap();
    let plan = sample.plan(WIDE).unwrap();
    let last = plan.files[0].members.last().unwrap();
    // The last member under another name.
    let mut renamed = bytes.clone();
    let start = usize::try_from(last.start).unwrap();
    let mut header = tar::Header::from_byte_slice(&renamed[start..start + 512]).clone();
    header.set_path("blobs/other").unwrap();
    header.set_cksum();
    renamed[start..start + 512].copy_from_slice(header.as_bytes());
    fs::write(file, &renamed).unwrap();
    let report = fault_list(&check(dir.path(), None));
    assert!(
        report.contains("blobs/other is not in the index"),
        "{report}"
    );
    assert!(
        report.contains(&format!("{} is not there", last.path)),
        "{report}"
    );
    // Cut off, and ended in order.
    let cut = [&bytes[..start], &[0; 1024]].concat();
    fs::write(file, cut).unwrap();
    let report = fault_list(&check(dir.path(), None));
    assert!(
        report.contains(&format!("{} is not there", last.path)),
        "{report}"
    );
    fs::write(file, &bytes).unwrap();
    fs::write(dir.path().join("mirror_seq1_000001.tar"), [0; 1024]).unwrap();
    let report = fault_list(&check(dir.path(), None));
    assert!(
        report.contains("000001.tar: the file is not in the index"),
        "{report}"
    );
}

#[test]
fn signatures_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    let sample = Sample::of(2, 3000);
    let ((signer, right), (_, wrong)) = (key(), key());
    let write = |folder: &Path, sample: &Sample, signer: Option<&Signer>| {
        let writer = ArchiveWriter::open(folder, sample.signed(WIDE, signer).unwrap()).unwrap();
        sample.fetch_all(&writer);
        writer.finish().unwrap();
    };
    let signed = dir.path().join("signed");
    write(&signed, &sample, Some(&signer));
    assert!(check(&signed, None).is_signed);
    assert_eq!(fault_list(&check(&signed, Some(&right))), "");
    assert!(fault_list(&check(&signed, Some(&wrong))).contains("not of that key"));
    let plain = dir.path().join("plain");
    write(&plain, &sample, None);
    assert_eq!(fault_list(&check(&plain, None)), "");
    assert!(fault_list(&check(&plain, Some(&right))).contains("not signed"));
    // Complete in itself, signed without the key.
    let mut other = Sample::of(2, 3000);
    other.extras.push(Extra::inline("charts/evil", "x"));
    let (stranger, _) = key();
    let forged = dir.path().join("forged");
    write(&forged, &other, Some(&stranger));
    assert_eq!(fault_list(&check(&forged, None)), "");
    assert_ne!(fault_list(&check(&forged, Some(&right))), "");
}
