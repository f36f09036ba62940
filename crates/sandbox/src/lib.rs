//! Runs untrusted programs, confined by the kernel.
//!
//! A confined program sees the folders of its [`SandboxSpec`] and nothing else of the machine: no network, no other
//! processes, no environment of the service. Its memory, processes, disk and time are limited. When it exits, exceeds a
//! limit, or the service dies, all its descendants are killed. The choice of programs is not here.
//!
//! The service calls [`entry`] at the start of `main`. Three processes are involved, each single-threaded and started
//! by `exec`, so that no code runs between `fork` and `exec`:
//!
//! ```text
//! service ── guard (namespaces, root folder, limits) ── init (user, Landlock, seccomp, rlimits) ── program
//! ```
//!
//! The one invariant: the guard exits only when it has no descendants left.

mod channel;
mod entry;
mod guard;
mod init;
mod init_request;
mod launcher;
mod mechanisms;
mod namespaces;
mod spec;

pub use entry::entry;
pub use launcher::{Control, Launcher};
pub use mechanisms::{ConfinementReport, Mechanism, Missing};
pub use spec::{ProgramExit, ProgramOutcome, SandboxLimits, SandboxSpec};
