//! All services in one program, so that their images share its bytes: it runs the service that it is called by, like
//! busybox its applets.
//!
//! No logic of the services is here. The one invariant: each is listed once, in `SERVICES`, also for `atoll serve`.

mod list;
mod multicall;
mod subcommand;

pub use multicall::main;
pub use subcommand::ServiceCommand;
