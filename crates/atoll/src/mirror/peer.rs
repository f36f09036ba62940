//! The tool under the name `mirror` or `oc-mirror`: the peer's flags as flags of ours.
//!
//! What the peer has and we do not is told, never passed by; only what changes nothing here is taken without effect.
//!
//! Source: the peer's v1, and what of its v2 has the same meaning.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, CommandFactory as _, Parser};
use service::settings::Setting as _;

use crate::terminal;

/// The names under which the program is this tool alone.
const NAMES: [&str; 2] = ["mirror", "oc-mirror"];

/// Carries releases, operators and images to where there is no internet.
#[derive(Debug, Parser)]
#[command(name = "mirror")]
struct CommandLine {
    #[command(flatten)]
    arguments: super::Arguments,
}

/// A flag of the peer, where it is not just the same here.
struct Flag {
    name: &'static str,
    /// Whether a value follows it.
    has_value: bool,
    meaning: Meaning,
}

#[derive(Clone, Copy)]
enum Meaning {
    /// Flags of ours say it.
    Is(&'static str),
    /// A flag of ours says it when this one is switched off.
    Not(&'static str),
    /// It changes nothing here.
    Nothing,
    /// It is not known here. Why, or what to do.
    Refused(&'static str),
}

use Meaning::{Is, Not, Nothing, Refused};

const fn switch(name: &'static str, meaning: Meaning) -> Flag {
    Flag {
        name,
        has_value: false,
        meaning,
    }
}

const fn value(name: &'static str, meaning: Meaning) -> Flag {
    let has_value = true;
    Flag {
        has_value,
        ..switch(name, meaning)
    }
}

static FLAGS: &[Flag] = &[
    switch("v1", Nothing),
    switch("v2", Nothing),
    value("verbose", Nothing),
    value("log-level", Nothing),
    // What is temporary is in a folder of its own, and goes with the run.
    switch("skip-cleanup", Nothing),
    // Content is compared with its digests while it passes.
    switch("skip-verification", Nothing),
    switch("strict-archive", Nothing),
    switch("oci-insecure-signature-policy", Nothing),
    // There is no cache, and no registry in front of it.
    value("cache-dir", Nothing),
    value("port", Nothing),
    value("rootless-storage-path", Nothing),
    // Each request has time-outs and is repeated with pauses of its own.
    value("retry-times", Nothing),
    value("retry-delay", Nothing),
    value("image-timeout", Nothing),
    value("parallel-layers", Nothing),
    value("parallel-images", Is("max-per-registry")),
    value("config", Is("config")),
    value("from", Is("from")),
    value("dir", Is("dir")),
    value("workspace", Is("dir")),
    switch("src-tls-verify", Not("source-skip-tls")),
    switch("dest-tls-verify", Not("dest-skip-tls")),
    switch("rebuild-catalogs", Not("keep-catalogs")),
    switch("manifests-only", Is("manifests-only")),
    switch(
        "build-catalog-cache",
        Refused("a catalog makes its cache when it is served"),
    ),
    // The peer asks these mirrors for what catalogs in folders name; here they are asked for all sources.
    value("oci-registries-config", Is("registries-conf")),
    switch(
        "enable-operator-secure-policy",
        Refused("signature policies of this machine are not read"),
    ),
    switch(
        "secure-policy",
        Refused("signature policies of this machine are not read"),
    ),
    value(
        "policy",
        Refused("signature policies of this machine are not read"),
    ),
    value(
        "registries.d",
        Refused("signature policies of this machine are not read"),
    ),
    value(
        "since",
        Refused("--ignore-history carries everything again"),
    ),
];

/// Those with one letter.
const SHORT: [(&str, &str); 4] = [
    ("-c", "config"),
    ("-d", "dir"),
    ("-v", "verbose"),
    ("-p", "port"),
];

/// Whether the process was called by one of the tool's names.
pub(crate) fn is_meant(program: Option<&OsString>) -> bool {
    let name = program.and_then(|it| Path::new(it).file_name());
    name.is_some_and(|name| NAMES.iter().any(|it| name == *it))
}

/// Does what the command line says; the value is the process's exit code: 0 or 1, as the peer's.
pub(crate) fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let translated = translated(arguments);
    let parsed =
        translated.and_then(|own| CommandLine::try_parse_from(own).map_err(Unusable::Clap));
    let failure = match parsed {
        Ok(line) => match super::run(&line.arguments) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(error) => error.to_string(),
        },
        Err(Unusable::Clap(error)) if !error.use_stderr() => {
            terminal::say(error.render().to_string().trim_end());
            return ExitCode::SUCCESS;
        }
        Err(unusable) => unusable.to_string(),
    };
    terminal::error(&failure);
    ExitCode::FAILURE
}

/// Why a command line cannot be used.
enum Unusable {
    Clap(clap::Error),
    Flag(String),
}

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(reason) => f.write_str(reason),
            Self::Clap(error) => {
                let unknown = match error.get(ContextKind::InvalidArg) {
                    Some(ContextValue::String(name)) => name.as_str(),
                    _ => "",
                };
                if error.kind() == ErrorKind::UnknownArgument && unknown.starts_with('-') {
                    return write!(
                        f,
                        "unknown flag: {unknown}: `mirror --help` tells those that are known"
                    );
                }
                let text = error.render().to_string();
                f.write_str(text.trim_start_matches("error: ").trim_end())
            }
        }
    }
}

/// The command line with flags of ours.
fn translated(arguments: impl IntoIterator<Item = OsString>) -> Result<Vec<OsString>, Unusable> {
    let command = CommandLine::command();
    let switches = command.get_arguments();
    let switches = switches.filter(|it| matches!(it.get_action(), ArgAction::SetTrue));
    let switches: Vec<_> = switches.filter_map(|it| it.get_long()).collect();
    let mut arguments = arguments.into_iter();
    let mut own: Vec<OsString> = arguments.next().into_iter().collect();
    let mut generations = BTreeSet::new();
    while let Some(argument) = arguments.next() {
        let Some((name, given)) = argument.to_str().and_then(named) else {
            own.push(argument);
            continue;
        };
        if let Some(generation) = ["v1", "v2"].into_iter().find(|it| *it == name) {
            generations.insert(generation);
        }
        if let Some(flag) = FLAGS.iter().find(|it| it.name == name) {
            let given = match given {
                None if flag.has_value => arguments.next().and_then(|it| it.into_string().ok()),
                given => given,
            };
            own.extend(flag.own(given)?.into_iter().map(OsString::from));
        } else if let (true, Some(given)) = (switches.contains(&&*name), &given) {
            if is_on(&name, given)? {
                own.push(format!("--{name}").into());
            }
        } else {
            own.push(argument);
        }
    }
    if generations.len() > 1 {
        let reason = "the flags --v1 and --v2 are mutually exclusive".into();
        return Err(Unusable::Flag(reason));
    }
    if generations.contains("v2") {
        leave_to_archive(&mut own);
    }
    Ok(own)
}

/// The name of a flag, and what is given with it in the same word.
fn named(argument: &str) -> Option<(String, Option<String>)> {
    for (short, name) in SHORT {
        if let Some(given) = argument.strip_prefix(short) {
            let given = given.strip_prefix('=').unwrap_or(given);
            let given = (!given.is_empty()).then(|| given.to_owned());
            return Some((name.to_owned(), given));
        }
    }
    let named = argument.strip_prefix("--").filter(|it| !it.is_empty())?;
    Some(match named.split_once('=') {
        Some((name, given)) => (name.to_owned(), Some(given.to_owned())),
        None => (named.to_owned(), None),
    })
}

/// The peer's v2 wants the configuration named with archives as well; it is in them.
fn leave_to_archive(own: &mut Vec<OsString>) {
    if own.iter().any(|it| it == "--from")
        && let Some(at) = own.iter().position(|it| it == "--config")
    {
        own.drain(at..own.len().min(at + 2));
    }
}

fn is_on(name: &str, given: &str) -> Result<bool, Unusable> {
    bool::parse(given).map_err(|reason| Unusable::Flag(format!("--{name}: {reason}")))
}

impl Flag {
    /// What says the same here.
    fn own(&self, given: Option<String>) -> Result<Vec<String>, Unusable> {
        let name = self.name;
        let refused = |why| Unusable::Flag(format!("--{name} is not known here: {why}"));
        if self.has_value {
            let needed = || Unusable::Flag(format!("flag needs an argument: --{name}"));
            let given = given.ok_or_else(needed)?;
            let given = given.strip_prefix("file://").unwrap_or(&given);
            return match self.meaning {
                Is(other) => Ok(vec![format!("--{other}"), given.to_owned()]),
                Refused(why) => Err(refused(why)),
                Not(_) | Nothing => Ok(Vec::new()),
            };
        }
        let is_on = given.map_or(Ok(true), |given| is_on(name, &given))?;
        match (self.meaning, is_on) {
            (Is(other), true) | (Not(other), false) => Ok(vec![format!("--{other}")]),
            (Refused(why), true) => Err(refused(why)),
            _ => Ok(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(line: &str) -> Result<String, String> {
        let own = translated(line.split(' ').map(OsString::from)).map_err(|it| it.to_string())?;
        let own: Vec<_> = own.iter().map(|it| it.to_string_lossy()).collect();
        Ok(own.join(" "))
    }

    #[test]
    fn flags_of_the_peer_become_ours() {
        for (theirs, ours) in [
            ("m --v1 -c a.yaml file://d", "m --config a.yaml file://d"),
            (
                "m -d=w -v 9 --dry-run=true docker://h",
                "m --dir w --dry-run docker://h",
            ),
            (
                "m --dry-run=false --skip-pruning docker://h",
                "m --skip-pruning docker://h",
            ),
            (
                "m --v2 -c a --from file://d docker://h",
                "m --from d docker://h",
            ),
            (
                "m --dest-tls-verify=false --src-tls-verify=true",
                "m --dest-skip-tls",
            ),
            ("m --rebuild-catalogs=true --skip-cleanup", "m"),
            ("m --skip-image-pin=true", "m --skip-image-pin"),
            ("m --rebuild-catalogs=false", "m --keep-catalogs"),
            (
                "m list operators --version 4.20",
                "m list operators --version 4.20",
            ),
            (
                "m --workspace file:///w --parallel-images=4",
                "m --dir /w --max-per-registry 4",
            ),
        ] {
            assert_eq!(own(theirs).as_deref(), Ok(ours), "{theirs}");
        }
    }

    #[test]
    fn what_is_not_known_is_told() {
        for (line, expected) in [
            ("m --v1 --v2", "mutually exclusive"),
            (
                "m --build-catalog-cache",
                "--build-catalog-cache is not known here",
            ),
            ("m --policy", "flag needs an argument: --policy"),
            ("m --dry-run=maybe", "--dry-run: "),
        ] {
            let error = own(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn every_flag_has_one_meaning() {
        let command = CommandLine::command();
        let known: BTreeSet<_> = command
            .get_arguments()
            .filter_map(|it| it.get_long())
            .collect();
        for flag in FLAGS {
            let (Is(other) | Not(other)) = flag.meaning else {
                assert!(!known.contains(flag.name), "{}", flag.name);
                continue;
            };
            assert!(known.contains(other), "{other}");
        }
    }

    #[test]
    fn the_name_tells_whether_it_is_meant() {
        for (program, expected) in [
            ("/usr/bin/mirror", true),
            ("oc-mirror", true),
            ("atoll", false),
            ("/mirror/atoll", false),
        ] {
            assert_eq!(is_meant(Some(&program.into())), expected, "{program}");
        }
    }
}
