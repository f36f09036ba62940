//! The command line of the program: its own name, or else the first argument, selects the service.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::Command;
use clap::error::ErrorKind;
use service::program;

use crate::list::{CATALOG_SERVER, SERVICES, Service};

const NAME: &str = "atoll-services";
const ABOUT: &str = "Runs one service: the one that this program is called by, as through a link of that name, or the first argument";

/// Runs the service that `arguments` select, which begin with the program's own name; returns the exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<_> = arguments.into_iter().collect();
    if let Some(rest) = selected(&arguments, is_of_catalogs)
        && let Some(code) = catalog_server::compat_main(rest)
    {
        return code;
    }
    let (service, rest) = match select(&arguments) {
        Ok(found) => found,
        Err(message) => return program::print(&message),
    };
    // Only this command line is made: those of all services take 200 KiB.
    match program::parsed(service.command(), rest.iter().cloned()) {
        Ok(arguments) => (service.run)(&arguments),
        Err(code) => code,
    }
}

/// The arguments from the one that is the name of a program: the file name of the first, or else the second.
fn selected(arguments: &[OsString], is_name: fn(&OsStr) -> bool) -> Option<&[OsString]> {
    let (own, rest) = arguments.split_first()?;
    if Path::new(own).file_name().is_some_and(is_name) {
        return Some(arguments);
    }
    is_name(rest.first()?).then_some(rest)
}

fn is_of_catalogs(name: &OsStr) -> bool {
    name == CATALOG_SERVER || catalog_server::COMPAT_NAMES.iter().any(|it| name == *it)
}

fn service_of(name: &OsStr) -> Option<&'static Service> {
    Service::find(Path::new(name).file_name()?.to_str()?)
}

/// The service, and its arguments with its name first.
///
/// Errors: no service; the help, the version.
fn select(arguments: &[OsString]) -> Result<(&'static Service, &[OsString]), clap::Error> {
    let is_service = |name: &OsStr| name.to_str().and_then(Service::find).is_some();
    let found = selected(arguments, is_service);
    if let Some(found) = found.and_then(|rest| Some((service_of(rest.first()?)?, rest))) {
        return Ok(found);
    }
    let mut command = command();
    let problem = match arguments.get(1) {
        Some(flag) if flag.as_encoded_bytes().starts_with(b"-") => {
            command.try_get_matches_from_mut(arguments)?;
            "a service has to be named".to_owned()
        }
        Some(name) => format!("{} is not a service", name.display()),
        None => "a service has to be named".to_owned(),
    };
    let names: Vec<_> = SERVICES.iter().map(|service| service.name).collect();
    let text = format!("{problem}; there are {}", names.join(", "));
    Err(command.error(ErrorKind::InvalidSubcommand, text))
}

/// The command line without the name of a service.
fn command() -> Command {
    Command::new(NAME)
        .about(ABOUT)
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .subcommand_value_name("SERVICE")
        .subcommand_help_heading("Services")
        .subcommands(SERVICES.iter().map(Service::command))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    /// The name of the selected service, and the number of its arguments.
    fn service(line: &str) -> (&'static str, usize) {
        let arguments = arguments(line);
        let (service, rest) = select(&arguments).unwrap();
        (service.name, rest.len() - 1)
    }

    #[test]
    fn the_name_of_the_program_selects_the_service() {
        assert_eq!(service("/proxy health --ready"), ("proxy", 2));
        assert_eq!(service("registry serve a.yml"), ("registry", 2));
        // Another service's name is an argument like any other.
        assert_eq!(service("/webui registry"), ("webui", 1));
    }

    #[test]
    fn else_the_first_argument_does() {
        let line = "/usr/bin/atoll-services image-service settings";
        assert_eq!(service(line), ("image-service", 1));
        assert_eq!(service("x api-server --version"), ("api-server", 1));
    }

    #[test]
    fn without_a_service_the_error_names_all() {
        for line in ["/atoll-services", "x opm", "x /registry", "x help", "/"] {
            let error = select(&arguments(line)).unwrap_err();
            assert!(error.use_stderr());
            let text = error.to_string();
            let names = "api-server, image-service, registry, catalog-server, webui, proxy";
            assert!(text.contains(names), "{line}: {text}");
            assert!(text.contains("Usage: atoll-services <SERVICE>"), "{text}");
        }
        for (flag, answer) in [("--help", "Operator catalogs"), ("-V", "atoll-services ")] {
            let message = select(&arguments(&format!("x {flag}"))).unwrap_err();
            assert!(!message.use_stderr() && message.to_string().contains(answer));
        }
        assert!(
            select(&arguments("x --no-such-flag"))
                .unwrap_err()
                .use_stderr()
        );
        assert!(select(&[]).is_err());
    }

    #[test]
    fn programs_of_catalog_images_are_selected_by_name() {
        let selects = |line: &str, from: usize| {
            let arguments = arguments(line);
            assert_eq!(
                selected(&arguments, is_of_catalogs),
                arguments.get(from..),
                "{line}"
            );
        };
        selects("/bin/opm serve /configs", 0);
        selects("/bin/grpc_health_probe -addr=:50051", 0);
        selects("/catalog-server serve /configs", 0);
        selects("/atoll-services catalog-server serve /configs", 1);
        let others = arguments("/registry serve /configs");
        assert_eq!(selected(&others, is_of_catalogs), None);
    }
}
