//! `atoll serve <service>`.

use std::process::ExitCode;

pub(crate) use services::ServiceCommand;

/// Runs one service until SIGTERM.
pub(crate) fn run(service: &ServiceCommand) -> ExitCode {
    // Children of a service gain no privileges, not even from set-user-ID programs. Failure is ignored: the service
    // works without it.
    rustix::thread::set_no_new_privs(true).ok();
    service.run()
}
