//! A summary of a configuration for people. Password hashes, keys, credentials in URLs and contents stay out of it.

mod text;

use located_yaml::v1_2::ConfigNode;
use serde::Serialize;

use crate::config::{Resource, SpecVersion};
use crate::document::ConfigDocument;

/// Units: bytes. Contents unpacked for one summary; stops many bombs in one configuration.
const MAX_UNPACKED: u64 = 256 * 1024 * 1024;

/// The parts of a configuration.
#[derive(Debug, Serialize)]
pub struct ConfigSummary {
    version: SpecVersion,
    merge: Vec<ShownSource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replace: Option<ShownSource>,
    certificate_authorities: Vec<ShownSource>,
    users: Vec<ShownUser>,
    groups: Vec<String>,
    files: Vec<ShownFile>,
    directories: Vec<ShownFile>,
    links: Vec<ShownLink>,
    units: Vec<ShownUnit>,
    /// Disks, arrays, encrypted volumes and file systems, a line each.
    storage: Vec<String>,
    kernel_arguments: Vec<String>,
    kernel_arguments_removed: Vec<String>,
}

/// A source.
#[derive(Debug, Default, Serialize)]
struct ShownSource {
    /// The URL without user, password and parameters; none for a data URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Units: bytes, decompressed. Of a data URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// Of a data URL with certificates.
    #[serde(skip_serializing_if = "Option::is_none")]
    certificates: Option<usize>,
    is_compressed: bool,
    /// Whether a hash is given; the contents of a data URL have it.
    is_verified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct ShownUser {
    name: String,
    groups: Vec<String>,
    ssh_keys: usize,
    /// `set`, `locked` or `unchanged`.
    password: &'static str,
}

#[derive(Debug, Serialize)]
struct ShownFile {
    path: String,
    /// Octal.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    owner: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    contents: Option<ShownSource>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    append: Vec<ShownSource>,
}

#[derive(Debug, Serialize)]
struct ShownLink {
    path: String,
    target: String,
    is_hard: bool,
}

#[derive(Debug, Serialize)]
struct ShownUnit {
    name: String,
    /// `enabled`, `disabled`, `masked` or `unchanged`.
    state: &'static str,
    /// Units: bytes.
    size: usize,
    dropins: Vec<String>,
}

impl ConfigSummary {
    /// Summarises a configuration, also one with problems.
    pub fn new(document: &ConfigDocument) -> Self {
        let mut reader = SourceReader {
            budget: MAX_UNPACKED,
        };
        let root = document.root();
        let items = |path: &[&str]| root.find(path).map_or(&[][..], ConfigNode::items);
        let texts = |path: &[&str]| items(path).iter().map(|item| text_of(Some(item))).collect();
        let mut sources = |path: &[&str]| -> Vec<_> {
            items(path).iter().map(|node| reader.source(node)).collect()
        };
        let merge = sources(&["ignition", "config", "merge"]);
        let authorities = ["ignition", "security", "tls", "certificateAuthorities"];
        let certificate_authorities = sources(&authorities);
        let replace = root.find(&["ignition", "config", "replace"]);
        let replace = replace.filter(|replace| replace.get("source").is_some());
        let replace = replace.map(|node| reader.source(node));
        let mut nodes = |list: &str| -> Vec<_> {
            let nodes = items(&["storage", list]).iter();
            nodes.map(|node| file(node, &mut reader)).collect()
        };
        Self {
            version: document.version(),
            merge,
            replace,
            certificate_authorities,
            files: nodes("files"),
            directories: nodes("directories"),
            users: items(&["passwd", "users"]).iter().map(user).collect(),
            groups: items(&["passwd", "groups"])
                .iter()
                .map(|group| text_of(group.get("name")))
                .collect(),
            links: items(&["storage", "links"]).iter().map(link).collect(),
            units: items(&["systemd", "units"]).iter().map(unit).collect(),
            storage: devices(root),
            kernel_arguments: texts(&["kernelArguments", "shouldExist"]),
            kernel_arguments_removed: texts(&["kernelArguments", "shouldNotExist"]),
        }
    }
}

/// Reads sources within one bound.
struct SourceReader {
    budget: u64,
}

impl SourceReader {
    fn source(&mut self, node: &ConfigNode) -> ShownSource {
        let resource = match serde_json::from_value::<Resource>(node.to_json()) {
            Ok(resource) => resource,
            Err(error) => {
                return ShownSource {
                    problem: Some(error.to_string()),
                    ..ShownSource::default()
                };
            }
        };
        let source = resource.source.as_deref().unwrap_or_default();
        let mut shown = ShownSource {
            is_compressed: resource.compression.as_deref() == Some("gzip"),
            is_verified: resource.verification.hash.is_some(),
            ..ShownSource::default()
        };
        if self.budget == 0 {
            shown.problem = Some("not unpacked, the contents before are too large".to_owned());
            return shown;
        }
        match resource.verified_bytes() {
            Err(error) => shown.problem = Some(error.to_string()),
            Ok(None) => shown.url = Some(without_credentials(source)),
            Ok(Some(bytes)) => {
                self.budget = self.budget.saturating_sub(bytes.len() as u64);
                shown.size = Some(bytes.len() as u64);
                let text = String::from_utf8_lossy(&bytes);
                let certificates = text.matches("-----BEGIN CERTIFICATE-----").count();
                shown.certificates = Some(certificates).filter(|count| *count > 0);
            }
        }
        shown
    }
}

/// The URL without user, password, parameters and fragment.
fn without_credentials(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (shown, rest) = url.split_at(end);
    let shown = match shown.split_once("://") {
        Some((scheme, address)) => {
            let (host, path) = address.split_at(address.find('/').unwrap_or(address.len()));
            let host = host.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => shown.to_owned(),
    };
    if rest.is_empty() {
        shown
    } else {
        format!("{shown}?…")
    }
}

fn text_of(node: Option<&ConfigNode>) -> String {
    let text = node.and_then(ConfigNode::as_text);
    text.unwrap_or_default().to_owned()
}

fn user(node: &ConfigNode) -> ShownUser {
    let items = |name: &str| node.get(name).map_or(&[][..], ConfigNode::items);
    let hash = node.get("passwordHash").and_then(ConfigNode::as_text);
    ShownUser {
        name: text_of(node.get("name")),
        groups: items("groups")
            .iter()
            .map(|group| text_of(Some(group)))
            .collect(),
        ssh_keys: items("sshAuthorizedKeys").len(),
        password: match hash {
            None => "unchanged",
            Some(hash) if hash.is_empty() || hash.starts_with(['!', '*']) => "locked",
            Some(_) => "set",
        },
    }
}

fn file(node: &ConfigNode, reader: &mut SourceReader) -> ShownFile {
    let owner = |name: &str| {
        let owner = node.get(name)?;
        let id = owner.get("id").and_then(ConfigNode::as_integer);
        let name = owner.get("name").and_then(ConfigNode::as_text);
        id.map(|id| id.to_string())
            .or_else(|| name.map(str::to_owned))
    };
    let (user, group) = (owner("user"), owner("group"));
    let mode = node.get("mode").and_then(ConfigNode::as_integer);
    let contents = node.get("contents");
    let contents = contents.filter(|contents| contents.get("source").is_some());
    let append = node.get("append").map_or(&[][..], ConfigNode::items);
    ShownFile {
        path: text_of(node.get("path")),
        mode: mode.map(|mode| format!("{mode:04o}")),
        owner: format!(
            "{}:{}",
            user.as_deref().unwrap_or("root"),
            group.as_deref().unwrap_or("root")
        ),
        contents: contents.map(|node| reader.source(node)),
        append: append.iter().map(|node| reader.source(node)).collect(),
    }
}

fn link(node: &ConfigNode) -> ShownLink {
    ShownLink {
        path: text_of(node.get("path")),
        target: text_of(node.get("target")),
        is_hard: node.get("hard").and_then(ConfigNode::as_bool) == Some(true),
    }
}

fn unit(node: &ConfigNode) -> ShownUnit {
    let flag = |name: &str| node.get(name).and_then(ConfigNode::as_bool);
    let dropins = node.get("dropins").map_or(&[][..], ConfigNode::items);
    ShownUnit {
        name: text_of(node.get("name")),
        state: match (flag("mask"), flag("enabled")) {
            (Some(true), _) => "masked",
            (_, Some(true)) => "enabled",
            (_, Some(false)) => "disabled",
            (_, None) => "unchanged",
        },
        size: text_of(node.get("contents")).len(),
        dropins: dropins
            .iter()
            .map(|dropin| text_of(dropin.get("name")))
            .collect(),
    }
}

/// Members of storage that are shown by one line: list, members of the line.
const DEVICES: &[(&str, &[&str])] = &[
    ("disks", &["device"]),
    ("raid", &["name", "level"]),
    ("luks", &["name", "device"]),
    ("filesystems", &["device", "format", "path"]),
];

fn devices(root: &ConfigNode) -> Vec<String> {
    let mut lines = Vec::new();
    for (list, members) in DEVICES {
        let nodes = root.find(&["storage", list]);
        for node in nodes.map_or(&[][..], ConfigNode::items) {
            let parts = members.iter().map(|member| text_of(node.get(member)));
            let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
            let mut line = format!("{} {}", list.trim_end_matches('s'), parts.join(" "));
            if let Some(partitions) = node.get("partitions") {
                line = format!("{line}, {} partitions", partitions.items().len());
            }
            lines.push(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_and_contents_stay_out() {
        let config = json!({
            "ignition": {
                "version": "3.3.0",
                "config": {"merge": [{"source": "https://user:secret@h:22623/config/master?token=secret#secret"}]},
                "security": {"tls": {"certificateAuthorities": [
                    {"source": "data:,-----BEGIN%20CERTIFICATE-----%0Asecret"},
                ]}},
            },
            "passwd": {"users": [
                {"name": "core", "passwordHash": "$6$secret", "sshAuthorizedKeys": ["ssh-rsa secret"], "groups": ["sudo"]},
                {"name": "x", "passwordHash": "!"}, {"name": "y\u{1b}[0m"},
            ], "groups": [{"name": "g"}]},
            "storage": {
                "files": [
                    {"path": "/etc/a", "mode": 384, "user": {"id": 5}, "contents": {"source": "data:,secret", "verification": {"hash": format!("sha256-{}", "0".repeat(64))}}},
                    {"path": "/etc/b", "contents": {"source": crate::data_url::gzip_base64(b"secret"), "compression": "gzip"}},
                    {"path": "/etc/c", "append": [{"source": "http://h/a"}]},
                ],
                "directories": [{"path": "/d", "mode": 493, "group": {"name": "g"}}],
                "links": [{"path": "/l", "target": "/etc/a", "hard": true}],
                "disks": [{"device": "/dev/sda", "partitions": [{"number": 1}]}],
                "raid": [{"name": "r", "level": "raid1", "devices": ["/dev/a"]}],
                "filesystems": [{"device": "/dev/a", "format": "xfs", "path": "/var"}],
            },
            "systemd": {"units": [
                {"name": "a.service", "enabled": true, "contents": "[Install]\nSecret=secret\n", "dropins": [{"name": "x.conf"}]},
                {"name": "b.service", "mask": true},
            ]},
            "kernelArguments": {"shouldExist": ["quiet"], "shouldNotExist": ["debug"]},
        });
        let (document, problems) = ConfigDocument::read(config.to_string().as_bytes());
        assert!(!problems.is_refused(), "{problems:?}");
        let summary = ConfigSummary::new(&document.unwrap());
        let json = serde_json::to_value(&summary).unwrap();
        assert_eq!(json["merge"][0]["url"], "https://h:22623/config/master?…");
        assert_eq!(json["files"][1]["contents"]["size"], 6);
        let text = summary.to_string();
        for shown in [&text, &json.to_string()] {
            assert!(!shown.contains("secret"), "{shown}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
        let expected = "\
version 3.3.0

merged configurations
  https://h:22623/config/master?…

certificate authorities
  1 certificate, 34 bytes

users
  core: 1 key, password set, groups sudo
  x: 0 keys, password locked
  y\u{fffd}[0m: 0 keys, password unchanged

groups
  g

files
  0600 5:root /etc/a, not usable: the contents have the hash sha256-2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b, another than verification.hash
  - root:root /etc/b, 6 bytes, gzip
  - root:root /etc/c, appended http://h/a

directories
  0755 root:g /d

links
  /l -> /etc/a, hard

units
  a.service: enabled, 24 bytes, drop-ins x.conf
  b.service: masked

storage
  disk /dev/sda, 1 partitions
  raid r raid1
  filesystem /dev/a xfs /var

kernel arguments
  quiet
  debug (removed)
";
        assert_eq!(text, expected);
    }
}
