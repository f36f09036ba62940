//! Files of other kinds that people give in place of an Ignition configuration: a refusal names the kind and the way out.

use located_yaml::v1_2::ConfigNode;

const BUTANE: &str =
    "this is a Butane document: translate it into Ignition first, as by `atoll butane`";
const COMPRESSED: &str = "this is a compressed file: decompress it first";
const UTF_16: &str = "this is text in UTF-16: save it as UTF-8";
const CLOUD_INIT: &str = "this is a configuration of cloud-init, which CoreOS does not read: write it as Ignition or Butane";
const EMPTY: &str =
    "the file is empty: the smallest configuration is {\"ignition\":{\"version\":\"3.2.0\"}}";

/// Kinds by their first bytes.
static BEGINNINGS: &[(&[u8], &str)] = &[
    (
        b"\xef\xbb\xbf",
        "a byte-order mark is before the JSON, which Ignition refuses: save the file without it",
    ),
    (b"\xff\xfe", UTF_16),
    (b"\xfe\xff", UTF_16),
    (b"\x1f\x8b", COMPRESSED),
    (b"\xfd7zXZ\0", COMPRESSED),
    (b"\x28\xb5\x2f\xfd", COMPRESSED),
    (b"BZh", COMPRESSED),
    (b"PK\x03\x04", COMPRESSED),
    (
        b"070701",
        "this is a cpio archive: Ignition reads the JSON in it",
    ),
    (b"#cloud-config", CLOUD_INIT),
    (b"#!", CLOUD_INIT),
    (
        b"<",
        "this is a page or XML, as servers send it in place of a missing file: download the configuration again",
    ),
];

/// Kinds of YAML by a member at the start of a line.
static YAML_MEMBERS: &[(&str, &str)] = &[
    ("variant:", BUTANE),
    (
        "kind:",
        "this is an object of a cluster in YAML; Ignition reads JSON, of a MachineConfig the part below its spec.config",
    ),
    (
        "ignition:",
        "this is YAML, and Ignition reads JSON: convert it",
    ),
];

/// The kind of a file that is no JSON; none if it has no known one.
pub(crate) fn kind_of_bytes(bytes: &[u8]) -> Option<&'static str> {
    let is_empty = bytes.iter().all(u8::is_ascii_whitespace);
    let beginning = BEGINNINGS
        .iter()
        .find(|(beginning, _)| bytes.starts_with(beginning));
    match beginning {
        _ if is_empty => Some(EMPTY),
        Some((_, kind)) => Some(kind),
        None if bytes.trim_ascii_start().starts_with(b"{") => None,
        None => {
            let has_line = |member: &str| {
                let mut lines = bytes.split(|byte| *byte == b'\n');
                lines.any(|line| line.starts_with(member.as_bytes()))
            };
            let yaml = YAML_MEMBERS.iter().find(|(member, _)| has_line(member));
            yaml.map(|(_, kind)| *kind)
        }
    }
}

/// The kind of a JSON document without a version; none if it has no known one.
pub(crate) fn kind_of_document(root: &ConfigNode) -> Option<&'static str> {
    let text = |name: &str| root.get(name).and_then(ConfigNode::as_text);
    match text("kind") {
        Some("MachineConfig") => Some(
            "this is a MachineConfig for a cluster; Ignition reads the part below its spec.config alone",
        ),
        Some(_) if text("apiVersion").is_some() => {
            Some("this is an object of a cluster, not a configuration of Ignition")
        }
        _ if text("variant").is_some() => Some(BUTANE),
        _ if root.get("ignitionVersion").is_some() => {
            Some("this is a configuration of version 1: write it anew for one of 3.0.0 to 3.6.0")
        }
        _ => None,
    }
}

/// The way out of a version that is not supported.
pub(crate) fn version_remedy(version: &str) -> &'static str {
    if version.starts_with("2.") {
        ": convert the configuration, as by ign-converter"
    } else if version.ends_with("-experimental") {
        ": released systems read no experimental versions"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use crate::ConfigDocument;

    #[test]
    fn other_kinds_are_named_with_a_way_out() {
        for (bytes, expected) in [
            (&b""[..], "the file is empty"),
            (b" \n\n", "the file is empty"),
            (b"\xef\xbb\xbf{}", "save the file without it"),
            (b"\xff\xfe{\0}\0", "UTF-16"),
            (b"\x1f\x8b\x08\0", "decompress it first"),
            (b"\xfd7zXZ\0\0", "decompress it first"),
            (b"#cloud-config\nusers: []\n", "cloud-init"),
            (b"#!/bin/bash\n", "cloud-init"),
            (b"<!DOCTYPE html>\n", "download the configuration again"),
            (b"# mine\nvariant: fcos\nversion: 1.5.0\n", "`atoll butane`"),
            (b"apiVersion: v1\nkind: List\n", "object of a cluster"),
            (b"ignition:\n  version: 3.2.0\n", "this is YAML"),
            (
                b"{\"variant\":\"fcos\",\"version\":\"1.5.0\"}",
                "`atoll butane`",
            ),
            (b"{\"kind\":\"MachineConfig\"}", "this is a MachineConfig"),
            (
                b"{\"apiVersion\":\"v1\",\"kind\":\"List\"}",
                "object of a cluster",
            ),
            (b"{\"ignitionVersion\":1}", "version 1"),
            (b"{\"ignition\":{\"version\":\"2.2.0\"}}", "ign-converter"),
            (
                b"{\"ignition\":{\"version\":\"3.7.0-experimental\"}}",
                "no experimental",
            ),
            (b"{}", "needs a version"),
            (b"{", "not JSON"),
            (b"install\nlang en_US\n", "not JSON"),
        ] {
            let (_, problems) = ConfigDocument::read(bytes);
            assert!(problems.is_refused());
            let said = problems.as_slice()[0].to_string();
            assert!(said.contains(expected), "{said}");
        }
    }
}
