//! Database errors, and their mapping to domain errors.

use model::Error as Domain;

use sealing::SealError;

/// A failure inside a transaction: of the database, or a refusal by a decision.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// An error of the database or its driver.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// A refusal by a decision.
    #[error(transparent)]
    Domain(#[from] Domain),
    /// A stored record does not parse.
    #[error("reading the stored {what}")]
    Record {
        /// Noun and id.
        what: String,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// A stored secret cannot be opened or sealed.
    #[error(transparent)]
    Secret(#[from] SealError),
    /// The host was bound or unbound between lookup and lock: retry.
    #[error("concurrent change of the host's cluster")]
    Moved,
}

/// Serialization failure, deadlock.
const RETRYABLE: [&str; 2] = ["40001", "40P01"];
/// NUL inside a text or a JSON document.
const NUL_IN_TEXT: [&str; 2] = ["22021", "22P05"];
/// Classes of states that pass: lost connections, no disk, memory or connection left, the server starts, stops or
/// cancels a statement, its files cannot be read or written.
const UNAVAILABLE_CLASSES: [&str; 4] = ["08", "53", "57", "58"];
/// The server is read-only; it ended an idle transaction.
const UNAVAILABLE: [&str; 2] = ["25006", "25P03"];

impl Error {
    /// Whether a retry of the transaction may succeed.
    pub(crate) fn is_retryable(&self) -> bool {
        match self {
            Self::Moved => true,
            Self::Database(sqlx::Error::Database(error)) => error
                .code()
                .is_some_and(|code| RETRYABLE.contains(&code.as_ref())),
            _ => false,
        }
    }

    /// The error for the caller of `doing`.
    pub(crate) fn into_domain(self, doing: &str) -> Domain {
        match self {
            Self::Domain(error) => error,
            Self::Database(error) => from_sqlx(error, doing),
            error @ (Self::Record { .. } | Self::Secret(_)) => Domain::internal(doing, error),
            Self::Moved => {
                Domain::conflict("another request is changing the host or cluster, retry")
            }
        }
    }
}

fn from_sqlx(error: sqlx::Error, doing: &str) -> Domain {
    match &error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => Domain::unavailable("the database", error),
        sqlx::Error::Database(answer) => {
            let code = answer.code().unwrap_or_default().into_owned();
            let class = code.get(..2).unwrap_or_default();
            if UNAVAILABLE.contains(&code.as_str()) || UNAVAILABLE_CLASSES.contains(&class) {
                return Domain::unavailable("the database", error);
            }
            if NUL_IN_TEXT.contains(&code.as_str()) {
                return Domain::invalid("body", "texts must not contain the character NUL");
            }
            match answer.constraint() {
                Some(name) => {
                    from_constraint(name).unwrap_or_else(|| Domain::internal(doing, error))
                }
                None => Domain::internal(doing, error),
            }
        }
        _ => Domain::internal(doing, error),
    }
}

/// Maps a violated constraint, by name.
fn from_constraint(name: &str) -> Option<Domain> {
    let error = match name {
        "infra_envs_cluster_id_fkey" | "hosts_cluster_id_fkey" | "events_cluster_id_fkey" => {
            Domain::not_found("cluster", "of this request")
        }
        "bmc_boots_infra_env_id_fkey" => Domain::not_found("infra-env", "of this request"),
        "bmc_boots_once_at_a_time" | "bmc_boots_pkey" => Domain::conflict(
            "another request boots a host of this one already: wait for its end, or cancel it",
        ),
        "hosts_infra_env_id_fkey" => Domain::conflict(
            "the infra-env still has hosts, or was deleted meanwhile: delete its hosts first",
        ),
        "host_check_ins_host_fkey" => Domain::not_found("host", "of this request"),
        "clusters_pkey" => Domain::conflict("a cluster with this id exists already"),
        "infra_envs_pkey" => Domain::conflict("an infra-env with this id exists already"),
        "hosts_pkey" => Domain::conflict("this host is registered already"),
        "hosts_once_in_a_cluster" => Domain::conflict(
            "a host with this id is in the cluster already, through another infra-env",
        ),
        _ => return None,
    };
    Some(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_connections_are_unavailable() {
        for error in [
            sqlx::Error::PoolTimedOut,
            sqlx::Error::PoolClosed,
            sqlx::Error::Io(std::io::ErrorKind::ConnectionRefused.into()),
        ] {
            let error = Error::from(error).into_domain("reading");
            assert!(matches!(error, Domain::Unavailable { .. }), "{error:?}");
        }
    }

    #[test]
    fn error_text_contains_no_address() {
        let cause = std::io::Error::other("10.0.0.7:5432 refused user atoll");
        let error = Error::from(sqlx::Error::Io(cause)).into_domain("reading");
        assert_eq!(
            error.to_string(),
            "the database is not available now, try again"
        );
    }

    #[test]
    fn concurrent_moves_are_retried() {
        assert!(Error::Moved.is_retryable());
        assert!(!Error::from(Domain::conflict("no")).is_retryable());
    }
}
