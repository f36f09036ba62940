use serde_json::json;

use super::*;

const IMAGE: &[u8] = b"a live image";

fn search(architecture: &str, texts: &[(&str, &str)]) -> LiveImageSearch {
    let mut search = LiveImageSearch::new(architecture, "");
    for (path, text) in texts {
        let text = Bytes::from((*text).to_owned());
        search.texts.insert((*path).to_owned(), text);
    }
    search
}

fn reference() -> Reference {
    "registry:5000/release:4.18-machine-os-images"
        .parse()
        .unwrap()
}

fn metadata_of(sha256: &str) -> String {
    let disk = json!({"location": "https://h/a.iso", "sha256": sha256});
    let metal = json!({"formats": {"iso": {"disk": disk}}});
    json!({"architectures": {"aarch64": {"artifacts": {"metal": metal}}}}).to_string()
}

#[test]
fn the_checksum_comes_before_the_metadata() {
    let good = Digest::sha256(IMAGE).hex().to_owned();
    let wrong = "0".repeat(64);
    let of_file = format!("{}  coreos-aarch64.iso\n", good.to_ascii_uppercase());
    let checksum = "coreos/coreos-aarch64.iso.sha256";
    let metadata = "coreos/coreos-stream.json";
    let (good_json, wrong_json) = (metadata_of(&good), metadata_of(&wrong));
    for (texts, expected) in [
        (vec![], None),
        (vec![(checksum, &*good)], None),
        (vec![(checksum, &*of_file), (metadata, &*wrong_json)], None),
        (vec![(metadata, &*good_json)], None),
        (vec![(metadata, "{}")], None),
        (
            vec![(checksum, &*wrong), (metadata, &*good_json)],
            Some("of /coreos/coreos-aarch64.iso.sha256: mirror"),
        ),
        (
            vec![(metadata, &*wrong_json)],
            Some("of /coreos/coreos-stream.json: mirror"),
        ),
        (vec![(checksum, " ")], Some("has no SHA-256")),
        (vec![(metadata, "x")], Some("is no JSON")),
    ] {
        let found = FoundImage {
            stream: 0,
            digest: Digest::sha256(IMAGE),
        };
        let verified = search("arm64", &texts).verify(&found, &reference());
        let error = verified.err().map(|error| error.to_string());
        match (&error, expected) {
            (None, None) => {}
            (Some(error), Some(expected)) => {
                assert!(error.contains(expected), "{error}");
                assert!(error.contains(&reference().to_string()), "{error}");
            }
            _ => panic!("{error:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn a_missing_image_is_named_with_its_remedy() {
    let mut search = search("arm64", &[]);
    let nothing = search.absence(&reference());
    assert!(nothing.contains("/coreos/coreos-aarch64.iso"), "{nothing}");
    assert!(nothing.contains("expected the container image machine-os-images"));
    let other = "coreos/coreos-x86_64.iso";
    assert!(search.wanted().contains(other));
    search.others.insert(other.to_owned());
    let others = search.absence(&reference());
    assert!(others.contains("but /coreos/coreos-x86_64.iso"), "{others}");
    assert!(others.contains("with that file for aarch64"), "{others}");
}

#[test]
fn files_of_a_stream_are_named_by_its_generation() {
    for (stream, expected) in [
        ("", "coreos coreos10"),
        ("stable", "coreos coreos10"),
        ("rhel-9", "coreos"),
        ("rhel-10", "coreos10"),
        ("rhel-10-nvidia", "coreos10"),
        ("c10s", "coreos10"),
        ("rhel-99999999999", "coreos coreos10"),
    ] {
        assert_eq!(file_names(stream).join(" "), expected, "{stream}");
    }
    let mut search = LiveImageSearch::new("x86_64", "rhel-10");
    let first = "coreos/coreos-x86_64.iso";
    assert!(search.wanted().contains(first), "named when it is there");
    assert!(!search.wanted().contains("coreos/coreos-stream.json"));
    search.others.insert(first.to_owned());
    let absence = search.absence(&reference());
    let expected = "has no /coreos/coreos10-x86_64.iso, but /coreos/coreos-x86_64.iso";
    assert!(absence.contains(expected), "{absence}");
}
