//! The proxy in front of real servers that come, go, freeze and die.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod balance;
mod concurrency;
mod faults;
mod files;
mod files_load;
mod raw;
mod site;
mod site_access_log;
mod site_certificates;
mod site_faults;
mod site_load;
mod site_process;
mod site_reload;
mod site_world;
mod slow_clients;
mod status;
mod status_page;
mod streams;
mod wire;
mod world;
