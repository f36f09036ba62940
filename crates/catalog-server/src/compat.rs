//! Command lines that catalog images expect: `opm serve` and `grpc_health_probe`.

mod probe;
mod serve;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

const OPM: &str = "opm";
const HEALTH_PROBE: &str = "grpc_health_probe";
/// Names of the programs that catalog images call.
pub const COMPAT_NAMES: [&str; 2] = [OPM, HEALTH_PROBE];

/// Program selected by name and first argument.
#[derive(Debug, PartialEq, Eq)]
enum Invocation {
    /// `opm serve` with its arguments.
    Serve(Vec<OsString>),
    /// `grpc_health_probe` with its arguments.
    Probe(Vec<OsString>),
    /// `opm` with another verb.
    Other,
    /// The catalog server itself.
    Own,
}

impl Invocation {
    fn of(arguments: &[OsString]) -> Self {
        let Some((program, rest)) = arguments.split_first() else {
            return Self::Own;
        };
        let name = Path::new(program).file_name().unwrap_or_default();
        if name == HEALTH_PROBE {
            return Self::Probe(rest.to_vec());
        }
        match rest.split_first() {
            // Without a folder it is the verb of all servers.
            Some((verb, after)) if verb == "serve" && (name == OPM || !after.is_empty()) => {
                Self::Serve(after.to_vec())
            }
            _ if name == OPM => Self::Other,
            _ => Self::Own,
        }
    }
}

/// Runs the program that `arguments` select, the name of the program first; returns its exit code, and `None` for the
/// catalog server itself.
pub fn compat_main(arguments: &[OsString]) -> Option<ExitCode> {
    let code = match Invocation::of(arguments) {
        Invocation::Probe(arguments) => {
            let (code, text) = probe::main(arguments);
            say(&text);
            code
        }
        Invocation::Serve(arguments) => {
            serve::main(arguments).unwrap_or_else(|reason| say(&reason))
        }
        Invocation::Other => {
            say("opm: only serve is supported here; use `atoll catalog` for other verbs")
        }
        Invocation::Own => return None,
    };
    Some(code)
}

fn say(text: &str) -> ExitCode {
    use std::io::Write as _;
    writeln!(std::io::stderr(), "{text}").ok();
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_first_argument_select_the_program() {
        let rest = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let called = |line: &str| Invocation::of(&rest(line));
        assert_eq!(
            called("/bin/opm serve /configs"),
            Invocation::Serve(rest("/configs"))
        );
        assert_eq!(
            called("/catalog-server serve /configs -p 1"),
            Invocation::Serve(rest("/configs -p 1"))
        );
        assert_eq!(
            called("/bin/grpc_health_probe -addr=:50051"),
            Invocation::Probe(rest("-addr=:50051"))
        );
        assert_eq!(called("opm render"), Invocation::Other);
        for own in ["catalog-server", "catalog-server serve", "./x health"] {
            assert_eq!(called(own), Invocation::Own, "{own}");
        }
    }
}
