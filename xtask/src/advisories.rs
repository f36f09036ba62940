//! `cargo xtask advisories`: dependencies with known vulnerabilities, from a committed snapshot of the RustSec database.
//!
//! An isolated machine reaches no database, so the snapshot is a part of the source, and its date is a part of every
//! result. The exceptions are those of deny.toml, which cargo-deny reads, too.

mod lock;
mod snapshot;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use clap::Args;
use serde::Deserialize;

use crate::cargo::root;
use crate::libtest::Tally;
use lock::LockedPackage;
use snapshot::{Advisory, AdvisorySnapshot};

/// The snapshot, below the root.
const SNAPSHOT: &str = "xtask/advisories.tsv";
const EXCEPTIONS: &str = "deny.toml";
/// Age of a snapshot that is to be replaced.
const OLD_DAYS: i64 = 30;
const SECONDS_OF_A_DAY: u64 = 86_400;

/// Arguments of `advisories`.
#[derive(Debug, Args)]
pub(crate) struct AdvisoriesArgs {
    /// Replace the snapshot by the advisories of a clone of https://github.com/rustsec/advisory-db
    #[arg(long, value_name = "CLONE")]
    update: Option<PathBuf>,
}

/// An exception: an advisory that does not concern this workspace, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Exception {
    id: String,
    reason: String,
}

#[derive(Debug, Default, Deserialize)]
struct Deny {
    #[serde(default)]
    advisories: Advisories,
}

#[derive(Debug, Default, Deserialize)]
struct Advisories {
    #[serde(default)]
    ignore: Vec<Exception>,
}

pub(crate) fn run(arguments: &AdvisoriesArgs) -> Result<ExitCode> {
    if let Some(clone) = &arguments.update {
        let snapshot = AdvisorySnapshot::of_clone(clone)?;
        let path = root().join(SNAPSHOT);
        fs::write(&path, snapshot.to_string())
            .with_context(|| format!("writing {}", path.display()))?;
    }
    let tally = check()?;
    Ok(if tally.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints the date of the snapshot and every finding, and counts.
pub(crate) fn check() -> Result<Tally> {
    let snapshot = AdvisorySnapshot::parse(&read(SNAPSHOT)?)?;
    let packages = lock::parse(&read("Cargo.lock")?)?;
    let deny: Deny = toml::from_str(&read(EXCEPTIONS)?).context("reading deny.toml")?;
    println!(
        "{} advisories of {}, {} packages",
        snapshot.advisories.len(),
        snapshot.origin,
        packages.len()
    );
    let findings = findings(&snapshot.advisories, &packages, &deny.advisories.ignore);
    for finding in &findings {
        println!("  {finding}");
    }
    Ok(Tally::one(findings.is_empty()))
}

/// Age of the snapshot, and the remedy for an old one.
pub(crate) fn age() -> Result<String> {
    let snapshot = AdvisorySnapshot::parse(&read(SNAPSHOT)?)?;
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let today = i64::try_from(since_1970.as_secs() / SECONDS_OF_A_DAY)?;
    let (origin, days) = (&snapshot.origin, today - snapshot.day()?);
    let mut text = format!("advisories of {origin}: {days} days old");
    if days > OLD_DAYS {
        text += "; `cargo xtask advisories --update CLONE` takes those of a clone of the database";
    }
    Ok(text)
}

fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = root().join(path);
    fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

/// Unexcepted advisories that concern a package, and exceptions that match none.
fn findings(
    advisories: &[Advisory],
    packages: &[LockedPackage],
    exceptions: &[Exception],
) -> Vec<String> {
    let mut used = BTreeSet::new();
    let mut findings = Vec::new();
    for advisory in advisories {
        for package in packages.iter().filter(|package| advisory.concerns(package)) {
            let id = advisory.id.as_str();
            if exceptions.iter().any(|exception| exception.id == id) {
                used.insert(id);
                continue;
            }
            findings.push(format!(
                "{} {}: {} {id} (https://rustsec.org/advisories/{id}); update it, or name {id} with a reason in {EXCEPTIONS}",
                package.name, package.version, advisory.kind
            ));
        }
    }
    for Exception { id, reason } in exceptions {
        if !used.contains(id.as_str()) {
            findings.push(format!(
                "{EXCEPTIONS}: {id} ({reason}) concerns no package any more: remove it"
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advisory(line: &str) -> Advisory {
        let text = format!("# origin\n{line}\n");
        AdvisorySnapshot::parse(&text).unwrap().advisories.remove(0)
    }

    fn package(name: &str, version: &str) -> LockedPackage {
        LockedPackage {
            name: name.to_owned(),
            version: version.parse().unwrap(),
        }
    }

    fn exception(id: &str) -> Exception {
        Exception {
            id: id.to_owned(),
            reason: "no private keys here".to_owned(),
        }
    }

    #[test]
    fn patched_and_unaffected_versions_are_no_finding() {
        let advisories = [advisory(
            "RUSTSEC-2024-0001\tacme\tvulnerability\t>= 1.2.3 | ^0.9.8\t< 0.5.0",
        )];
        for (version, is_affected) in [
            ("1.2.3", false),
            ("1.2.2", true),
            ("0.9.8", false),
            ("0.4.9", false),
            ("0.5.0", true),
        ] {
            let found = findings(&advisories, &[package("acme", version)], &[]);
            assert_eq!(!found.is_empty(), is_affected, "{version}");
        }
        assert!(findings(&advisories, &[package("other", "1.0.0")], &[]).is_empty());
    }

    #[test]
    fn an_exception_holds_for_its_advisory_and_while_it_is_needed() {
        let advisories = [
            advisory("RUSTSEC-2024-0001\tacme\tvulnerability\t\t"),
            advisory("RUSTSEC-2024-0002\tacme\tunmaintained\t\t"),
        ];
        let packages = [package("acme", "1.0.0")];
        let found = findings(&advisories, &packages, &[exception("RUSTSEC-2024-0001")]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("RUSTSEC-2024-0002"), "{found:?}");
        let found = findings(&[], &packages, &[exception("RUSTSEC-2024-0001")]);
        assert!(found[0].contains("concerns no package"), "{found:?}");
    }

    #[test]
    fn dependencies_have_no_known_vulnerabilities() {
        assert_eq!(check().unwrap(), Tally::one(true));
    }
}
