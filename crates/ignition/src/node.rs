//! The configuration of one node that joins a cluster: a pointer to the machine-config server, with the node's own
//! name, network and login.

use std::fmt;
use std::net::Ipv6Addr;

use crate::Error;
use crate::config::{IgnitionConfig, IgnitionFile, Resource, SpecVersion, User};
use crate::problem::quoted;

/// Port of the machine-config server.
pub const MACHINE_CONFIG_PORT: u16 = 22623;

/// Folder of the connection files that NetworkManager reads.
pub const CONNECTIONS: &str = "/etc/NetworkManager/system-connections";

/// The user of nodes.
const LOGIN: &str = "core";

/// Units: characters. The longest name that Linux takes for a host, and for an interface.
const HOST_NAME_MAX: usize = 64;
const INTERFACE_MAX: usize = 15;

/// A node.
#[derive(Clone)]
pub struct NodeConfig {
    /// Version of the specification; 3.2.0 is read by all supported nodes.
    pub version: SpecVersion,
    /// Name or address of the machine-config server, as in `api-int.demo.lab`.
    pub server: String,
    /// The pool of the node: `master` or `worker`.
    pub role: String,
    /// Certificates (PEM) that the machine-config server is trusted by.
    pub certificate_authorities: Vec<String>,
    /// Crypt hash of the password of `core`; none allows no password.
    pub password_hash: Option<String>,
    /// Keys that may log in as `core`.
    pub ssh_keys: Vec<String>,
    /// Name of the host.
    pub host_name: String,
    /// Its network; empty leaves it to DHCP.
    pub connections: Vec<ConnectionFile>,
}

/// A connection of NetworkManager.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectionFile {
    /// Interface, which names the file.
    pub interface: String,
    /// The keyfile. It may have passwords.
    pub keyfile: String,
}

impl fmt::Debug for NodeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeConfig")
            .field("host_name", &self.host_name)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ConnectionFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionFile")
            .field("interface", &self.interface)
            .finish_non_exhaustive()
    }
}

impl NodeConfig {
    /// The configuration: merge source on port 22623, certificate authorities, user, `/etc/hostname` (0644), a
    /// connection file for each interface (0600).
    ///
    /// Errors: `Invalid` for a value that is none of its kind; the path is the field.
    pub fn render(&self) -> Result<IgnitionConfig, Error> {
        self.check()?;
        let mut config = IgnitionConfig::new(self.version)
            .user(self.user())
            .file(IgnitionFile::text("/etc/hostname", 0o644, &self.host_name));
        for connection in &self.connections {
            let path = format!("{CONNECTIONS}/{}.nmconnection", connection.interface);
            config = config.file(IgnitionFile::text(path, 0o600, &connection.keyfile));
        }
        let server = match self.server.parse::<Ipv6Addr>() {
            Ok(address) => format!("[{address}]"),
            Err(_) => self.server.clone(),
        };
        let source = format!(
            "https://{server}:{MACHINE_CONFIG_PORT}/config/{}",
            self.role
        );
        config.ignition.config.merge = vec![Resource::at(source)];
        let authorities = self.certificate_authorities.iter();
        config.ignition.security.tls.certificate_authorities = authorities
            .map(|pem| Resource::bytes(pem.as_bytes()))
            .collect();
        config.validate()?;
        Ok(config)
    }

    fn user(&self) -> User {
        let user = User::with_keys(LOGIN, self.ssh_keys.clone());
        match &self.password_hash {
            None => user,
            Some(hash) => User {
                password_hash: Some(hash.clone()),
                ..user
            },
        }
    }

    fn check(&self) -> Result<(), Error> {
        let is_address = self.server.parse::<Ipv6Addr>().is_ok();
        require(is_address || is_host_name(&self.server), || {
            let reason = format!(
                "{} is no name and no address of a host",
                quoted(&self.server)
            );
            ("server".to_owned(), reason)
        })?;
        require(is_label(&self.role), || {
            let reason = format!(
                "{} is no pool, expected master or worker",
                quoted(&self.role)
            );
            ("role".to_owned(), reason)
        })?;
        require(
            self.host_name.len() <= HOST_NAME_MAX && is_host_name(&self.host_name),
            || {
                let reason = format!("{} is no name of a host", quoted(&self.host_name));
                ("host_name".to_owned(), reason)
            },
        )?;
        let is_hash = |hash: &String| hash.starts_with(['$', '!', '*']) && is_one_line(hash);
        require(self.password_hash.as_ref().is_none_or(is_hash), || {
            let reason = "not a crypt hash, which starts with $ (see mkpasswd)".to_owned();
            ("password_hash".to_owned(), reason)
        })?;
        for (index, key) in self.ssh_keys.iter().enumerate() {
            require(is_one_line(key) && key.trim().contains(' '), || {
                let reason = "not a public key, as in `ssh-ed25519 AAAA…`".to_owned();
                (format!("ssh_keys[{index}]"), reason)
            })?;
        }
        for (index, pem) in self.certificate_authorities.iter().enumerate() {
            let is_certificate = pem.contains("-----BEGIN CERTIFICATE-----");
            require(is_certificate && !pem.contains("PRIVATE KEY"), || {
                let reason = "not a certificate in PEM".to_owned();
                (format!("certificate_authorities[{index}]"), reason)
            })?;
        }
        for (index, ConnectionFile { interface, .. }) in self.connections.iter().enumerate() {
            require(is_interface(interface), || {
                let reason = format!("{} is no name of an interface", quoted(interface));
                (format!("connections[{index}].interface"), reason)
            })?;
        }
        Ok(())
    }
}

fn require(holds: bool, problem: impl FnOnce() -> (String, String)) -> Result<(), Error> {
    if holds {
        return Ok(());
    }
    let (at, reason) = problem();
    Err(Error::Invalid { at, reason })
}

fn is_one_line(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

/// Letters, digits and hyphens, no hyphen at an end.
fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_host_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

/// Source: Linux, `dev_valid_name`.
fn is_interface(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && !b"/:".contains(&byte);
    (1..=INTERFACE_MAX).contains(&text.len())
        && text.bytes().all(is_allowed)
        && ![".", ".."].contains(&text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const PEM: &str = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";

    fn node() -> NodeConfig {
        NodeConfig {
            version: SpecVersion::V3_2,
            server: "api-int.demo.lab".to_owned(),
            role: "master".to_owned(),
            certificate_authorities: vec![PEM.to_owned()],
            password_hash: Some("$6$salt$hash".to_owned()),
            ssh_keys: vec!["ssh-ed25519 AAAA me".to_owned()],
            host_name: "master-1.demo.lab".to_owned(),
            connections: vec![ConnectionFile {
                interface: "eno1".to_owned(),
                keyfile: "[connection]\nid=eno1\n".to_owned(),
            }],
        }
    }

    #[test]
    fn the_specification_is_followed() {
        let config: Value = serde_json::from_slice(&node().render().unwrap().to_json()).unwrap();
        let expected = json!({
            "ignition": {
                "version": "3.2.0",
                "config": {"merge": [{"source": "https://api-int.demo.lab:22623/config/master", "compression": ""}]},
                "security": {"tls": {"certificateAuthorities": [{
                    "source": crate::data_url::base64(PEM.as_bytes()), "compression": "",
                }]}},
            },
            "passwd": {"users": [{
                "name": "core", "passwordHash": "$6$salt$hash", "sshAuthorizedKeys": ["ssh-ed25519 AAAA me"],
            }]},
            "storage": {"files": [
                {"path": "/etc/hostname", "overwrite": true, "user": {"name": "root"}, "mode": 420,
                 "contents": {"source": "data:,master-1.demo.lab", "compression": ""}},
                {"path": "/etc/NetworkManager/system-connections/eno1.nmconnection", "overwrite": true,
                 "user": {"name": "root"}, "mode": 384,
                 "contents": {"source": "data:,%5Bconnection%5D%0Aid%3Deno1%0A", "compression": ""}},
            ]},
        });
        assert_eq!(config, expected);
        let ipv6 = NodeConfig {
            version: SpecVersion::V3_3,
            server: "fd00::5".to_owned(),
            password_hash: None,
            ..node()
        };
        let config = ipv6.render().unwrap();
        let source = config.ignition.config.merge[0].source.as_deref();
        assert_eq!(source, Some("https://[fd00::5]:22623/config/master"));
        assert_eq!(config.passwd.users[0].password_hash.as_deref(), Some("!"));
        assert_eq!(config.ignition.version, SpecVersion::V3_3);
    }

    #[test]
    fn wrong_values_are_refused_with_their_field() {
        let change = |change: fn(&mut NodeConfig)| {
            let mut node = node();
            change(&mut node);
            node.render().unwrap_err().to_string()
        };
        for (problem, field) in [
            (change(|node| node.server = "a b".to_owned()), "server: "),
            (
                change(|node| node.server = "https://h".to_owned()),
                "server: ",
            ),
            (change(|node| node.role = "../x".to_owned()), "role: "),
            (
                change(|node| node.host_name = "-a".to_owned()),
                "host_name: ",
            ),
            (
                change(|node| node.host_name = "a".repeat(65)),
                "host_name: ",
            ),
            (
                change(|node| node.password_hash = Some("hunter2".to_owned())),
                "password_hash: ",
            ),
            (
                change(|node| node.ssh_keys[0] = "a\nb c".to_owned()),
                "ssh_keys[0]: ",
            ),
            (
                change(|node| {
                    node.certificate_authorities[0].push_str("-----BEGIN PRIVATE KEY-----");
                }),
                "certificate_authorities[0]: ",
            ),
            (
                change(|node| node.connections[0].interface = "../../passwd".to_owned()),
                "connections[0].interface: ",
            ),
            (
                change(|node| node.connections.push(node.connections[0].clone())),
                "storage.files[2]: ",
            ),
        ] {
            assert!(problem.starts_with(field), "{problem}");
            assert!(!problem.contains("hunter2"));
        }
    }

    #[test]
    fn secrets_stay_out_of_debug_output() {
        let shown = format!("{:?}", node());
        assert!(
            !shown.contains("salt") && !shown.contains("AAAA"),
            "{shown}"
        );
    }
}
