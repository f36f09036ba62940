//! The whole system as users run it: started, killed, stopped and queried from outside.

mod emulated;
mod faults;
mod foreign_pages;
mod kubernetes;
mod live_images;
mod log_in;
mod mirroring;
mod nodes;
mod registry_clients;
mod registry_folder;
mod secrets;
mod settings;
mod shutdown;
mod simulated_bmcs;
mod start;
mod tokens;
