//! A node that joins a cluster, by the arguments of commands and the records of the cluster.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use host_records::NameForm;
use host_records::network::{self, MAX_NETWORK, NetworkFile, NodeNetwork};
use ignition::node::ConnectionFile;
use ignition::{NodeConfig, SpecVersion};
use kubernetes::NodeConfigSource;
use service::Error;
use service::runtime;

use super::input;
use crate::cluster_args::ClusterArgs;
use crate::terminal;

/// Names of nodes, which are names of hosts, too: Linux takes 64 characters.
const NODE_NAME: NameForm = NameForm {
    longest: 64,
    is_dotted: true,
};
/// Extension of keyfiles.
const KEYFILE: &str = ".nmconnection";

/// A node that joins a cluster.
#[derive(Debug, Clone, Args)]
pub(super) struct JoiningNodeArgs {
    /// Name of the node
    #[arg(value_parser = node_name)]
    name: String,
    /// Role of the node
    #[arg(long, default_value = "master", value_parser = ["master", "worker"])]
    role: String,
    /// Network of the node: interfaces with their addresses, nmstate, or Butane with keyfiles. Default: DHCP
    #[arg(long, value_name = "FILE")]
    network: Option<PathBuf>,
    /// Public keys that log in as core, besides those of the cluster. Repeatable
    #[arg(long = "ssh-key", value_name = "FILE")]
    ssh_keys: Vec<PathBuf>,
    /// File with the crypt hash of the password of core (see mkpasswd). Default: no password
    #[arg(long, value_name = "FILE")]
    password_hash: Option<PathBuf>,
    /// Name or address of the machine-config server; by default that of the cluster's records, which are then not read
    #[arg(long, value_name = "HOST", requires = "config_ca")]
    config_server: Option<String>,
    /// CA certificates of that server (PEM)
    #[arg(
        long = "ca",
        alias = "config-ca",
        value_name = "FILE",
        requires = "config_server"
    )]
    config_ca: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

fn node_name(text: &str) -> Result<String, String> {
    let checked = NODE_NAME.check(text);
    checked.map_err(|reason| format!("no name of a node: it {reason}"))?;
    Ok(text.to_owned())
}

impl JoiningNodeArgs {
    /// Name of the node.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The configuration, which is not yet validated. Mistakes of the network file are printed.
    ///
    /// Errors: a file cannot be read or has mistakes; the cluster cannot be read, or lacks the records of a
    /// machine-config server.
    pub(super) fn read(&self) -> Result<NodeConfig, Error> {
        // Files first: their mistakes show without a cluster.
        let connections = self.connections()?;
        let mut ssh_keys = Vec::new();
        for path in &self.ssh_keys {
            ssh_keys.extend(public_keys(path)?);
        }
        let hash = self.password_hash.as_deref().map(input::text).transpose()?;
        let source = self.source()?;
        ssh_keys.splice(0..0, source.ssh_keys);
        let mut seen = BTreeSet::new();
        ssh_keys.retain(|key| seen.insert(key.clone()));
        Ok(NodeConfig {
            version: SpecVersion::V3_2,
            server: source.server,
            role: self.role.clone(),
            certificate_authorities: source.authorities,
            password_hash: hash.map(|hash| hash.trim().to_owned()),
            ssh_keys,
            host_name: self.name.clone(),
            connections,
        })
    }

    fn source(&self) -> Result<NodeConfigSource, Error> {
        if let (Some(server), Some(ca)) = (&self.config_server, &self.config_ca) {
            return Ok(NodeConfigSource {
                server: server.clone(),
                authorities: vec![input::text(ca)?],
                ssh_keys: Vec::new(),
            });
        }
        runtime::block_on(async {
            let cluster = self.cluster.connect().await?;
            let source = cluster.node_config_source(&self.role).await;
            source.map_err(|error| {
                let doing = format!("looking for the machine-config server of {}", cluster.url());
                let reason = match error {
                    model::Error::Conflict { .. } => {
                        format!("{error}; name it by --config-server and --config-ca")
                    }
                    error => error.to_string(),
                };
                Error::new(doing, reason)
            })
        })?
    }

    fn connections(&self) -> Result<Vec<ConnectionFile>, Error> {
        let Some(path) = &self.network else {
            return Ok(Vec::new());
        };
        let content = input::bytes(path, MAX_NETWORK)?;
        let doing = || format!("reading the network of {}", self.name);
        let name = path.display().to_string();
        let NodeNetwork { hostname, keyfiles } =
            network::read(&name, &content).map_err(|report| {
                for finding in &report.findings {
                    terminal::line(&finding.to_string());
                }
                let reason = match report.errors() {
                    1 => format!("{name} has a mistake"),
                    count => format!("{name} has {count} mistakes"),
                };
                Error::new(doing(), reason)
            })?;
        // Two nodes with one address are worse than none.
        if let Some(other) = hostname.filter(|hostname| *hostname != self.name) {
            let reason = format!(
                "{name} is that of host {other}: name the file of {}, or correct its hostname",
                self.name
            );
            return Err(Error::new(doing(), reason));
        }
        Ok(keyfiles.into_iter().map(connection).collect())
    }
}

fn connection(file: NetworkFile) -> ConnectionFile {
    let interface = file.name.strip_suffix(KEYFILE).unwrap_or(&file.name);
    ConnectionFile {
        interface: interface.to_owned(),
        keyfile: file.content,
    }
}

/// The keys of a file as `id_ed25519.pub` or `authorized_keys`.
fn public_keys(path: &Path) -> Result<Vec<String>, Error> {
    let failed = |reason: &str| Error::new(format!("reading {}", path.display()), reason);
    let text = input::text(path)?;
    if text.contains("PRIVATE KEY") {
        return Err(failed(
            "it is a private key: name the file of the public one, as id_ed25519.pub",
        ));
    }
    let lines = text.lines().map(str::trim);
    let keys: Vec<_> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    if keys.is_empty() {
        return Err(failed("it has no key"));
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_nodes() {
        assert_eq!(node_name("cp-0.demo.lab").as_deref(), Ok("cp-0.demo.lab"));
        // limit: NODE_NAME
        let long = |count: usize| format!("{}.b", "a".repeat(count));
        assert!(node_name(&long(62)).is_ok() && node_name(&long(63)).is_err());
        for wrong in ["", "CP-0", "-a", "a_b", "a..b", "a b", "../a"] {
            assert!(node_name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn key_files_have_public_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let keys = |text: &str| {
            std::fs::write(&path, text).unwrap();
            public_keys(&path).map_err(|error| error.to_string())
        };
        assert_eq!(
            keys("# mine\nssh-ed25519 AAAA a\n\n ssh-rsa BBBB b \n").unwrap(),
            ["ssh-ed25519 AAAA a", "ssh-rsa BBBB b"]
        );
        let private = keys("-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n").unwrap_err();
        assert!(private.contains("it is a private key") && !private.contains("c2VjcmV0"));
        assert!(keys("# none\n").unwrap_err().contains("it has no key"));
    }
}
