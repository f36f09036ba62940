//! The recorded answers of the real butane hold for our translation: see fixtures/butane/README.md.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ignition::butane::{ButaneOptions, LocalEntry, LocalEntryKind, LocalFiles, translate};
use ignition::tree::from_yaml;
use ignition::{ProblemClass, ProblemList, data_url};
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

fn problem_lines(problems: &ProblemList) -> Vec<String> {
    let lines = problems.as_slice().iter().map(|problem| {
        let kind = match problem.class {
            ProblemClass::Refused => "error",
            ProblemClass::Ignored | ProblemClass::Doubtful => "warning",
        };
        format!("{kind} {}", problem.at)
    });
    lines.collect()
}

#[test]
fn verdicts_and_outputs_are_those_of_butane() {
    let files = FixtureFiles(folder().join("files"));
    let mut differences = Vec::new();
    let mut seen = BTreeMap::new();
    for answer in recorded() {
        let name = answer.input.as_str();
        let input = fs::read(folder().join("inputs").join(name)).unwrap();
        let hash = format!("{:x}", Sha256::digest(&input));
        assert_eq!(hash, answer.sha256, "{name} is not the input of the answer");
        let options = ButaneOptions {
            files: Some(&files),
            is_raw: answer.raw,
        };
        let translation = translate(std::str::from_utf8(&input).unwrap(), options);
        let other = OTHER_VERDICTS.iter().find(|(input, _, _)| *input == name);
        let expected = other.map_or(answer.verdict.as_str(), |(_, verdict, _)| verdict);
        let problems: Vec<_> = translation
            .problems
            .as_slice()
            .iter()
            .map(ToString::to_string)
            .collect();
        let found = verdict(&translation.problems);
        *seen.entry(found).or_insert(0) += 1;
        if found != expected {
            differences.push(format!(
                "{name} raw={}: {found} instead of {expected}: {problems:#?}",
                answer.raw
            ));
            continue;
        }
        let yaml = answer.yaml.map(|yaml| from_yaml(&yaml).unwrap().to_json());
        let mut expected = answer.json.or(yaml);
        let mut output = translation.output.map(|output| output.to_json());
        expected.as_mut().map(unpack);
        output.as_mut().map(unpack);
        if output != expected {
            differences.push(format!(
                "{name} raw={}: {output:#?} instead of {expected:#?}",
                answer.raw
            ));
        }
        if std::env::var_os("SHOW").is_some() {
            let recorded: Vec<_> = answer
                .problems
                .iter()
                .map(|line| {
                    line.rsplit_once(' ')
                        .map_or("", |(head, _)| head)
                        .to_owned()
                })
                .collect();
            let mut ours = problem_lines(&translation.problems);
            ours.sort();
            let mut recorded = recorded;
            recorded.sort();
            recorded.dedup();
            ours.dedup();
            if ours != recorded {
                println!(
                    "{name} raw={} ours {problems:#?}\n recorded {:#?}",
                    answer.raw, answer.problems
                );
            }
        }
    }
    assert!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
    assert!(seen.values().all(|count| *count > 50), "{seen:?}");
}
