//! Messages of the protocol, made by `cargo xtask codegen`.

mod messages;

pub use messages::*;
