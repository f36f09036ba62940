//! Why the database cannot be used, in words for whoever runs it.

use sqlx::migrate::MigrateError;

/// Why the database cannot be used. The text is for the log; secrets are not in it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Away {
    /// Nobody knows where it is.
    #[error(transparent)]
    Unknown(#[from] service::resolve::Error),
    /// It is not there, or refuses.
    #[error(transparent)]
    Connection(#[from] sqlx::Error),
    /// It is there, and says nothing.
    #[error("no answer within {0} s")]
    Silent(u64),
    /// It cannot be brought to the schema of this program.
    #[error(transparent)]
    Schema(#[from] MigrateError),
}

/// Wrong user or password.
const PASSWORD: &str = "28P01";
/// The user is not known, or may not come from here.
const USER: &str = "28000";
/// No such database.
const NAME: &str = "3D000";
/// The user may not use the database.
const PERMISSION: &str = "42501";
/// All connections are taken.
const FULL: &str = "53300";
/// It starts or stops.
const CHANGING: [&str; 3] = ["57P01", "57P02", "57P03"];

impl Away {
    /// For `/ready`: what to look at, without addresses.
    pub(crate) fn reason(&self) -> String {
        let fixed = match self {
            Self::Unknown(error) => return format!("not found: {} (DB_HOST)", error.brief()),
            Self::Silent(_) | Self::Connection(sqlx::Error::PoolTimedOut) => "does not answer",
            Self::Schema(MigrateError::VersionMissing(_)) => {
                "its schema is newer than this program"
            }
            Self::Schema(MigrateError::Execute(error)) if self.code().is_none() => {
                return connection(error).to_owned();
            }
            Self::Schema(_) if !self.is_refusal() => "its schema cannot be brought up to date",
            Self::Schema(_) | Self::Connection(sqlx::Error::Database(_)) => {
                match self.code().as_deref().unwrap_or_default() {
                    PASSWORD => "refuses the password (DB_USER, DB_PASS)",
                    USER => "refuses the user (DB_USER)",
                    NAME => "has no database of that name (DB_NAME)",
                    PERMISSION => "does not permit the user to use it (DB_USER, DB_NAME)",
                    FULL => "has no connection left",
                    code if CHANGING.contains(&code) => "is starting or stopping",
                    _ => "refuses connections, see the log",
                }
            }
            Self::Connection(error) => connection(error),
        };
        fixed.to_owned()
    }

    /// Whether it was reached and said no: that lasts until somebody changes something.
    pub(crate) fn is_refusal(&self) -> bool {
        let code = self.code();
        code.is_some_and(|code| [PASSWORD, USER, NAME, PERMISSION].contains(&code.as_str()))
    }

    fn code(&self) -> Option<String> {
        let (Self::Connection(error) | Self::Schema(MigrateError::Execute(error))) = self else {
            return None;
        };
        let code = error.as_database_error()?.code()?;
        Some(code.into_owned())
    }
}

/// No answer of the database itself.
fn connection(error: &sqlx::Error) -> &'static str {
    match error {
        sqlx::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            "does not accept connections (DB_HOST, DB_PORT)"
        }
        sqlx::Error::Io(_) => "not reached (DB_HOST, DB_PORT)",
        sqlx::Error::Tls(_) => "its TLS cannot be used, see the log",
        sqlx::Error::Protocol(_) => "does not speak as a database does (DB_HOST, DB_PORT)",
        _ => "not reached, see the log",
    }
}
