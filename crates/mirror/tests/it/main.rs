//! The mirroring tool against our own registry, over real HTTP.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where it fails, also in the functions beside the tests"
)]

mod attached;
mod boot_images;
mod campaign;
mod charts;
mod content;
mod continue_on_error;
mod deletion;
mod faults;
mod faulty;
mod forms;
mod graph;
mod history;
mod layouts;
mod mirrors;
mod older;
mod oracle;
mod platform;
mod pruning;
mod releases;
mod rule_violations;
mod runs;
mod selection;
mod server;
mod sets;
mod signatures;
mod site;
mod strict_targets;
mod target_view;
mod templates;
mod unknown;
mod v2_archives;
mod v2_written;
mod verify_target;
mod web_archives;
mod web_server;
