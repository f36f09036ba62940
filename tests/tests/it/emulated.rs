//! Emulated machines that boot the images. Their firmware gives up after timeouts of its own: `cargo xtask test --full` runs
//! all of them with nothing beside.

mod boots;
mod discovery;
