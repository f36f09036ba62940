//! The recorded verdicts of Ignition's validator hold for today's output: see fixtures/corpus/README.md.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ignition::config::{HttpHeader, IgnitionProxy, Verification};
use ignition::{
    ConfigDocument, Directory, IgnitionConfig, IgnitionFile, Link, Resource, SpecVersion, Unit,
    User, archive, merge,
};
use sha2::{Digest as _, Sha256};

/// Writes the files instead of comparing them.
const RECORD: &str = "RECORD_IGNITION_CORPUS";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/corpus")
}

/// The verdict and the hash of each file.
fn verdicts() -> BTreeMap<String, (String, String)> {
    let text = fs::read_to_string(folder().join("verdicts.tsv")).unwrap();
    let entry = |line: &str| {
        let mut parts = line.split('\t').map(str::to_owned);
        let [name, verdict, hash] = [(); 3].map(|()| parts.next().unwrap());
        (name, (verdict, hash))
    };
    text.lines().map(entry).collect()
}

/// One of each record that Atoll writes.
fn every_record() -> IgnitionConfig {
    let mut masked = Unit::new("zincati.service", "");
    (masked.contents, masked.mask) = (None, Some(true));
    let mut user = User::with_keys("core", vec!["ssh-ed25519 AAAA one".to_owned()]);
    user.groups = vec!["sudo".to_owned()];
    let mut motd = IgnitionFile::text("/etc/motd", 0o644, "hello: 100 %, ü\n");
    motd.append = vec![Resource::text("more\n")];
    (motd.contents, motd.overwrite) = (Resource::default(), None);
    IgnitionConfig::new(SpecVersion::V3_1)
        .file(IgnitionFile::text("/etc/issue", 0o644, "100 % \"quoted\" \\ ü\n"))
        .file(IgnitionFile::bytes("/usr/local/bin/agent", 0o755, &[0, 255, 10]))
        .file(IgnitionFile::new("/etc/long", 0o600, Resource::gzip(&b"the same ".repeat(100))))
        .file(motd)
        .directory(Directory::new("/opt/state", 0o700))
        .link(Link::symbolic("/etc/localtime", "../usr/share/zoneinfo/UTC"))
        .unit(Unit::enabled("agent.service", "[Unit]\n[Service]\nExecStart=/usr/local/bin/agent\n[Install]\nWantedBy=multi-user.target\n")
            .dropin("10-proxy.conf", "[Service]\nEnvironment=http_proxy=http://a%%40b:3128\n"))
        .unit(masked)
        .user(user)
}

/// Pointer ignition of a node: authorities, proxy, headers, a verified source.
fn pointer() -> IgnitionConfig {
    let mut config = IgnitionConfig::new(SpecVersion::V3_2).file(IgnitionFile::text(
        "/etc/hostname",
        0o644,
        "master-1",
    ));
    config.ignition.security.tls.certificate_authorities = vec![Resource::bytes(
        b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n",
    )];
    config.ignition.proxy = IgnitionProxy {
        http_proxy: Some("http://user:p%40ss@proxy.lab:3128".to_owned()),
        no_proxy: vec![".lab".to_owned(), "10.0.0.0/8".to_owned()],
        ..IgnitionProxy::default()
    };
    let source = "https://api-int.demo.lab.test:22623/config/master";
    config.ignition.config.merge = vec![Resource {
        http_headers: vec![HttpHeader {
            name: "Authorization".to_owned(),
            value: Some("Bearer token".to_owned()),
        }],
        verification: Verification {
            hash: Some(format!("sha512-{}", "0".repeat(128))),
            ..Verification::default()
        },
        ..Resource::at(source)
    }];
    config
}

/// A user's override, of a newer version, over Atoll's own.
fn overridden() -> IgnitionConfig {
    let child = br#"{
        "ignition": {"version": "3.2.0", "timeouts": {"httpTotal": 30}},
        "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-rsa BBBB two"]}]},
        "storage": {
            "files": [{"path": "/etc/issue", "overwrite": true, "mode": 420, "contents": {"source": "data:,mine"}}],
            "disks": [{"device": "/dev/sda", "wipeTable": true, "partitions": [{"label": "var", "number": 1, "sizeMiB": 100}]}],
            "filesystems": [{"device": "/dev/disk/by-partlabel/var", "format": "xfs", "path": "/var"}]
        },
        "systemd": {"units": [{"name": "agent.service", "dropins": [{"name": "20-mine.conf", "contents": "[Service]\nNice=5\n"}]}]}
    }"#;
    merge(&every_record(), &IgnitionConfig::parse(child).unwrap()).unwrap()
}

/// Refused by Ignition: each has one mistake.
const REFUSED: [(&str, &str); 5] = [
    (
        "refused-version.ign",
        r#"{"ignition":{"version":"3.99.0"}}"#,
    ),
    (
        "refused-relative-path.ign",
        r#"{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"etc/motd"}]}}"#,
    ),
    (
        "refused-twice.ign",
        r#"{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/a"},{"path":"/a"}]}}"#,
    ),
    (
        "refused-unit-name.ign",
        r#"{"ignition":{"version":"3.1.0"},"systemd":{"units":[{"name":"agent"}]}}"#,
    ),
    (
        "refused-source.ign",
        r#"{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/a","contents":{"source":"ldap://a/b"}}]}}"#,
    ),
];

/// Compares with the recorded file and its verdict, or records it.
fn compare(name: &str, written: &[u8], verdict: &str) {
    let path = folder().join(name);
    if std::env::var_os(RECORD).is_some() {
        fs::write(&path, written).unwrap();
        return;
    }
    let recorded = fs::read(&path).unwrap();
    let (written, recorded) = (
        String::from_utf8_lossy(written),
        String::from_utf8_lossy(&recorded),
    );
    assert_eq!(
        written, recorded,
        "{name} is written in another way than it was validated"
    );
    let (found, hash) = &verdicts()[name];
    assert_eq!(found, verdict, "{name}");
    let found = format!("{:x}", Sha256::digest(recorded.as_bytes()));
    assert_eq!(&found, hash, "{name} is not the file of the verdict");
}

#[test]
fn written_configurations_are_those_that_ignition_accepts() {
    for (name, config) in [
        ("every-record.ign", every_record()),
        ("pointer.ign", pointer()),
        ("overridden.ign", overridden()),
    ] {
        let json = config.to_json();
        compare(name, &json, "valid");
        // Packing into an image and back changes nothing.
        let packed = archive::write(&json).unwrap();
        assert_eq!(archive::config(&packed).unwrap().unwrap(), json, "{name}");
    }
}

#[test]
fn configurations_that_ignition_refuses_are_refused() {
    for (name, json) in REFUSED {
        compare(name, json.as_bytes(), "refused");
        assert!(
            IgnitionConfig::parse(json.as_bytes()).is_err(),
            "{name} is taken"
        );
    }
}

#[test]
fn every_recorded_verdict_is_ours() {
    let verdicts = verdicts();
    for (name, (verdict, hash)) in &verdicts {
        let json = fs::read(folder().join(name)).unwrap();
        let found = format!("{:x}", Sha256::digest(&json));
        assert_eq!(&found, hash, "{name} is not the file of the verdict");
        let (_, problems) = ConfigDocument::read(&json);
        let ours = if problems.is_refused() {
            "refused"
        } else {
            "valid"
        };
        assert_eq!(ours, verdict, "{name}: {problems:?}");
    }
    let files = fs::read_dir(folder()).unwrap();
    let files = files.filter(|file| {
        file.as_ref()
            .unwrap()
            .path()
            .extension()
            .is_some_and(|end| end == "ign")
    });
    assert_eq!(files.count(), verdicts.len(), "each file has a verdict");
    let valid = verdicts.values().filter(|(verdict, _)| verdict == "valid");
    assert!(valid.count() > 60 && verdicts.len() > 180);
}
