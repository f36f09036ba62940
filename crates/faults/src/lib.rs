//! Faults for tests: a file system call that fails once, and the campaign over all of them; broken input for parsers.
//!
//! The driver of a store runs in its own process with a preloaded shim. Production code has no hooks.

mod campaign;
mod mutations;
mod shim;
#[cfg(test)]
mod tests;

pub use campaign::{Campaign, DONE, FOLDER, Findings};
pub use mutations::{
    FUZZ_TIME, LONG_RUN, kept, run_binary_mutations, run_binary_mutations_for, run_mutations,
    with_tar_checksums,
};
pub use shim::{Fault, Shim};
