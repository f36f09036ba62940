//! The text of the console.

use std::fmt::Write as _;

use ipnet::IpNet;

use crate::links::{LinkTable, NetworkLink};
use crate::status::AgentStatus;

/// Longest line: the width of terminals.
const WIDTH: usize = 79;
const HELP: &str = "Type a letter and Enter:  n  change the network   l  log in   r  draw again";

/// The whole screen. `service` is the URL of the installer API.
pub(super) fn screen(status: &AgentStatus, table: &LinkTable, service: &str) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{}", cut(&format!("  {name:<12} {value}")));
    };
    line("Service", service);
    match (&status.failure, status.is_registered) {
        (Some(failure), _) => {
            line("", "FAILS");
            for part in wrapped(failure) {
                line("", &part);
            }
        }
        (None, true) => line("", "this host is registered"),
        (None, false) => line("", "registering this host"),
    }
    if let Some(id) = status.host_id {
        line("Host", &id.to_string());
    }
    if let Some(installation) = &status.installation {
        line("Installation", installation);
    }
    for (name, problem) in &status.checks {
        line(
            name,
            &problem
                .as_ref()
                .map_or_else(|| "ok".to_owned(), |text| format!("FAILS: {text}")),
        );
    }
    for link in real_links(table) {
        let addresses: Vec<String> = link.usable_addresses().map(IpNet::to_string).collect();
        let state = match (addresses.as_slice(), link.flags.contains(&"running")) {
            ([], true) => "no address".to_owned(),
            ([], false) => "no link".to_owned(),
            (addresses, _) => addresses.join(" "),
        };
        line(&link.name, &format!("{} {state}", link.mac_address));
    }
    format!("Atoll discovery agent\n\n{text}\n{HELP}\n> ")
}

/// Links to other hosts.
fn real_links(table: &LinkTable) -> impl Iterator<Item = &NetworkLink> {
    let is_real = |link: &&NetworkLink| matches!(link.kind.as_str(), "physical" | "bond" | "vlan");
    table.links.iter().filter(is_real)
}

/// A line that fits, without control characters: texts of servers must not reach the terminal's commands.
fn cut(line: &str) -> String {
    let printable = line
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char });
    printable.take(WIDTH).collect()
}

/// A long text in lines.
fn wrapped(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars
        .chunks(WIDTH - 15)
        .map(|part| part.iter().collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_shown() {
        let status = AgentStatus {
            host_id: Some(uuid::Uuid::nil()),
            failure: Some("registering this host: the name api.example cannot be resolved: \x1b[2J 10.0.2.3 does not answer, nor does any other server".to_owned()),
            checks: vec![("DNS".to_owned(), Some("10.0.2.3 is silent".to_owned())), ("Time".to_owned(), None)],
            ..AgentStatus::default()
        };
        let link =
            |name: &str, kind: &str, addresses: &[&str], flags: &[&'static str]| NetworkLink {
                name: name.to_owned(),
                kind: kind.to_owned(),
                mac_address: "52:54:00:00:00:01".to_owned(),
                flags: flags.to_vec(),
                addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
                ..NetworkLink::default()
            };
        let table = LinkTable {
            links: vec![
                link("lo", "device", &["127.0.0.1/8"], &["running"]),
                link(
                    "eno1",
                    "physical",
                    &["10.0.0.1/24", "fe80::1/64"],
                    &["running"],
                ),
                link("eno2", "physical", &[], &["running"]),
                link("eno3", "physical", &[], &[]),
            ],
            ..LinkTable::default()
        };
        let text = screen(&status, &table, "http://api.example:8090/");
        assert!(!text.contains('\x1b') && text.lines().all(|line| line.chars().count() <= WIDTH));
        insta::assert_snapshot!(text);
    }
}
