//! Errors of lookups.

use std::fmt;
use std::net::SocketAddr;

use super::resolv_conf::PORT;

/// An error of a lookup, with the host as the caller wrote it, in lower case.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The text is no host name.
    #[error("{host:?} is no host name: {reason}")]
    Invalid {
        /// The text.
        host: String,
        /// The defect.
        reason: String,
    },
    /// No name server is configured.
    #[error(
        "the host {host} cannot be looked up: {resolv_conf} names no server or cannot be read, and {hosts} does not list \
         it"
    )]
    NoServers {
        /// The host.
        host: String,
        /// The file of the name servers.
        resolv_conf: String,
        /// The file of known hosts.
        hosts: String,
    },
    /// The servers report that the host does not exist.
    #[error("the host {host} is not known: {}", Spoken(.statements))]
    Unknown {
        /// The host.
        host: String,
        /// The replies of the servers.
        statements: Vec<Statement>,
    },
    /// No server answered usably.
    #[error("the host {host} cannot be looked up now: {}", Spoken(.statements))]
    NoAnswer {
        /// The host.
        host: String,
        /// The replies of the servers.
        statements: Vec<Statement>,
    },
}

/// A server's reply about a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The server.
    pub server: SocketAddr,
    /// The queried name: the host, perhaps with a search domain.
    pub name: String,
    /// The reply, in words that follow "the server".
    pub text: String,
}

impl Error {
    /// Whether the servers agree that the host does not exist, so that a retry is of no use.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }

    /// A short text without addresses and paths.
    pub fn brief(&self) -> String {
        match self {
            Self::Invalid { host, .. } => format!("{host:?} is no host name"),
            Self::NoServers { host, .. } => {
                format!("the name {host} cannot be looked up: no name server is set")
            }
            Self::Unknown { host, .. } => format!("the name {host} is not known"),
            Self::NoAnswer { host, .. } => {
                format!("the name {host} cannot be looked up: no name server answers usably")
            }
        }
    }
}

struct Spoken<'a>(&'a [Statement]);

impl fmt::Display for Spoken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, Statement { server, name, text }) in self.0.iter().enumerate() {
            f.write_str(if nth == 0 { "" } else { "; " })?;
            if server.port() == PORT {
                write!(f, "{}", server.ip())?;
            } else {
                write!(f, "{server}")?;
            }
            write!(f, " {text} ({name})")?;
        }
        Ok(())
    }
}
