//! One interface of a configuration as it is written, with the members that all interfaces share.

use std::net::IpAddr;
use std::str::FromStr;

use located_yaml::v1_1::{Located, Value};

use crate::check::finding::{FindingList, shown};
use crate::{RecordNode, SUBDOMAIN};

/// An interface of the configuration.
pub(super) struct InterfaceSource<'a> {
    pub(super) node: &'a RecordNode<'a>,
    pub(super) index: String,
}

impl<'a> InterfaceSource<'a> {
    fn path<'b>(&'b self, member: &[&'b str]) -> Vec<&'b str> {
        let interface = ["interfaces", &self.index];
        interface.iter().chain(member).copied().collect()
    }

    pub(super) fn get(&self, member: &[&str]) -> Option<&'a Located> {
        self.node.get(&self.path(member))
    }

    pub(super) fn text(&self, member: &[&str]) -> &'a str {
        self.node.text(&self.path(member))
    }

    pub(super) fn flag(&self, member: &str) -> Option<bool> {
        self.node.flag(&self.path(&[member]))
    }

    pub(super) fn list(&self, member: &[&str]) -> &'a [Located] {
        self.node.list(&self.path(member))
    }

    pub(super) fn texts(&self, member: &[&str]) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.node.texts(&self.path(member))
    }

    pub(super) fn port_names(&self) -> Vec<&'a str> {
        let ports = self.list(&["bond", "ports"]).iter();
        let names = ports.filter_map(|port| match &port.value {
            Value::Text(name) => Some(name.as_str()),
            _ => None,
        });
        names.collect()
    }

    /// Values of a list of texts, each with its path; those of another form are findings.
    pub(super) fn parsed<T: FromStr>(
        &self,
        member: &'static str,
        example: &str,
        findings: &mut FindingList<'_>,
    ) -> Vec<([String; 2], T)> {
        let mut values = Vec::new();
        for number in 0..self.list(&[member]).len() {
            let path = [member.to_owned(), number.to_string()];
            let text = self.text(&[&path[0], &path[1]]);
            match text.parse() {
                Ok(value) => values.push((path, value)),
                // Other types are findings of the schema.
                Err(_) if text.is_empty() => {}
                Err(_) => {
                    let reason = format!("{} is not of the form {example}", shown(text));
                    self.error_at(&path, &reason, "correct it", findings);
                }
            }
        }
        values
    }

    /// Name servers of all interfaces.
    pub(super) fn common_dns(&self) -> Vec<IpAddr> {
        let all = self.node.list(&["dns"]).iter();
        let servers = all.filter_map(|server| match &server.value {
            Value::Text(text) => text.parse().ok(),
            _ => None,
        });
        servers.collect()
    }

    /// Search domains of the interface, or of all.
    pub(super) fn search(&self, findings: &mut FindingList<'_>) -> Vec<String> {
        let own = self.path(&["search"]);
        domains(self.node, &own, findings);
        let list = match self.node.list(&own) {
            [] => self.node.list(&["search"]),
            own => own,
        };
        let domains = list.iter().filter_map(|domain| match &domain.value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        });
        domains.collect()
    }

    pub(super) fn error(
        &self,
        member: &[&str],
        reason: &str,
        remedy: &str,
        findings: &mut FindingList<'_>,
    ) {
        findings.error(self.node, &self.path(member), reason, remedy);
    }

    pub(super) fn error_at(
        &self,
        path: &[String; 2],
        reason: &str,
        remedy: &str,
        findings: &mut FindingList<'_>,
    ) {
        self.error(&[&path[0], &path[1]], reason, remedy, findings);
    }
}

/// Reports texts of a list that are no domains.
pub(super) fn domains(node: &RecordNode<'_>, path: &[&str], findings: &mut FindingList<'_>) {
    for number in (0..node.list(path).len()).map(|it| it.to_string()) {
        let path = [path, &[number.as_str()]].concat();
        let domain = node.text(&path);
        if !domain.is_empty() && !is_domain(domain) {
            let reason = format!("{} is no domain", shown(domain));
            findings.error(node, &path, reason, "write it as example.com");
        }
    }
}

/// Checks a domain.
fn is_domain(text: &str) -> bool {
    SUBDOMAIN.check(&text.to_ascii_lowercase()).is_ok()
}
