//! The one binary: `atoll serve` runs one service, `atoll up` all of them with a private Postgres, `atoll pod` prepares
//! them as containers; `atoll certs` makes the certificates of a site; `atoll registry` manages users and certificates,
//! `atoll catalog` operator catalogs, `atoll host` records of hosts; `atoll backup` and `atoll restore` an installation; `atoll mirror` mirrors images to
//! disconnected registries; `atoll rehearse` plays installations with simulated hosts.
//!
//! Only the command line is here: verbs, their texts and output. Libraries do the work.

mod backup;
mod bundle;
mod butane;
mod catalog;
mod certs;
mod cli;
mod cluster_args;
mod doctor;
mod failure;
mod host;
mod ignition;
mod image;
mod install;
mod key_file;
mod mirror;
mod node;
mod output_format;
mod pod;
mod registry;
mod rehearse;
mod serve;
mod shell;
mod site_texts;
mod status;
mod terminal;
mod token;
mod up;
mod verbs;
mod versions;
mod web_address;

pub use cli::main;
