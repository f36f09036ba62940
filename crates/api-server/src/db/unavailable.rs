//! Reasons why the database is unavailable, with remedies for the operator.

use sqlx::migrate::MigrateError;

/// Reason why the database is unavailable. The text is for the log, and contains no secrets.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseUnavailable {
    /// Its host name does not resolve.
    #[error(transparent)]
    Unknown(#[from] net::resolve::Error),
    /// Connection refused or lost.
    #[error(transparent)]
    Connection(#[from] sqlx::Error),
    /// Timeout. Units: seconds.
    #[error("no answer within {0} s")]
    Silent(u64),
    /// A newer version of this program has migrated it.
    #[error("its schema has migration {found}, this program's newest is {newest}")]
    Newer {
        /// Newest migration of the database.
        found: i64,
        /// Newest migration of this program.
        newest: i64,
    },
    /// Its schema belongs to another program.
    #[error("its schema belongs to another program: {0}")]
    Foreign(String),
    /// Its secrets are sealed with a key that is not in the key file, or there is no key file.
    #[error("its secrets are sealed with the key {0}")]
    Sealed(String),
    /// A migration failed.
    #[error(transparent)]
    Schema(#[from] MigrateError),
}

/// Wrong user or password.
const PASSWORD: &str = "28P01";
/// Unknown user, or not permitted from this address.
const USER: &str = "28000";
/// No such database.
const NAME: &str = "3D000";
/// Insufficient privilege.
const PERMISSION: &str = "42501";
/// Too many connections.
const FULL: &str = "53300";
/// No space on its disk.
const DISK_FULL: &str = "53100";
/// No writes: a standby, or a read-only setting.
const READ_ONLY: &str = "25006";
/// The server starts or stops.
const CHANGING: [&str; 3] = ["57P01", "57P02", "57P03"];
/// Remedy for a newer schema: migrations are not reversible.
const NEWER: &str = "its schema is newer than this program: start the newer version, or restore the backup from before the upgrade";
const FOREIGN: &str = "its schema belongs to another program, or to an unreleased version: set another database (DB_NAME), or restore a backup";
/// Reason for a failed migration without a known code.
const OUTDATED: &str =
    "its schema cannot be migrated: see the log, and restore a backup if the cause persists";

impl DatabaseUnavailable {
    /// Reason and remedy for `/ready`, without addresses.
    pub(crate) fn reason(&self) -> String {
        let fixed = match self {
            Self::Unknown(error) => return format!("not found: {} (DB_HOST)", error.brief()),
            Self::Silent(_) => "does not answer",
            Self::Newer { .. } => NEWER,
            Self::Foreign(_) => FOREIGN,
            Self::Sealed(id) => {
                return format!(
                    "its secrets are sealed with the key {id}, which is missing: set SECRETS_KEY_FILE to the file \
                     with that key"
                );
            }
            Self::Connection(error)
            | Self::Schema(
                MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _),
            ) => match self.code().as_deref() {
                None => connection(error),
                Some(PASSWORD) => "refuses the password (DB_USER, DB_PASS)",
                Some(USER) => "refuses the user (DB_USER)",
                Some(NAME) => "has no database of that name (DB_NAME)",
                Some(PERMISSION) => "does not permit the user to use it (DB_USER, DB_NAME)",
                Some(FULL) => "has no connection left",
                Some(DISK_FULL) => "has no space left on its disk",
                Some(READ_ONLY) => "is read-only",
                Some(code) if CHANGING.contains(&code) => "is starting or stopping",
                Some(_) if matches!(self, Self::Schema(_)) => OUTDATED,
                Some(_) => "refuses connections, see the log",
            },
            Self::Schema(_) => OUTDATED,
        };
        fixed.to_owned()
    }

    /// The action that helps. `password` is the place of the password.
    pub(super) fn remedy(&self, password: &str) -> String {
        let fixed = match self {
            Self::Unknown(_) => "correct DB_HOST, or add its name to the name server",
            Self::Newer { .. } => {
                "start the newer version, or restore the backup from before the upgrade"
            }
            Self::Foreign(_) => "set another database (DB_NAME), or restore a backup",
            Self::Sealed(_) => "set SECRETS_KEY_FILE to the file with that key",
            Self::Connection(error) if tls(error).is_some() => "correct DB_SSLMODE and DB_CA_FILE",
            _ => match self.code().as_deref() {
                Some(PASSWORD) => {
                    return format!(
                        "correct DB_USER and {password}; a database keeps the password of its first start until `alter \
                         role` changes it"
                    );
                }
                Some(USER) => "correct DB_USER, or permit it in pg_hba.conf",
                Some(NAME) => "create the database, or correct DB_NAME",
                Some(PERMISSION) => "make the user the owner of the database: `alter database`",
                Some(FULL) => "raise max_connections, or lower DB_MAX_OPEN_CONNECTIONS",
                Some(DISK_FULL) => "free space on the disk of the database, or enlarge it",
                Some(READ_ONLY) => {
                    "set DB_HOST to the primary, and default_transaction_read_only to off"
                }
                Some(code) if CHANGING.contains(&code) => "wait until the database has started",
                Some(_) => "see the log of the database",
                None => "start the database, and check DB_HOST and DB_PORT",
            },
        };
        fixed.to_owned()
    }

    /// Whether the database refused: permanent until the configuration changes.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Newer { .. } | Self::Foreign(_) | Self::Sealed(_) => return true,
            Self::Connection(error) if tls(error).is_some() => return true,
            _ => {}
        }
        let code = self.code();
        code.is_some_and(|code| [PASSWORD, USER, NAME, PERMISSION].contains(&code.as_str()))
    }

    fn code(&self) -> Option<String> {
        let (Self::Connection(error)
        | Self::Schema(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _))) =
            self
        else {
            return None;
        };
        let code = error.as_database_error()?.code()?;
        Some(code.into_owned())
    }
}

/// Reason for a transport error.
fn connection(error: &sqlx::Error) -> &'static str {
    if let Some(text) = tls(error) {
        return text;
    }
    match error {
        sqlx::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            "does not accept connections (DB_HOST, DB_PORT)"
        }
        sqlx::Error::Io(_) => "not reached (DB_HOST, DB_PORT)",
        sqlx::Error::Protocol(_) => "does not speak the PostgreSQL protocol (DB_HOST, DB_PORT)",
        _ => "not reached, see the log",
    }
}

/// Reason for a TLS error; none for other errors.
fn tls(error: &sqlx::Error) -> Option<&'static str> {
    use rustls::{CertificateError, Error as Tls};
    let error = match error {
        sqlx::Error::Tls(error) if error.is::<Tls>() => error.downcast_ref::<Tls>()?,
        // The driver's text when the server declines TLS: no handshake took place.
        sqlx::Error::Tls(error) if error.to_string().contains("does not support TLS") => {
            return Some("does not offer TLS, which is required (DB_SSLMODE)");
        }
        sqlx::Error::Tls(_) => return Some("its TLS cannot be used, see the log (DB_CA_FILE)"),
        sqlx::Error::Io(error) => error.get_ref()?.downcast_ref::<Tls>()?,
        _ => return None,
    };
    Some(match error {
        Tls::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "its certificate is for other names (DB_HOST, DB_SSLMODE)",
        Tls::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "its certificate has expired (DB_SSLMODE)",
        Tls::InvalidCertificate(_) => {
            "its certificate is not signed by a trusted authority (DB_CA_FILE)"
        }
        _ => "its TLS cannot be used, see the log (DB_SSLMODE)",
    })
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::error::Error as StdError;

    use sqlx::error::{DatabaseError, ErrorKind};

    use super::*;

    /// An error response with this SQLSTATE.
    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Code(&'static str);

    impl DatabaseError for Code {
        fn message(&self) -> &str {
            self.0
        }

        fn code(&self) -> Option<Cow<'_, str>> {
            Some(self.0.into())
        }

        fn as_error(&self) -> &(dyn StdError + Send + Sync + 'static) {
            self
        }

        fn as_error_mut(&mut self) -> &mut (dyn StdError + Send + Sync + 'static) {
            self
        }

        fn into_error(self: Box<Self>) -> Box<dyn StdError + Send + Sync + 'static> {
            self
        }

        fn kind(&self) -> ErrorKind {
            ErrorKind::Other
        }
    }

    #[test]
    fn reasons_of_failures_are_reported_with_remedies() {
        let answers = [
            ("57P01", "is starting or stopping", false),
            ("53300", "has no connection left", false),
            ("53100", "has no space left on its disk", false),
            ("25006", "is read-only", false),
            (
                "42501",
                "does not permit the user to use it (DB_USER, DB_NAME)",
                true,
            ),
            ("42P07", OUTDATED, false),
        ];
        for (code, reason, is_refusal) in answers {
            let error = || sqlx::Error::from(Code(code));
            for schema in [
                MigrateError::Execute(error()),
                MigrateError::ExecuteMigration(error(), 1),
            ] {
                let unavailable = DatabaseUnavailable::from(schema);
                assert_eq!(
                    (unavailable.reason().as_str(), unavailable.is_refusal()),
                    (reason, is_refusal)
                );
            }
        }
        for (code, expected) in [
            ("28P01", "correct DB_USER and PASSWORD FILE"),
            ("28000", "pg_hba.conf"),
            ("3D000", "DB_NAME"),
            ("42501", "owner"),
            ("53300", "max_connections"),
            ("53100", "free space"),
            ("25006", "primary"),
            ("57P03", "wait"),
        ] {
            let unavailable = DatabaseUnavailable::from(sqlx::Error::from(Code(code)));
            let remedy = unavailable.remedy("PASSWORD FILE");
            assert!(remedy.contains(expected), "{code}: {remedy}");
        }
        let lost = MigrateError::Execute(sqlx::Error::Io(std::io::ErrorKind::BrokenPipe.into()));
        assert_eq!(
            DatabaseUnavailable::from(lost).reason(),
            "not reached (DB_HOST, DB_PORT)"
        );
        let changed = DatabaseUnavailable::from(MigrateError::VersionMismatch(1));
        assert_eq!(changed.reason(), OUTDATED);
    }
}
