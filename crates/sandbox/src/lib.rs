//! Runs programs that are not trusted, confined by the kernel.
//!
//! A confined program sees the folders of its [`SandboxSpec`] and nothing else of the machine: no network, no other processes,
//! no environment of the service. Its memory, processes, disk and time are bounded, and when it ends, when a bound is
//! exceeded or when the service dies, all its descendants die with it. What does not live here: what is run, and why.
//!
//! The program that wants to confine others calls [`entry`] first of all. Three processes are then involved, each
//! single-threaded and made by `exec`, so that nothing happens between `fork` and `exec`:
//!
//! ```text
//! service ── guard (namespaces, root folder, bounds) ── init (user, Landlock, seccomp, limits) ── program
//! ```
//!
//! The one invariant: the guard ends only when no descendant of it is left.

mod channel;
mod entry;
mod guard;
mod init;
mod launcher;
mod mechanisms;
mod spec;

pub use entry::entry;
pub use launcher::{Control, Launcher};
pub use mechanisms::{ConfinementReport, Mechanism, Missing};
pub use spec::{ProgramExit, ProgramOutcome, SandboxLimits, SandboxSpec};
