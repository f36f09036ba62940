//! The `atoll` program as a process, with a private Postgres where needed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod backup;
mod butane;
mod catalog;
mod catalog_render;
mod certs;
#[path = "../../../mirror/tests/it/content.rs"]
mod content;
mod doctor;
#[expect(dead_code, reason = "the tests of the mirroring tool need the rest")]
#[path = "../../../mirror/tests/it/faulty.rs"]
mod faulty;
mod host;
mod host_bmcs;
mod ignition;
mod image;
mod installation;
mod limits;
mod mirror;
mod mirror_archive;
mod mirror_codes;
mod mirror_delete;
mod mirror_full;
mod mirror_kill;
mod mirror_list;
mod mirror_place;
mod mirror_redirect;
mod mirror_rules;
mod mirror_v2;
mod node;
mod registry;
mod rehearse;
#[expect(dead_code, reason = "the tests of the mirroring tool need the rest")]
#[path = "../../../mirror/tests/it/server.rs"]
mod server;
mod state;
mod terminal;
mod up;
#[expect(dead_code, reason = "the tests of the mirroring tool need the rest")]
#[path = "../../../mirror/tests/it/web_server.rs"]
mod web_server;
