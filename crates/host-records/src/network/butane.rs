//! The specification's input: a Butane document with keyfiles, and the name of the host.

use ignition::butane::{ButaneOptions, translate};
use ignition::{IgnitionConfig, IgnitionFile, ProblemClass};
use located_yaml::v1_1::Value;
use static_network::NetworkFile;

use super::interfaces::MAX_INTERFACES;
use super::keyfile::{KEYFILE_FOLDER, NodeNetwork};
use crate::check::FindingSeverity;
use crate::check::finding::FindingList;
use crate::{RecordNode, SUBDOMAIN};

/// The file with the name of the host.
const HOST_NAME_FILE: &str = "/etc/hostname";
const EXTENSION: &str = ".nmconnection";
/// Members of the document beside those of its files.
const HEAD: [&str; 3] = ["variant", "version", "metadata"];

/// Whether the document is one of Butane.
pub(super) fn is_butane(node: &RecordNode<'_>) -> bool {
    node.get(&["variant"]).is_some()
}

/// Files other than a node's network are mistakes: they would not reach the node.
pub(super) fn read(
    node: &RecordNode<'_>,
    content: &[u8],
    findings: &mut FindingList<'_>,
) -> NodeNetwork {
    refuse_others(node, findings);
    let Some(config) = translated(node, content, findings) else {
        return NodeNetwork::default();
    };
    if config.storage.files.len() > MAX_INTERFACES + 1 {
        let reason = format!("has more than {MAX_INTERFACES} keyfiles");
        findings.error(node, &["storage", "files"], reason, "remove some");
        return NodeNetwork::default();
    }
    let mut network = NodeNetwork::default();
    for file in &config.storage.files {
        let index = index_of(node, file);
        let path = ["storage", "files", index.as_str()];
        if let Err((reason, remedy)) = take(&mut network, file) {
            findings.error(node, &path, reason, remedy);
        }
    }
    network
}

fn translated(
    node: &RecordNode<'_>,
    content: &[u8],
    findings: &mut FindingList<'_>,
) -> Option<IgnitionConfig> {
    let options = ButaneOptions {
        files: None,
        is_raw: true,
    };
    let translation = translate(&String::from_utf8_lossy(content), options);
    for problem in translation.problems.as_slice() {
        // An ignored member is a lost part of the network.
        let severity = match problem.class {
            ProblemClass::Refused | ProblemClass::Ignored => FindingSeverity::Error,
            ProblemClass::Doubtful => FindingSeverity::Warning,
        };
        let at = (problem.at, problem.path.clone());
        findings.add(severity, node, at, [problem.reason.clone(), String::new()]);
    }
    let json = translation.output?.to_json().to_string();
    let config = IgnitionConfig::parse(json.as_bytes());
    // Its mistakes are among the problems above.
    config.ok()
}

/// Refuses members of the document that are no files.
fn refuse_others(node: &RecordNode<'_>, findings: &mut FindingList<'_>) {
    let mut refuse = |path: &[&str]| {
        let reason = "is not read from the network of a node";
        findings.error(node, path, reason, "remove it");
    };
    let names = |path: &[&str]| {
        let value = if path.is_empty() {
            Some(node.root)
        } else {
            node.get(path)
        };
        match value.map(|found| &found.value) {
            Some(Value::Object(members)) => {
                members.iter().map(|member| member.name.clone()).collect()
            }
            _ => Vec::new(),
        }
    };
    for name in names(&[]) {
        if name != "storage" && !HEAD.contains(&name.as_str()) {
            refuse(&[&name]);
        }
    }
    for name in names(&["storage"]) {
        if name != "files" {
            refuse(&["storage", &name]);
        }
    }
}

/// The index of a file in the document.
fn index_of(node: &RecordNode<'_>, file: &IgnitionFile) -> String {
    let count = node.list(&["storage", "files"]).len();
    let mut indexes = (0..count).map(|index| index.to_string());
    let found = indexes.find(|index| node.text(&["storage", "files", index, "path"]) == file.path);
    found.unwrap_or_default()
}

/// Errors: the reason, and the remedy.
fn take(network: &mut NodeNetwork, file: &IgnitionFile) -> Result<(), (String, &'static str)> {
    let bytes = file.contents.inline_bytes().ok().flatten();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or_else(|| {
        let reason = "has no text of its own".to_owned();
        (reason, "write it to contents.inline")
    })?;
    if file.path == HOST_NAME_FILE {
        let name = text.trim();
        SUBDOMAIN.check(name).map_err(|reason| {
            let reason = format!("is no host name: it {reason}");
            (reason, "rename the host")
        })?;
        network.hostname = Some(name.to_owned());
        return Ok(());
    }
    let name = file.path.strip_prefix(KEYFILE_FOLDER);
    let name = name.and_then(|rest| rest.strip_prefix('/'));
    let name = name.filter(|name| !name.contains('/') && name.ends_with(EXTENSION));
    let name = name.ok_or_else(|| {
        let reason = format!("is neither {HOST_NAME_FILE} nor {KEYFILE_FOLDER}/…{EXTENSION}");
        (reason, "remove it")
    })?;
    if !text.lines().any(|line| line.trim() == "[connection]") {
        let reason = "is no keyfile: it has no section [connection]".to_owned();
        return Err((reason, "write one, see nm-settings-keyfile(5)"));
    }
    network.keyfiles.push(NetworkFile {
        name: name.to_owned(),
        content: text,
    });
    Ok(())
}
