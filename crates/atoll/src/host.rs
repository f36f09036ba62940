//! `atoll host`: records of hosts (BareMetalHost, Secret, Machine) in files, and the BMCs that they name.

pub(crate) mod bmcs;
pub(crate) mod boot;
mod check;
mod controller;
mod eject;
pub(crate) mod input;
mod inspect;
mod list;
mod power;
mod render;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum HostCommand {
    /// Check BareMetalHost, Secret and Machine records in YAML or JSON: each mistake with line, field and remedy; exit
    /// code 1 if one is an error
    ///
    /// --format json prints {"findings":[{"severity","check","file","line","column","record","field","reason","remedy"}],
    /// "left_out","records","errors","warnings"}.
    Check(check::CheckArgs),
    /// List the hosts of a cluster
    List(list::HostListArgs),
    /// Write Secret, BareMetalHost and Machine records of a short inventory
    Render(render::RenderArgs),
    /// Show the hosts of records as their BMCs see them: hardware, power, NICs; exit code 1 if one fails, or has no NIC
    /// with its boot MAC address
    ///
    /// --format json prints [{"name","namespace","inventory":{"manufacturer","model","serial","uuid","power","boot",
    /// "nics":[{"id","mac","speed_mbps","link"}],"disks":[{"id","size_bytes","media","protocol","vendor","model","serial",
    /// "wwn"}],"memory_gib","processors",…},"error"}].
    Inspect(inspect::HostInspectArgs),
    /// Read or change the power of the hosts of records by their BMCs
    Power(power::HostPowerArgs),
    /// Boot the hosts of records from an image, by virtual media or UEFI HTTP boot; hosts that run are restarted
    Boot(boot::HostBootArgs),
    /// Eject the images of the hosts of records, and check that their disks are first in the boot order
    Eject(eject::HostEjectArgs),
    /// Register, inspect and power the hosts of a cluster where no other controller does; it writes no disks
    Controller(controller::HostControllerArgs),
}

/// Runs the subcommand; the value is the exit code.
pub(crate) fn run(command: &HostCommand) -> ExitCode {
    let result = match command {
        HostCommand::Check(arguments) => check::run(arguments),
        HostCommand::List(arguments) => list::run(arguments).map(|()| true),
        HostCommand::Render(arguments) => render::run(arguments),
        HostCommand::Inspect(arguments) => inspect::run(arguments),
        HostCommand::Power(arguments) => power::run(arguments),
        HostCommand::Boot(arguments) => boot::run(arguments),
        HostCommand::Eject(arguments) => eject::run(arguments),
        HostCommand::Controller(arguments) => controller::run(arguments),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            crate::terminal::notice(&crate::failure::text(&error));
            ExitCode::FAILURE
        }
    }
}
