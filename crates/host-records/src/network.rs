//! Networks of nodes, as keyfiles of NetworkManager.
//!
//! ```yaml
//! hostname: cp-0.example.com
//! dns: [10.0.0.2]               # of interfaces without their own
//! search: [example.com]
//! interfaces:
//! - name: bond0
//!   bond: {ports: [ens3, ens4], mode: active-backup, options: {miimon: "100"}}
//! - name: bond0.100
//!   vlan: {parent: bond0, id: 100}
//!   addresses: [10.0.0.20/24, "fd00::20/64"]
//!   gateways: [10.0.0.1]
//!   routes: [{to: 10.1.0.0/16, via: 10.0.0.254, metric: 100}]
//! - name: ens5
//!   dhcp: true                  # or ipv4, ipv6
//! ```
//!
//! A configuration of nmstate is taken, too: [`static_network`] renders it, as for discovery images. So is a Butane
//! document with keyfiles.

mod butane;
mod families;
mod interfaces;
mod keyfile;
mod links;
mod schema;
mod source;

pub use interfaces::MAX_INTERFACES;
pub use keyfile::{KEYFILE_FOLDER, KEYFILE_MODE, NodeNetwork};
pub use static_network::NetworkFile;

use located_yaml::Position;
use located_yaml::v1_1::Value;
use located_yaml::v1_2::from_yaml;
use static_network::{keyfiles, problems};

use crate::check::finding::FindingList;
use crate::check::shape::{self, ShapeMode};
use crate::check::{CheckReport, FindingSeverity, RecordCounts};
use crate::{BrokenDocument, RecordFile, RecordNode, SUBDOMAIN};

/// Largest configuration. Units: bytes.
pub const MAX_NETWORK: usize = 1 << 20;

/// Reads a configuration, in the short form, that of nmstate or that of Butane.
///
/// Errors: its mistakes, with their positions.
pub fn read(name: &str, content: &[u8]) -> Result<NodeNetwork, CheckReport> {
    let mut file = RecordFile::read(name, content);
    if content.len() > MAX_NETWORK {
        refuse(
            &mut file,
            Position::START,
            "the configuration has more than 1 MiB; shorten it",
        );
    }
    if let Some(second) = file.documents.get(1).map(|second| second.place) {
        refuse(
            &mut file,
            second,
            "another document begins here, and a network is one",
        );
    } else if file.documents.is_empty() && file.broken.is_empty() {
        refuse(
            &mut file,
            Position::START,
            "the configuration is empty; write interfaces",
        );
    }
    let files = [file];
    let mut findings = FindingList::new(&files);
    findings.begin("network");
    for broken in &files[0].broken {
        findings.broken(&files[0], broken);
    }
    let mut network = NodeNetwork::default();
    if let ([root], true) = (&files[0].documents[..], files[0].broken.is_empty()) {
        let node = RecordNode { file: name, root };
        network = if butane::is_butane(&node) {
            butane::read(&node, content, &mut findings)
        } else if is_nmstate(&node) {
            of_nmstate(&node, content, &mut findings)
        } else {
            of_short_form(&node, &mut findings)
        };
    }
    let report = findings.into_report(RecordCounts::default());
    if report.errors() > 0 {
        return Err(report);
    }
    Ok(network)
}

fn refuse(file: &mut RecordFile, place: Position, reason: &str) {
    file.broken.push(BrokenDocument {
        place,
        reason: reason.to_owned(),
    });
}

/// Whether members are there that only nmstate has.
fn is_nmstate(node: &RecordNode<'_>) -> bool {
    let is_object = |path: &[&str]| {
        let value = node.get(path).map(|it| &it.value);
        matches!(value, Some(Value::Object(_)))
    };
    let mut indexes = (0..node.list(&["interfaces"]).len()).map(|index| index.to_string());
    let has_member = |index: &str| {
        let at = |member: &'static str| ["interfaces", index, member];
        ["type", "state"]
            .iter()
            .any(|it| node.get(&at(it)).is_some())
            || ["ipv4", "ipv6"].iter().any(|it| is_object(&at(it)))
    };
    is_object(&["dns-resolver"])
        || is_object(&["routes"])
        || indexes.any(|index| has_member(&index))
}

fn of_nmstate(
    node: &RecordNode<'_>,
    content: &[u8],
    findings: &mut FindingList<'_>,
) -> NodeNetwork {
    let text = String::from_utf8_lossy(content);
    let mut refuse = |place: Position, path: &str, reason: String| {
        let at = (place, path.to_owned());
        findings.add(FindingSeverity::Error, node, at, [reason, String::new()]);
    };
    let mut files = Vec::new();
    match from_yaml(&text) {
        Err(error) => refuse(node.root.place, "", error.to_string()),
        Ok(document) => {
            let mut problems = problems(&document, None);
            if problems.is_empty() {
                match keyfiles(&document) {
                    Ok(found) => files = found,
                    Err(problem) => problems.push(problem),
                }
            }
            for problem in problems {
                let path = problem.path.trim_start_matches('.');
                refuse(problem.at, path, problem.reason);
            }
        }
    }
    NodeNetwork {
        hostname: hostname(node, &["hostname", "config"], findings),
        keyfiles: files,
    }
}

fn of_short_form(node: &RecordNode<'_>, findings: &mut FindingList<'_>) -> NodeNetwork {
    let mode = ShapeMode {
        hides_values: false,
        is_strict: true,
    };
    shape::walk(node, &schema::NETWORK, mode, findings);
    let interfaces = interfaces::read(node, findings);
    NodeNetwork {
        hostname: hostname(node, &["hostname"], findings),
        keyfiles: interfaces.iter().map(keyfile::of).collect(),
    }
}

fn hostname(
    node: &RecordNode<'_>,
    path: &[&str],
    findings: &mut FindingList<'_>,
) -> Option<String> {
    let name = node.text(path);
    if name.is_empty() {
        return None;
    }
    if let Err(reason) = SUBDOMAIN.check(name) {
        findings.error(
            node,
            path,
            format!("is no host name: it {reason}"),
            "rename the host",
        );
    }
    Some(name.to_owned())
}

#[cfg(test)]
mod tests;
