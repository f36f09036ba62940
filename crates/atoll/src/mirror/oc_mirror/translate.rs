//! Translation of oc-mirror's command line into ours.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::{ArgAction, Command, CommandFactory as _};

use super::command_line::{CommandLine, UsageError};
use super::flags::{FLAGS, SHORT, is_on};

/// Translates the flags of a command line.
///
/// Errors: an unsupported flag, or one without its value.
pub(super) fn to_own_flags(
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Vec<OsString>, UsageError> {
    let command = CommandLine::command();
    let switches = command.get_arguments();
    let switches = switches.filter(|it| matches!(it.get_action(), ArgAction::SetTrue));
    let switches: Vec<_> = switches.filter_map(|it| it.get_long()).collect();
    let mut arguments = arguments.into_iter();
    let mut own: Vec<OsString> = arguments.next().into_iter().collect();
    let mut generations = BTreeSet::new();
    let mut verb = &command;
    while let Some(argument) = arguments.next() {
        if let Some(further) = argument.to_str().and_then(|it| verb.find_subcommand(it)) {
            verb = further;
        }
        let Some((name, given)) = argument.to_str().and_then(|it| named(it, verb)) else {
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
        return Err(UsageError::Flag(reason));
    }
    if generations.contains("v2") {
        leave_to_archive(&mut own);
    }
    Ok(own)
}

/// Name of a flag, and its value in the same word. A short flag that the subcommand defines otherwise is none.
fn named(argument: &str, verb: &Command) -> Option<(String, Option<String>)> {
    for (short, name) in SHORT {
        if let Some(given) = argument.strip_prefix(short) {
            let own = verb.get_arguments().find(|it| {
                let letter = it.get_short();
                letter.is_some_and(|letter| short.ends_with(letter))
            });
            if own.is_some_and(|own| own.get_long() != Some(name)) {
                return None;
            }
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

/// Drops the configuration that oc-mirror v2 requires with archives: they contain it.
fn leave_to_archive(own: &mut Vec<OsString>) {
    if own.iter().any(|it| it == "--from")
        && let Some(at) = own.iter().position(|it| it == "--config")
    {
        own.drain(at..own.len().min(at + 2));
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::flags::Meaning::{Is, Not, NotEach};
    use super::*;

    fn own(line: &str) -> Result<String, String> {
        let own = to_own_flags(line.split(' ').map(OsString::from)).map_err(|it| it.to_string())?;
        let own: Vec<_> = own.iter().map(|it| it.to_string_lossy()).collect();
        Ok(own.join(" "))
    }

    #[test]
    fn flags_of_oc_mirror_become_ours() {
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
            (
                "m --v2 --tls-verify=false -q --force --src-creds me:x --dest-no-creds file://d",
                "m --source-skip-tls --dest-skip-tls --src-creds me:x --dest-no-creds file://d",
            ),
            (
                "m --v2 --since=2026-11-20 --dest-compress-format gzip file://d",
                "m --since=2026-11-20 file://d",
            ),
            ("m --rebuild-catalogs=true --skip-cleanup", "m"),
            ("m --skip-image-pin=true", "m --skip-image-pin"),
            ("m --rebuild-catalogs=false", "m --keep-catalogs"),
            (
                "m list operators --version 4.20",
                "m list operators --version 4.20",
            ),
            (
                "m catalog prune i -p a,b -t r.io/i:1 -v 9",
                "m catalog prune i -p a,b -t r.io/i:1",
            ),
            ("m -p 55000 file://d", "m file://d"),
            (
                "m --workspace file:///w --parallel-images=4",
                "m --dir /w --max-per-registry 4",
            ),
        ] {
            assert_eq!(own(theirs).as_deref(), Ok(ours), "{theirs}");
        }
    }

    #[test]
    fn subcommands_accept_the_flags_of_oc_mirror() {
        for line in [
            "m delete --v2 --generate --workspace file:///w -c d.yaml docker://h:1/ns",
            "m delete --v2 --delete-yaml-file l.yaml --force-cache-delete docker://h:1/ns",
            "m catalog prune h:1/index:v1 -p a,b -t h:1/small:v1",
            "m --v2 -c a.yaml --since 2026-11-20 --dry-run-manifest-lists file://d",
            "m --v2 -c a.yaml --workspace file:///w --src-cert-dir /c --dest-creds me:x docker://h:1",
            "m --v2 -c a.yaml --from file:///d --dest-registry-token t --src-authfile f docker://h:1",
            "m list operators --v2 --catalog h:1/index:v1 --package p --channel c",
            "m list releases --v1 --channels --version 4.18",
            "m describe --v1 out",
        ] {
            let own = own(line).unwrap();
            let parsed = CommandLine::try_parse_from(own.split(' '));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn unsupported_flags_are_errors() {
        for (line, expected) in [
            ("m --v1 --v2", "mutually exclusive"),
            (
                "m --build-catalog-cache",
                "--build-catalog-cache is not supported",
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
            if let NotEach(others) = flag.meaning {
                assert!(others.iter().all(|it| known.contains(it)), "{others:?}");
                continue;
            }
            let (Is(other) | Not(other)) = flag.meaning else {
                assert!(!known.contains(flag.name), "{}", flag.name);
                continue;
            };
            assert!(known.contains(other), "{other}");
        }
    }
}
