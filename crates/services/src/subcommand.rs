//! The services as subcommands of another program.

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgMatches, Command, FromArgMatches, Subcommand};
use service::program::ServerArgs;

use crate::list::{SERVICES, Service};

/// A service with its arguments.
#[derive(Debug)]
pub struct ServiceCommand {
    service: &'static Service,
    arguments: ServerArgs,
}

impl ServiceCommand {
    /// Runs the service until SIGTERM; returns the exit code of the process.
    pub fn run(&self) -> ExitCode {
        (self.service.run)(&self.arguments)
    }
}

impl FromArgMatches for ServiceCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let selected = matches.subcommand();
        let found = selected.and_then(|(name, matches)| Some((Service::find(name)?, matches)));
        let (service, matches) = found.ok_or(clap::Error::new(ErrorKind::MissingSubcommand))?;
        Ok(Self {
            service,
            arguments: ServerArgs::from_arg_matches(matches)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for ServiceCommand {
    fn augment_subcommands(command: Command) -> Command {
        let command = command
            .subcommand_required(true)
            .arg_required_else_help(true);
        command.subcommands(SERVICES.iter().map(Service::command))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        Service::find(name).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<ServiceCommand, clap::Error> {
        let command = ServiceCommand::augment_subcommands(Command::new("serve"));
        let matches = command.try_get_matches_from(line.split(' '))?;
        ServiceCommand::from_arg_matches(&matches)
    }

    #[test]
    fn each_service_is_a_subcommand() {
        ServiceCommand::augment_subcommands(Command::new("serve")).debug_assert();
        for service in &SERVICES {
            let name = service.name;
            let mut parsed = parse(&format!("serve {name} health --ready")).unwrap();
            assert_eq!(parsed.service.name, name);
            assert!(ServiceCommand::has_subcommand(name));
            assert!(!parsed.arguments.check_config);
            let again = ServiceCommand::augment_subcommands_for_update(Command::new("serve"));
            let matches = again.try_get_matches_from(["serve", name, "--check-config"]);
            parsed.update_from_arg_matches(&matches.unwrap()).unwrap();
            assert!(parsed.arguments.check_config);
        }
    }

    #[test]
    fn no_service_and_another_are_errors() {
        assert!(!ServiceCommand::has_subcommand("opm"));
        for line in ["serve", "serve opm", "serve registry --no-such-flag"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
