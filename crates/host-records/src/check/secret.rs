//! Secrets of BMCs. No finding shows a value.

use located_yaml::v1_1::Value;

use super::finding::FindingList;
use super::scope::{CheckScope, CheckedKind};
use crate::{MAX_CREDENTIAL, RecordNode, decode_base64};

const KEYS: [&str; 2] = ["username", "password"];
/// Names that other tools give the keys.
const OTHER_NAMES: [(&str, &str); 8] = [
    ("user", "username"),
    ("login", "username"),
    ("name", "username"),
    ("bmcUsername", "username"),
    ("pass", "password"),
    ("passwd", "password"),
    ("pwd", "password"),
    ("bmcPassword", "password"),
];

pub(super) fn data(
    secret: &RecordNode<'_>,
    scope: &CheckScope<'_>,
    findings: &mut FindingList<'_>,
) {
    for (key, text) in secret.texts(&["data"]) {
        if decode_base64(text).is_none() {
            let reason = "is not base64";
            let remedy = if text.contains(char::is_whitespace) {
                "write it in one line, without blanks"
            } else {
                "encode it (printf %s VALUE | base64 -w0), or move it to stringData"
            };
            findings.error(secret, &["data", key], reason, remedy);
        }
    }
    if !is_credentials(secret, scope) {
        return;
    }
    for key in KEYS {
        match value_of(secret, key) {
            None => missing(secret, key, findings),
            Some((path, Some(value))) => credential(secret, &path, &value, findings),
            Some((_, None)) => {}
        }
    }
    extra_keys(secret, findings);
}

/// Whether the secret has credentials of a BMC: a host names it, or it has both keys.
fn is_credentials(secret: &RecordNode<'_>, scope: &CheckScope<'_>) -> bool {
    let has = |key: &str| {
        secret
            .get(&["data", key])
            .or(secret.get(&["stringData", key]))
    };
    scope.host_of_secret(secret).is_some() || KEYS.iter().all(|key| has(key).is_some())
}

/// The value of a key with its path; without bytes if it is no text or not base64.
fn value_of<'a>(secret: &RecordNode<'_>, key: &'a str) -> Option<([&'a str; 2], Option<Vec<u8>>)> {
    let text = |path: &[&str]| match &secret.get(path)?.value {
        Value::Text(text) => Some(text.as_str()),
        _ => None,
    };
    let plain = ["stringData", key];
    if secret.get(&plain).is_some() {
        return Some((plain, text(&plain).map(|text| text.as_bytes().to_vec())));
    }
    let encoded = ["data", key];
    secret.get(&encoded)?;
    Some((encoded, text(&encoded).and_then(decode_base64)))
}

fn missing(secret: &RecordNode<'_>, key: &'static str, findings: &mut FindingList<'_>) {
    let names: Vec<&str> = ["data", "stringData"]
        .iter()
        .flat_map(|member| secret.texts(&[member]).map(|(name, _)| name))
        .filter(|name| !KEYS.contains(name))
        .collect();
    let other = OTHER_NAMES.iter().filter(|(_, meant)| *meant == key);
    let mut other = other.map(|(other, _)| *other);
    let known = other.find(|other| names.iter().any(|name| name.eq_ignore_ascii_case(other)));
    let remedy = match known.or_else(|| findings.meant(key, names.iter().copied())) {
        Some(instead) => format!("rename {instead} to {key}"),
        None => "add it".to_owned(),
    };
    findings.error(secret, &["data", key], "is missing", remedy);
}

fn credential(
    secret: &RecordNode<'_>,
    path: &[&str; 2],
    value: &[u8],
    findings: &mut FindingList<'_>,
) {
    let Ok(text) = std::str::from_utf8(value) else {
        let reason = "is base64 of bytes that are not UTF-8 text";
        findings.error(secret, path, reason, "encode the text itself");
        return;
    };
    if text.is_empty() {
        findings.error(
            secret,
            path,
            "is empty, and the operator refuses it",
            "set it",
        );
        return;
    }
    if text.len() > MAX_CREDENTIAL {
        let reason = format!("has more than {MAX_CREDENTIAL} bytes");
        findings.error(secret, path, reason, "correct it");
        return;
    }
    let inner = text.trim_end_matches(['\n', '\r']);
    if inner.len() < text.len() {
        let reason = "ends with a line end, a usual cause of failed log-ins";
        let remedy = "encode it without one: printf %s VALUE | base64 -w0, not echo";
        findings.warning(secret, path, reason, remedy);
    }
    if inner.chars().any(char::is_control) {
        let reason = "has a control character or several lines";
        findings.error(secret, path, reason, "encode one line of text");
    }
    if inner.trim() != inner {
        let reason = "begins or ends with a blank";
        findings.warning(secret, path, reason, "remove it, unless it is meant");
    }
    if path[1] == "username" && text.contains(':') {
        let reason = "has a colon, which basic authentication cannot carry";
        findings.warning(secret, path, reason, "use another account of the BMC");
    }
}

fn extra_keys(secret: &RecordNode<'_>, findings: &mut FindingList<'_>) {
    for member in ["data", "stringData"] {
        for (key, _) in secret.texts(&[member]) {
            let path = [member, key];
            if !KEYS.contains(&key) {
                let reason = "is not read: credentials are username and password";
                findings.warning(secret, &path, reason, "remove it");
            } else if member == "data" && secret.get(&["stringData", key]).is_some() {
                let reason = "is also in stringData, which wins";
                findings.warning(secret, &path, reason, "remove one of them");
            }
        }
    }
}

pub(super) fn usage(
    secret: &RecordNode<'_>,
    scope: &CheckScope<'_>,
    findings: &mut FindingList<'_>,
) {
    if !is_credentials(secret, scope) {
        return;
    }
    let kind = secret.text(&["type"]);
    if !["", "Opaque"].contains(&kind) {
        let reason = "is not Opaque, the type of credentials";
        findings.warning(secret, &["type"], reason, "write Opaque");
    }
    let hosts = scope.records(CheckedKind::Host);
    if scope.host_of_secret(secret).is_none() && !hosts.is_empty() {
        let reason = "has credentials that no host of the files names";
        let remedy = "correct credentialsName of its host, or remove the secret";
        findings.warning(secret, &["metadata", "name"], reason, remedy);
    }
}
