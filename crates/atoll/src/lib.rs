//! The one binary: `atoll serve` runs one service, `atoll up` all of them with a private Postgres, `atoll pod` prepares
//! them as containers; `atoll certs` makes the certificates of a site; `atoll registry` manages users and certificates,
//! `atoll catalog` operator catalogs, `atoll host` records of hosts; `atoll backup` and `atoll restore` an installation; `atoll mirror` mirrors images to
//! disconnected registries; `atoll rehearse` plays installations with simulated hosts.
//!
//! No logic of the services is here, and none of them knows that it is supervised. The one invariant: children of
//! `atoll up` do not outlive it, except a database that shuts down by itself or at the next start.

mod backup;
mod bundle;
mod butane;
mod catalog;
mod certificate;
mod certs;
mod cli;
mod cluster_args;
mod doctor;
mod env_file;
mod failure;
mod file;
mod host;
mod host_name;
mod ignition;
mod image;
mod install;
mod key_file;
mod log_in;
mod mirror;
mod node;
mod output_format;
mod pod;
mod pod_command;
mod podman;
mod registry;
mod rehearse;
mod runtime;
mod secrets;
mod serve;
mod shell;
mod status;
mod terminal;
mod token;
pub mod up;
mod verbs;
mod versions;
mod web_address;

pub use cli::main;
