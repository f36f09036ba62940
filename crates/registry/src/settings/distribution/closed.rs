//! Access, storage and TLS fail closed: a key there that is not understood ends the start. Passed over, a misspelt
//! `auth` is a registry that is open to every client.

use service::settings::Values;

use super::key::{NO_SUCH_USERS, is_below, path};

/// A part of the file in which every key has to be understood.
struct Section {
    name: &'static str,
    /// The replacement.
    remedy: &'static str,
}

static SECTIONS: &[Section] = &[
    Section {
        name: "registry_auth",
        remedy: NO_SUCH_USERS,
    },
    Section {
        name: "registry_storage",
        remedy: "see `atoll run registry settings` for the keys of storage",
    },
    Section {
        name: "registry_http_tls",
        remedy: "see `atoll run registry settings` for the keys of http.tls",
    },
];

/// The variable in which podman's tools look for logins: its name is below `auth` by accident.
const LOGINS_OF_TOOLS: &str = "registry_auth_file";

/// Why an unknown `name` ends the start; none where it is no more than a remark. `meant` is the known name that is
/// nearest.
pub(super) fn refusal(values: &Values, name: &str, meant: Option<&str>) -> Option<String> {
    let is_in = |section: &&Section| is_below(section.name, name);
    let section = SECTIONS.iter().find(is_in)?;
    if values.place(name).is_none() && is_of_others(values, name) {
        return None;
    }
    let key = path(name);
    Some(match meant {
        Some(meant) => format!("unknown key {key}; {} may be meant", path(meant)),
        None => format!("unknown key {key}: {}", section.remedy),
    })
}

/// Variables of the environment that are not meant for the registry: empty ones, podman's, and those that Kubernetes
/// sets for services called registry-auth or registry-storage.
fn is_of_others(values: &Values, name: &str) -> bool {
    let is_empty = values.text(name).is_none_or(str::is_empty);
    is_empty || name == LOGINS_OF_TOOLS || is_service_link(name)
}

/// Source: Kubernetes, "Accessing the Service", environment variables.
fn is_service_link(name: &str) -> bool {
    let is_port = |rest: &str| rest.is_empty() || rest.starts_with('_');
    name.ends_with("_service_host")
        || name
            .split_once("_service_port")
            .is_some_and(|(_, rest)| is_port(rest))
        || name.ends_with("_port")
        || ["_tcp", "_udp", "_sctp"].iter().any(|protocol| {
            let rest = name.split_once("_port_").map_or("", |(_, rest)| rest);
            let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            digits.len() < rest.len() && digits.strip_prefix(protocol).is_some_and(is_port)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_others_are_no_settings() {
        for (name, text, is_refused) in [
            ("registry_auth_file", "/run/auth.json", false),
            ("registry_auth_ldap", "", false),
            ("registry_auth_ldap", "x", true),
            ("registry_auth_service_host", "10.0.0.1", false),
            ("registry_auth_service_port", "80", false),
            ("registry_auth_service_port_http", "80", false),
            ("registry_auth_port", "tcp://10.0.0.1:80", false),
            ("registry_auth_port_80_tcp", "tcp://10.0.0.1:80", false),
            ("registry_auth_port_80_tcp_addr", "10.0.0.1", false),
            ("registry_storage_port_80_udp_proto", "udp", false),
            ("registry_auth_port_tcp", "x", true),
            ("registry_auth_ports", "x", true),
            ("registry_log_flavour", "x", false),
        ] {
            let values = Values::from_pairs([(name, text)]);
            let refusal = refusal(&values, name, None);
            assert_eq!(refusal.is_some(), is_refused, "{name}={text}");
        }
    }
}
