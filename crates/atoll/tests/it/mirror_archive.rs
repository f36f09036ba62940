//! `atoll mirror describe` and `verify` of archives.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use mirror::archive::{ArchiveFormat, ArchiveWriter, Contents, Extra, SetPlan, Signer};
use mirror::content::ImageContent;
use serde_json::{Value, json};

/// Made by `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout`.
const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIClrhw32fLDg6HwgWcy3x/EeeMnOpNXIDWBWEwq2WsUg\n-----END PRIVATE KEY-----\n";
const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAFnCGWGB6kWWR4jfQOV/FOPl5U2rhDs/K+TnZY/OhdlU=\n-----END PUBLIC KEY-----\n";
/// Output of `describe`.
const METADATA: &str = r#"{
 "kind": "Metadata",
 "apiVersion": "mirror.openshift.io/v1alpha2",
 "uid": "2f484100-4d01-4656-a45c-9333e9e47121",
 "singleUse": false,
 "pastMirror": {
  "timestamp": 1795241937,
  "sequence": 1,
  "mirror": {
   "platform": {},
   "operators": [
    {
     "packages": null,
     "catalog": "r:5000/acme/index:v1"
    }
   ],
   "helm": {},
   "blockedImages": [
    {
     "name": "a\u003cb\u0026c"
    }
   ]
  },
  "operators": [
   {
    "catalog": "r:5000/acme/index:v1",
    "imagePin": "",
    "packages": [
     {
      "name": "op",
      "channels": [
       {
        "name": "stable",
        "minVersion": "1.9.0"
       }
      ]
     }
    ]
   }
  ]
 }
}
"#;

fn atoll(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_atoll"))
        .arg("mirror")
        .args(arguments)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refused(arguments: &[&str]) -> String {
    let output = atoll(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A set without images in `folder`; its files.
fn write(folder: &Path) -> Vec<PathBuf> {
    let metadata: Value = serde_json::from_str(METADATA).unwrap();
    let contents = Contents {
        format: ArchiveFormat::V1,
        metadata: metadata.to_string().into(),
        extras: vec![Extra::inline("charts/op-1.9.0.tgz", "a chart")],
        content: &ImageContent::default(),
        local: &BTreeMap::new(),
        carried: &BTreeSet::new(),
    };
    let signer = Signer::from_pem(PRIVATE.as_bytes()).unwrap();
    let plan = SetPlan::new(contents, 1 << 30, Some(&signer)).unwrap();
    ArchiveWriter::open(folder, plan).unwrap().finish().unwrap()
}

#[test]
fn describe_prints_the_metadata() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path()).remove(0);
    for path in [dir.path(), &file] {
        let output = atoll(&["describe", path.to_str().unwrap()]);
        assert_eq!(stdout(&output), METADATA);
    }
    let output = atoll(&["describe", "--summary", file.to_str().unwrap()]);
    assert_eq!(
        stdout(&output),
        "set 2f484100-4d01-4656-a45c-9333e9e47121\nsequence 1\ncreated at 2026-11-21T06:18:57+00:00\n\
         - operators of r:5000/acme/index:v1: op (stable from 1.9.0)\nimages of this run: none\n"
    );
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let error = refused(&["describe", empty.to_str().unwrap()]);
    assert!(
        error.contains("retrieving metadata from")
            && error.contains("no archives found in directory"),
        "{error}"
    );
}

#[test]
fn verify_reports_damage() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("set");
    let file = write(&folder).remove(0);
    let (folder, key) = (folder.to_str().unwrap(), dir.path().join("key.pem"));
    fs::write(&key, PUBLIC).unwrap();
    let key = key.to_str().unwrap();
    let printed = stdout(&atoll(&["verify", folder, "--key", key]));
    assert!(
        printed.contains("verified: 1 files") && printed.contains("signature verified"),
        "{printed}"
    );
    let printed: Value =
        serde_json::from_str(&stdout(&atoll(&["verify", folder, "--json"]))).unwrap();
    assert_eq!(printed["faults"], json!([]));
    let bytes = fs::read(&file).unwrap();
    let at = bytes.windows(7).position(|it| it == b"a chart").unwrap();
    let mut damaged = bytes.clone();
    damaged[at] ^= 1;
    fs::write(&file, damaged).unwrap();
    let output = atoll(&["verify", folder]);
    assert_eq!(output.status.code(), Some(1));
    let printed = stdout(&output);
    assert!(
        printed.contains("charts/op-1.9.0.tgz is damaged"),
        "{printed}"
    );
    fs::write(&file, &bytes[..bytes.len() - 512]).unwrap();
    assert!(refused(&["verify", folder]).contains("faults were found"));
}
