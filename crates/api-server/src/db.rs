//! Every SQL statement, by noun. No decisions: functions take a connection, so that they compose into one transaction,
//! and return rows.

pub(crate) mod access;
pub(crate) mod added_images;
pub(crate) mod audit;
pub(crate) mod bmc_boots;
pub(crate) mod changes;
pub(crate) mod check_ins;
pub(crate) mod clusters;
mod connection;
mod error;
pub(crate) mod events;
pub(crate) mod expected_hosts;
pub(crate) mod hosts;
pub(crate) mod infra_envs;
pub(crate) mod jobs;
mod location;
pub(crate) mod locks;
pub(crate) mod log_in_codes;
pub(crate) mod owners;
mod record;
mod record_page;
pub(crate) mod registry_content;
pub(crate) mod schema;
pub(crate) mod sealing;
pub(crate) mod secret_keys;
mod site_check;
mod unavailable;
mod version;

pub(crate) use check_ins::CheckIn;
pub(crate) use connection::{Database, EVENT_CHANNEL, PREPARATION_CHANNEL, tx};
pub(crate) use error::Error;
pub(crate) use events::{EventCounts, EventFilter, EventLimits};
pub(crate) use infra_envs::InfraEnvRow;
pub(crate) use owners::{OwnedSecret, RecordCounts};
pub(crate) use record_page::{PAGE_BYTES, RecordPage};
pub use site_check::database_probe;
pub(crate) use unavailable::DatabaseUnavailable;
pub(crate) use version::RecordVersion;
