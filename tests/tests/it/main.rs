//! The whole system as it runs at users: everything is started, killed, stopped and asked from outside.

mod faults;
mod mirroring;
mod registry_clients;
mod registry_folder;
mod settings;
mod shutdown;
mod start;
