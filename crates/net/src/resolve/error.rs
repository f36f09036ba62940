//! Why a host has no address.

use std::fmt;
use std::net::SocketAddr;

use super::conf::PORT;

/// Why a host has no address. The host stands as the caller wrote it, in lower case.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Nothing that could be looked up.
    #[error("{host:?} is no host name: {reason}")]
    Invalid {
        /// As the caller wrote it.
        host: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is nobody to ask.
    #[error(
        "the host {host} cannot be looked up: {resolv_conf} names no server or cannot be read, and {hosts} does not list \
         it"
    )]
    NoServers {
        /// Who is looked for.
        host: String,
        /// The file that should name servers.
        resolv_conf: String,
        /// The file that could list the host.
        hosts: String,
    },
    /// The servers say that it does not exist.
    #[error("the host {host} is not known: {}", Spoken(.said))]
    Unknown {
        /// Who is looked for.
        host: String,
        /// Who was asked, and the answers.
        said: Vec<Statement>,
    },
    /// No server could be asked.
    #[error("the host {host} cannot be looked up now: {}", Spoken(.said))]
    NoAnswer {
        /// Who is looked for.
        host: String,
        /// Who was asked, and the answers.
        said: Vec<Statement>,
    },
}

/// What one server said on one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The server.
    pub server: SocketAddr,
    /// What it was asked for: the host, maybe with a search domain.
    pub name: String,
    /// Its answer, in words that follow on "the server".
    pub text: String,
}

impl Error {
    /// Whether the servers agree that there is no such host: asking again at once is of no use.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }

    /// The same in few words, without addresses and paths.
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
