//! The mirroring tool against our own registry, over real HTTP.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where it fails, also in the functions beside the tests"
)]

mod attached;
mod breaches;
mod campaign;
mod charts;
mod content;
mod deletion;
mod faults;
mod faulty;
mod forms;
mod going_on;
mod graph;
mod habits;
mod history;
mod inside;
mod layouts;
mod mirrors;
mod older;
mod oracle;
mod platform;
mod presence;
mod pruning;
mod releases;
mod runs;
mod selection;
mod server;
mod sets;
mod signatures;
mod site;
mod templates;
mod unknown;
