//! Events of the running services.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use service::Error;

use crate::service_name::ServiceName;
use crate::up_state::UpState;

/// Receives each event, on any thread.
pub type SupervisorObserver = Arc<dyn Fn(SupervisorEvent<'_>) + Send + Sync>;

/// Something that happened.
pub enum SupervisorEvent<'a> {
    /// The database of a killed run was stopped.
    StaleDatabaseStopped,
    /// The data directory can be used.
    DataPrepared {
        is_new: bool,
        root: &'a Path,
        /// Major version of Postgres.
        postgres: u32,
        /// Its user, where it has one of its own.
        user: Option<&'a str>,
    },
    /// All services are ready.
    Ready(ReadyReport<'a>),
    /// Variables of the user changed: the services that read them are restarted.
    VariablesChanged,
    /// A stop file of a service came, or went.
    StopFile {
        service: ServiceName,
        path: PathBuf,
        exists: bool,
    },
    /// A child could not be started; it is tried again.
    NotStarted { name: &'a str, error: &'a Error },
    /// A child exited by itself, and is restarted.
    Exited {
        name: &'a str,
        how: &'a str,
        /// Path of its log.
        log: &'a str,
    },
    /// A child did not stop in time.
    Killed { name: &'a str },
    /// A warning or an error of a child.
    Reported { name: &'a str, text: &'a str },
    /// The state file could not be written.
    StateNotWritten(&'a Error),
    /// In-flight requests are drained.
    Stopping,
    /// No service runs any more.
    Stopped,
}

/// The services that are ready. Not `Debug`: the link is a secret.
pub struct ReadyReport<'a> {
    /// Since the start of the database.
    pub after: Duration,
    pub state: &'a UpState,
    /// Folder of the logs.
    pub logs: PathBuf,
    /// The rights of the users, in words.
    pub access: &'static str,
    /// Logs a browser of another machine in, once.
    pub log_in_link: Option<String>,
}
