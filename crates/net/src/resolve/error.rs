//! Errors of lookups.

/// An error of a lookup, with the host in lower case.
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
    #[error("the host {host} is not known: {replies}")]
    Unknown {
        /// The host.
        host: String,
        /// The servers and their replies.
        replies: String,
    },
    /// No server answered usably.
    #[error("the host {host} cannot be looked up now: {replies}")]
    NoAnswer {
        /// The host.
        host: String,
        /// The servers and their replies.
        replies: String,
    },
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
