//! The recorded answers of the real butane hold for our translation: see fixtures/butane/README.md.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ignition::butane::{
    ButaneOptions, LocalEntry, LocalEntryKind, LocalFiles, Translation, translate,
};
use ignition::{ProblemClass, ProblemList, data_url};
use located_yaml::v1_2::from_yaml;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Inputs whose verdict differs on purpose.
const OTHER_VERDICTS: &[(&str, &str, &str)] = &[
    (
        "anchor-merge-key.bu",
        "clean",
        "the original calls the merge key unknown, though it applies it",
    ),
    (
        "yaml-two-merge-keys.bu",
        "clean",
        "the original calls the merge key unknown, though it applies it",
    ),
    (
        "anchor-object.bu",
        "clean",
        "the original does not check the keys of an alias, and warns about that",
    ),
    (
        "tree-owner-root-1.7.0.bu",
        "warned",
        "the original changes the root directory of the host without a word",
    ),
];

#[derive(Deserialize)]
struct RecordedAnswer {
    input: String,
    sha256: String,
    raw: bool,
    verdict: String,
    problems: Vec<String>,
    json: Option<Value>,
    yaml: Option<String>,
}

/// The folder of local files.
#[derive(Debug)]
struct FixtureFiles(PathBuf);

impl LocalFiles for FixtureFiles {
    fn read(&self, path: &str, _limit: usize) -> Result<Vec<u8>, String> {
        fs::read(self.0.join(path)).map_err(|error| error.to_string())
    }

    fn list(&self, path: &str, _limit: usize) -> Result<Vec<LocalEntry>, String> {
        let mut entries = Vec::new();
        list(&self.0.join(path), "", &mut entries).map_err(|error| error.to_string())?;
        Ok(entries)
    }
}

fn list(folder: &Path, above: &str, entries: &mut Vec<LocalEntry>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{above}{}", entry.file_name().to_str().unwrap());
        let metadata = entry.metadata()?;
        let kind = if metadata.is_dir() {
            list(&entry.path(), &format!("{path}/"), entries)?;
            LocalEntryKind::Directory
        } else if metadata.is_symlink() {
            let target = fs::read_link(entry.path())?.to_str().unwrap().to_owned();
            LocalEntryKind::Link { target }
        } else {
            let is_executable = metadata.permissions().mode() & 0o111 != 0;
            LocalEntryKind::File { is_executable }
        };
        entries.push(LocalEntry { path, kind });
    }
    Ok(())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/butane")
}

fn recorded() -> Vec<RecordedAnswer> {
    let text = fs::read_to_string(folder().join("recorded.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// `clean`, `warned` or `refused`, as recorded.
fn verdict(problems: &ProblemList) -> &'static str {
    if problems.is_refused() {
        "refused"
    } else if problems.as_slice().is_empty() {
        "clean"
    } else {
        "warned"
    }
}

/// Compressors differ in their bytes: compressed contents are compared as they unpack.
fn unpack(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let is_compressed = members.get("compression") == Some(&Value::from("gzip"));
            if is_compressed
                && let Some(Value::String(source)) = members.get_mut("source")
                && let Ok(bytes) = data_url::decode(source)
                && let Ok(contents) = data_url::gunzip(&bytes)
            {
                *source = format!("unpacked: {}", String::from_utf8_lossy(&contents));
            }
            members.values_mut().for_each(unpack);
        }
        Value::Array(items) => items.iter_mut().for_each(unpack),
        _ => {}
    }
}

/// The recorded answers with ours.
fn answers() -> Vec<(RecordedAnswer, Translation)> {
    let files = FixtureFiles(folder().join("files"));
    let pairs = recorded().into_iter().map(|answer| {
        let name = &answer.input;
        let input = fs::read_to_string(folder().join("inputs").join(name)).unwrap();
        let hash = format!("{:x}", Sha256::digest(&input));
        assert_eq!(hash, answer.sha256, "{name} is not the input of the answer");
        let options = ButaneOptions {
            files: Some(&files),
            is_raw: answer.raw,
        };
        let translation = translate(&input, options);
        (answer, translation)
    });
    pairs.collect()
}

fn texts(problems: &ProblemList) -> Vec<String> {
    problems
        .as_slice()
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn verdicts_and_outputs_are_those_of_butane() {
    let mut differences = Vec::new();
    let mut seen = BTreeMap::new();
    for (answer, translation) in answers() {
        let RecordedAnswer { input, raw, .. } = &answer;
        let other = OTHER_VERDICTS.iter().find(|(name, _, _)| name == input);
        let expected = other.map_or(answer.verdict.as_str(), |(_, verdict, _)| verdict);
        let found = verdict(&translation.problems);
        *seen.entry(found).or_insert(0) += 1;
        if found != expected {
            let problems = texts(&translation.problems);
            differences.push(format!(
                "{input} raw={raw}: {found}, not {expected}: {problems:#?}"
            ));
        }
        let yaml = answer
            .yaml
            .as_deref()
            .map(|yaml| from_yaml(yaml).unwrap().to_json());
        let mut expected = answer.json.clone().or(yaml);
        let mut output = translation.output.map(|output| output.to_json());
        expected.as_mut().map(unpack);
        output.as_mut().map(unpack);
        if output != expected {
            differences.push(format!("{input} raw={raw}: {output:#?}, not {expected:#?}"));
        }
    }
    let count = differences.len();
    assert!(count == 0, "{count} differ:\n{}", differences.join("\n"));
    assert!(
        seen.len() == 3 && seen.values().all(|count| *count > 50),
        "{seen:?}"
    );
}

/// Inputs with a problem at another position than the original's.
const OTHER_POSITIONS: &[(&str, &str)] = &[
    ("anchor-merge-key.bu", "see OTHER_VERDICTS"),
    ("anchor-object.bu", "see OTHER_VERDICTS"),
    ("yaml-two-merge-keys.bu", "see OTHER_VERDICTS"),
    (
        "config-merge-no-version.bu",
        "the original takes the line of the inner configuration for one of the document",
    ),
    ("config-merge-other-version.bu", "ours is at the text"),
    (
        "mode-negative.bu",
        "a refused value has no doubts in addition",
    ),
    (
        "mode-too-large.bu",
        "a refused value has no doubts in addition",
    ),
    ("type-nulls.bu", "an empty value is behind its colon"),
    (
        "unit-broken.bu",
        "ours is at the first line of a block of text",
    ),
    (
        "unit-no-install.bu",
        "ours is at the first line of a block of text",
    ),
];

#[test]
fn problems_are_where_butane_finds_them() {
    let mut compared = 0;
    for (answer, translation) in answers() {
        if OTHER_POSITIONS
            .iter()
            .any(|(name, _)| *name == answer.input)
        {
            continue;
        }
        let ours: Vec<_> = translation
            .problems
            .as_slice()
            .iter()
            .map(|problem| match problem.class {
                ProblemClass::Refused => format!("error {}", problem.at),
                ProblemClass::Ignored | ProblemClass::Doubtful => format!("warning {}", problem.at),
            })
            .collect();
        for line in &answer.problems {
            let (place, _) = line.rsplit_once(' ').unwrap();
            // The start of the document: the original has lost the position.
            if place.ends_with(" 1:1") {
                continue;
            }
            let all = texts(&translation.problems);
            let is_found = ours.iter().any(|own| own == place);
            assert!(
                is_found,
                "{} raw={}: {line} is not in {all:#?}",
                answer.input, answer.raw
            );
            compared += 1;
        }
    }
    assert!(compared > 250, "{compared}");
}

#[test]
fn truncated_documents_never_panic() {
    let files = FixtureFiles(folder().join("files"));
    for name in [
        "every-key-1.7.0.bu",
        "openshift-all.bu",
        "type-block-scalars.bu",
    ] {
        let input = fs::read_to_string(folder().join("inputs").join(name)).unwrap();
        for (end, _) in input.char_indices().step_by(7) {
            let options = ButaneOptions {
                files: Some(&files),
                is_raw: false,
            };
            let translation = translate(&input[..end], options);
            let is_refused = translation.problems.is_refused();
            assert_eq!(translation.output.is_none(), is_refused, "{name} to {end}");
        }
    }
}
