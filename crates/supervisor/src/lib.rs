//! The supervisor: all services and their Postgres as child processes, on one data directory.
//!
//! As root, each service is a system user of its own. The supervisor holds a pipe to each service, so that services shut
//! down when it dies in any way. It never reads requests or data, and prints nothing: it reports each [`SupervisorEvent`]. The one
//! invariant: children do not outlive it, except a database that shuts down by itself or at the next start.

pub mod account;
mod child;
mod child_output;
mod control;
mod data_directory;
mod environment;
mod event;
mod log_file;
mod ports;
mod postgres;
pub mod ready;
mod rehearsal_server;
mod run;
mod service_name;
mod service_users;
pub mod settings;
mod state_file;
mod temporary_folder;
mod up_state;

pub use data_directory::{DataDirectory, Lock};
pub use environment::{DB_NAME, DB_USER};
pub use event::{ReadyReport, SupervisorEvent, SupervisorObserver};
pub use ports::temporary_port;
pub use postgres::Cluster;
pub use rehearsal_server::RehearsalServer;
pub use run::{UpOptions, run};
pub use service_name::ServiceName;
pub use up_state::UpState;
