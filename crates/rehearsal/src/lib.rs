#![doc = include_str!("../README.md")]

mod api;
mod error;
mod findings;
mod installation;
mod machines;
mod options;
mod play;
mod progress;
mod records;
mod redaction;
mod report;
mod request;
mod sample;
mod script;

pub use declarations::site::SiteFinding;
pub use host_sim::{FAULTS, HostFaultKind, InstallationProfile, PROFILES, Pace};

pub use api::InstallerApi;
pub use error::Error;
pub use installation::InstallationOutcome;
pub use options::PlayOptions;
pub use play::play;
pub use progress::{RehearsalEvent, RehearsalProgress, RehearsalState};
pub use redaction::redacted;
pub use report::RehearsalReport;
pub use request::{MAX_FAULTS, MAX_MACHINES, MAX_SITE_BYTES, RehearsalRequest};
pub use script::Script;
