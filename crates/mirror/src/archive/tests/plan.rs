//! Layouts of sets.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;

use super::*;
use crate::archive::{MemberKind, size_limit};

/// With the first digits of a digest.
fn short(path: &Path) -> String {
    let path = path.display().to_string();
    match path.split_once("sha256:") {
        Some((before, hex)) => format!("{before}sha256:{}…", &hex[..6]),
        None => path,
    }
}

/// Path, type, mode, size and target of each member, as an unconcerned reader finds them.
fn listing(file: &Path) -> Vec<String> {
    let mut archive = tar::Archive::new(File::open(file).unwrap());
    let describe = |entry: tar::Entry<'_, File>| {
        let header = entry.header();
        let path = short(&entry.path().unwrap());
        let target = entry.link_name().unwrap();
        let target = target.map(|it| format!(" -> {}", short(&it)));
        let kind = char::from(header.entry_type().as_byte());
        let (mode, size) = (header.mode().unwrap(), entry.size());
        let owner = (header.uid().unwrap(), header.username().unwrap().unwrap());
        assert_eq!(
            (owner, header.mtime().unwrap()),
            ((0, "root"), 1_795_241_937)
        );
        format!(
            "{kind} {mode:o} {size:5} {path}{}",
            target.unwrap_or_default()
        )
    };
    archive
        .entries()
        .unwrap()
        .map(|entry| describe(entry.unwrap()))
        .collect()
}

#[test]
fn members_are_those_of_the_peer_and_an_index() {
    let dir = tempfile::tempdir().unwrap();
    let mut sample = Sample::of(2, 1000);
    sample.list("misc/multi");
    let files = sample.write(dir.path(), WIDE);
    assert_eq!(names(dir.path()), ["mirror_seq1_000000.tar"]);
    insta::assert_snapshot!(listing(&files[0]).join("\n"), @"
    0 640  2367 publish/.metadata.json
    0 644  5114 atoll/index.json
    5 755     0 catalogs/
    5 755     0 catalogs/r/
    5 755     0 catalogs/r/c/
    5 755     0 catalogs/r/c/index/
    0 644     2 catalogs/r/c/index/index.json
    5 755     0 charts/
    5 755     0 release-signatures/
    0 644   502 v2/acme/op0/manifests/sha256:8a6809…
    2 777     0 v2/acme/op0/manifests/v1 -> sha256:8a6809…
    0 644   502 v2/acme/op1/manifests/sha256:d03295…
    2 777     0 v2/acme/op1/manifests/v1 -> sha256:d03295…
    0 644   345 v2/misc/multi/manifests/sha256:fbc119…
    0 644   345 v2/misc/multi/manifests/sha256:30bb61…
    0 644   339 v2/misc/multi/manifests/sha256:cc7ee3…
    2 777     0 v2/misc/multi/manifests/v1 -> sha256:cc7ee3…
    0 644   502 blobs/sha256:8a6809…
    0 644   502 blobs/sha256:d03295…
    0 644   345 blobs/sha256:fbc119…
    0 644   345 blobs/sha256:30bb61…
    0 644   339 blobs/sha256:cc7ee3…
    0 644    18 blobs/sha256:cc30c5…
    0 644  1000 blobs/sha256:1137c5…
    0 644  1000 blobs/sha256:8f7284…
    0 644    18 blobs/sha256:bab7cd…
    0 644  1000 blobs/sha256:667fa3…
    0 644    15 blobs/sha256:326b6c…
    0 644    10 blobs/sha256:cef9da…
    0 644    15 blobs/sha256:ea15fb…
    0 644    10 blobs/sha256:7e62e3…
    ");
}

#[test]
fn gnu_tar_finds_nothing_strange() {
    let dir = tempfile::tempdir().unwrap();
    let mut sample = Sample::of(2, 1000);
    let long = format!("catalogs/{}/{}", "n".repeat(120), "o".repeat(200));
    let medium = format!("catalogs/{}/{}", "n".repeat(120), "m".repeat(90));
    sample.extras.extend([
        Extra::inline(&long, "long"),
        Extra::inline(&medium, "medium"),
    ]);
    let files = sample.write(dir.path(), WIDE);
    let output = Command::new("tar")
        .arg("tvf")
        .arg(&files[0])
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(
        listed.contains(&long) && listed.contains(&medium),
        "{listed}"
    );
    assert_eq!(listed.lines().count(), listing(&files[0]).len());
    let unpacked = dir.path().join("unpacked");
    fs::create_dir(&unpacked).unwrap();
    let status = Command::new("tar")
        .arg("xf")
        .arg(&files[0])
        .arg("-C")
        .arg(&unpacked)
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(fs::read(unpacked.join(&long)).unwrap(), b"long");
    let by_tag = fs::read(unpacked.join("v2/acme/op1/manifests/v1")).unwrap();
    assert_eq!(Digest::sha256(&by_tag), sample.content.images[1].digest);
    for (digest, bytes) in &sample.blobs {
        assert_eq!(
            fs::read(unpacked.join(format!("blobs/{digest}"))).unwrap(),
            *bytes
        );
    }
}

#[test]
fn content_of_previous_archives_is_left_out() {
    let sample = Sample::of(2, 100);
    let carried: BTreeSet<_> = [
        Digest::sha256(&noise("all", 100)),
        sample.content.images[0].digest.clone(),
    ]
    .into();
    let contents = Contents {
        format: ArchiveFormat::V1,
        metadata: serde_json::to_vec(&sample.metadata).unwrap().into(),
        extras: Vec::new(),
        content: &sample.content,
        local: &BTreeMap::new(),
        carried: &carried,
    };
    let plan = SetPlan::new(contents, WIDE, None).unwrap();
    let paths: Vec<_> = plan.files[0]
        .members
        .iter()
        .map(|it| it.path.as_str())
        .collect();
    for digest in &carried {
        assert!(!paths.contains(&format!("blobs/{digest}").as_str()));
    }
    // The manifest itself is needed to name the image.
    let manifest = format!("v2/acme/op0/manifests/{}", sample.content.images[0].digest);
    assert!(paths.contains(&manifest.as_str()));
}

#[test]
fn oversized_members_have_files_of_their_own_in_v2() {
    let mut sample = Sample::of(1, 100);
    let big = noise("big", 100_000);
    sample.image("acme/big", &[&big, &noise("after", 100)]);
    let (local, carried) = (BTreeMap::new(), BTreeSet::new());
    let plan = |is_strict| {
        let contents = Contents {
            format: ArchiveFormat::V2 { is_strict },
            metadata: serde_json::to_vec(&sample.metadata).unwrap().into(),
            extras: Vec::new(),
            content: &sample.content,
            local: &local,
            carried: &carried,
        };
        SetPlan::new(contents, 60_000, None)
    };
    let files = plan(false).unwrap().files;
    let names: Vec<_> = files.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "mirror_000001.tar",
            "mirror_000002.tar",
            "mirror_000003.tar"
        ]
    );
    let members: Vec<_> = files.iter().map(|it| it.members.len()).collect();
    assert_eq!(members[1..], [1, 1]);
    assert_eq!(files[1].members[0].digest, Some(Digest::sha256(&big)));
    let error = plan(true).unwrap_err().to_string();
    assert!(
        error.contains("does not fit into a file of 60000 bytes"),
        "{error}"
    );
}

#[test]
fn oversized_members_are_named() {
    let mut sample = Sample::of(1, 100);
    sample.image("acme/big", &[&noise("big", 100_000)]);
    let image = sample.content.images[1].pinned();
    let digest = Digest::sha256(&noise("big", 100_000));
    let error = sample.plan(60_000).unwrap_err().to_string();
    for part in [
        "archiveSize",
        &image.to_string(),
        &digest.to_string(),
        "100000 bytes",
    ] {
        assert!(error.contains(part), "{error}");
    }
    let metadata = sample.plan(2000).unwrap_err().to_string();
    assert!(metadata.contains("publish/.metadata.json"), "{metadata}");
}

#[test]
fn the_limit_is_exact() {
    let sample = Sample::of(1, 5000);
    let whole = sample.plan(WIDE).unwrap();
    let size = whole.size();
    assert_eq!(whole.files.len(), 1);
    assert_eq!(sample.plan(size).unwrap().files.len(), 1);
    assert_eq!(sample.plan(size - 1).unwrap().files.len(), 2);
}

#[test]
fn names_stand_for_one_content() {
    let mut sample = Sample::of(1, 10);
    sample.image("acme/op0", &[&noise("other", 10)]);
    let error = sample.plan(WIDE).unwrap_err().to_string();
    assert!(error.contains("acme/op0:v1"), "{error}");
    for path in ["/x", "a//b", "../x", "v2/x", "publish/x", "a/"] {
        let mut sample = Sample::of(1, 10);
        sample.extras.push(Extra::inline(path, ""));
        let error = sample.plan(WIDE).unwrap_err().to_string();
        assert!(error.contains(&format!("{path:?}")), "{error}");
    }
    let mut sample = Sample::of(1, 10);
    sample.extras.extend([
        Extra::inline("charts/a", "1"),
        Extra::inline("charts/a", "2"),
    ]);
    let error = sample.plan(WIDE).unwrap_err().to_string();
    assert!(error.contains("charts/a"), "{error}");
}

#[test]
fn sizes_are_in_gib() {
    assert_eq!(size_limit(Some(4)), 4 << 30);
    assert_eq!(size_limit(None), size_limit(Some(0)));
    assert_eq!(size_limit(None), 500 << 30);
    assert_eq!(size_limit(Some(u64::MAX)), u64::MAX);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn files_are_never_too_large_and_have_everything_once(
        sizes in prop::collection::vec(0_usize..60_000, 1..30),
        // More than metadata and index take together, so that there is a plan.
        limit in 200_000_u64..600_000,
        is_signed: bool,
    ) {
        let mut sample = Sample::new();
        for (number, size) in sizes.iter().enumerate() {
            sample.image(&format!("acme/op{number}"), &[&noise(&format!("{number}"), *size)]);
        }
        let signer = is_signed.then(|| key().0);
        let plan = sample.signed(limit, signer.as_ref()).unwrap();
        let mut blobs = BTreeSet::new();
        let mut paths = BTreeSet::new();
        for file in &plan.files {
            let mut end = 0;
            for member in &file.members {
                prop_assert!(paths.insert(&member.path), "{} is there twice", member.path);
                prop_assert_eq!((member.start, member.start % 512, member.offset % 512), (end, 0, 0));
                prop_assert!(member.offset >= member.start + 512);
                end = member.offset + member.size.next_multiple_of(512);
                if let MemberKind::Blob(digest) = &member.kind {
                    prop_assert!(blobs.insert(digest));
                }
                if let MemberKind::Inline(bytes) = &member.kind {
                    prop_assert_eq!(bytes.len() as u64, member.size);
                }
            }
            prop_assert_eq!(file.size, end + 1024);
            prop_assert!(file.size <= limit);
        }
        prop_assert_eq!(blobs, sample.content.blobs.keys().collect());
        // No file could have taken the first member of the next one.
        for two in plan.files.windows(2) {
            let next = &two[1].members[0];
            let needed = next.offset - next.start + next.size.next_multiple_of(512);
            prop_assert!(two[0].size + needed > limit);
        }
    }
}
