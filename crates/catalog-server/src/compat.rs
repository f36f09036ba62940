//! Command lines that catalog images expect: `opm serve` and `grpc_health_probe`.

mod probe;
mod serve;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

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
    fn of(arguments: impl IntoIterator<Item = OsString>) -> Self {
        let mut arguments = arguments.into_iter();
        let program = arguments.next().unwrap_or_default();
        let name = Path::new(&program).file_name().unwrap_or_default();
        let rest: Vec<_> = arguments.collect();
        if name == "grpc_health_probe" {
            return Self::Probe(rest);
        }
        match rest.split_first() {
            // Without a folder it is the verb of all servers.
            Some((verb, after)) if verb == "serve" && (name == "opm" || !after.is_empty()) => {
                Self::Serve(after.to_vec())
            }
            _ if name == "opm" => Self::Other,
            _ => Self::Own,
        }
    }
}

/// Runs the selected program; returns the exit code.
pub fn main() -> ExitCode {
    match Invocation::of(std::env::args_os()) {
        Invocation::Probe(arguments) => probe::main(arguments),
        Invocation::Serve(arguments) => serve::main(arguments),
        Invocation::Other => {
            say("opm: only serve is supported here; use `atoll catalog` for other verbs")
        }
        Invocation::Own => service::program::main("catalog-server", crate::run),
    }
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
        let called = |line: &str| Invocation::of(line.split(' ').map(OsString::from));
        let rest = |line: &str| line.split(' ').map(OsString::from).collect();
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
