//! Shared parts of servers: settings, logs, metrics, health, TLS, listeners with graceful shutdown, forwarding, and
//! the command line.
//!
//! Nothing here knows about clusters. The one invariant: a server answers `/health` from the moment it listens,
//! and a stopped one has answered every request that it had accepted.

mod access_log;
#[cfg(target_env = "musl")]
mod allocator;
mod arguments;
pub mod clock;
pub mod conditional;
pub mod content;
mod deadline_timer;
pub mod env_file;
mod error;
pub mod file;
pub mod forward;
pub mod health;
#[cfg(feature = "http-client")]
mod http_client;
pub mod layers;
mod limit_table;
pub mod limits;
mod loaded_settings;
pub mod logs;
pub mod metrics;
pub mod observed_body;
mod open_files;
mod opening_timeout;
#[cfg(feature = "page")]
pub mod page;
mod privileges;
mod probe;
pub mod program;
pub mod range;
pub mod representation;
pub mod runtime;
pub mod sendfile;
pub mod server;
mod server_settings;
pub mod settings;
mod settings_source;
pub mod shared_body;
pub mod shutdown;
mod splice;
mod state_log;
pub mod tls;

pub use access_log::AccessLog;
pub use error::{Error, OperationName, ResultExt, status_code};
#[cfg(feature = "http-client")]
pub use http_client::{http_client, http_client_with_secrets};
pub use state_log::StateLog;
pub use tokio_util::sync::CancellationToken;
