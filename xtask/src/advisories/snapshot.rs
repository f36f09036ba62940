//! The snapshot: one line per advisory, with the affected versions.

use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use semver::VersionReq;
use serde::Deserialize;

use super::lock::LockedPackage;
use crate::command::output;

/// Between requirements.
const OR: &str = " | ";
const FENCE: &str = "```";

/// Advisories as of a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AdvisorySnapshot {
    /// Repository, commit and date.
    pub(super) origin: String,
    pub(super) advisories: Vec<Advisory>,
}

/// An advisory about some versions of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Advisory {
    pub(super) id: String,
    package: String,
    /// `vulnerability`, or the database's informational kinds: `unmaintained`, `unsound`, `notice`.
    pub(super) kind: String,
    patched: Vec<VersionReq>,
    unaffected: Vec<VersionReq>,
}

/// The front matter of a file of the database. Source: https://github.com/rustsec/advisory-db, EXAMPLE_ADVISORY.md.
#[derive(Debug, Deserialize)]
struct FrontMatter {
    advisory: AdvisoryFields,
    versions: AffectedVersions,
}

#[derive(Debug, Deserialize)]
struct AdvisoryFields {
    id: String,
    package: String,
    informational: Option<String>,
    withdrawn: Option<toml::Value>,
}

#[derive(Debug, Deserialize)]
struct AffectedVersions {
    patched: Vec<VersionReq>,
    #[serde(default)]
    unaffected: Vec<VersionReq>,
}

impl Advisory {
    /// Whether it affects this version of the package.
    pub(super) fn concerns(&self, package: &LockedPackage) -> bool {
        let is_met = |requirement: &VersionReq| requirement.matches(&package.version);
        self.package == package.name
            && !self.patched.iter().any(is_met)
            && !self.unaffected.iter().any(is_met)
    }

    fn parse(line: &str) -> Result<Self> {
        let parts: Vec<&str> = line.split('\t').collect();
        let [id, package, kind, patched, unaffected] = parts[..] else {
            anyhow::bail!("{line:?} has not five parts");
        };
        Ok(Self {
            id: id.to_owned(),
            package: package.to_owned(),
            kind: kind.to_owned(),
            patched: requirements(patched)?,
            unaffected: requirements(unaffected)?,
        })
    }

    /// Parses a file of the database; `None` for a withdrawn advisory.
    fn of_file(text: &str) -> Result<Option<Self>> {
        let front = text
            .split_once("```toml")
            .and_then(|(_, rest)| rest.split_once(FENCE))
            .context("the file has no front matter")?;
        let FrontMatter { advisory, versions } = toml::from_str(front.0)?;
        if advisory.withdrawn.is_some() {
            return Ok(None);
        }
        let kind = advisory.informational;
        Ok(Some(Self {
            id: advisory.id,
            package: advisory.package,
            kind: kind.unwrap_or_else(|| "vulnerability".to_owned()),
            patched: versions.patched,
            unaffected: versions.unaffected,
        }))
    }
}

fn requirements(text: &str) -> Result<Vec<VersionReq>> {
    let parts = text.split(OR).filter(|part| !part.is_empty());
    parts
        .map(|part| part.parse().with_context(|| format!("reading {part:?}")))
        .collect()
}

impl AdvisorySnapshot {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let origin = lines.next().and_then(|line| line.strip_prefix("# "));
        let origin = origin.context("the snapshot does not say where it is from")?;
        let advisories: Result<_> = lines.map(Advisory::parse).collect();
        Ok(Self {
            origin: origin.to_owned(),
            advisories: advisories?,
        })
    }

    /// Day of its commit. Units: days since 1970.
    pub(super) fn day(&self) -> Result<i64> {
        let date = self.origin.rsplit(' ').next().unwrap_or_default();
        let parts: Vec<i64> = date
            .split('-')
            .filter_map(|part| part.parse().ok())
            .collect();
        let [year, month, day] = parts[..] else {
            anyhow::bail!("{:?} does not end with a date", self.origin);
        };
        // Source: the proleptic Gregorian calendar, with years that begin in March.
        let (year, month) = if month > 2 {
            (year, month - 3)
        } else {
            (year - 1, month + 9)
        };
        let leap_days = year / 4 - year / 100 + year / 400;
        Ok(year * 365 + leap_days + (month * 153 + 2) / 5 + day - 719_469)
    }

    /// Reads the last commit of a clone of the database, bare or not.
    pub(super) fn of_clone(clone: &Path) -> Result<Self> {
        let git = |arguments: &[&str]| -> Result<String> {
            let mut command = Command::new("git");
            let answer = output(command.arg("-C").arg(clone).args(arguments))?;
            String::from_utf8(answer).context("git's output is not UTF-8")
        };
        let last = git(&["log", "-1", "--format=%H %cs"])?;
        let files = git(&["ls-tree", "-r", "--name-only", "HEAD", "crates"])?;
        let mut advisories = Vec::new();
        for file in files.lines() {
            let text = git(&["show", &format!("HEAD:{file}")])?;
            advisories.extend(Advisory::of_file(&text).with_context(|| format!("reading {file}"))?);
        }
        ensure!(
            !advisories.is_empty(),
            "{} has no advisories",
            clone.display()
        );
        advisories.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(Self {
            origin: format!("rustsec/advisory-db {}", last.trim()),
            advisories,
        })
    }
}

impl fmt::Display for AdvisorySnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# {}", self.origin)?;
        for advisory in &self.advisories {
            let join = |requirements: &[VersionReq]| {
                let parts: Vec<_> = requirements.iter().map(ToString::to_string).collect();
                parts.join(OR)
            };
            let (patched, unaffected) = (join(&advisory.patched), join(&advisory.unaffected));
            let Advisory {
                id, package, kind, ..
            } = advisory;
            writeln!(f, "{id}\t{package}\t{kind}\t{patched}\t{unaffected}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "```toml\n[advisory]\nid = \"RUSTSEC-2024-0001\"\npackage = \"acme\"\ndate = \"2024-01-02\"\n\
                        [versions]\npatched = [\">= 1.2.3\", \"^0.9.8\"]\nunaffected = [\"< 0.5.0\"]\n```\n\n# Title\n";

    #[test]
    fn snapshots_have_a_day() {
        let day = |origin: &str| {
            let snapshot = AdvisorySnapshot {
                origin: origin.to_owned(),
                advisories: Vec::new(),
            };
            snapshot.day().ok()
        };
        for (origin, expected) in [
            ("db 1f 1970-01-01", Some(0)),
            ("db 1f 2000-02-29", Some(11_016)),
            ("db 1f 2026-08-21", Some(20_686)),
            ("db 1f", None),
        ] {
            assert_eq!(day(origin), expected, "{origin}");
        }
    }

    #[test]
    fn a_file_of_the_database_becomes_a_line_and_is_read_again() {
        let snapshot = AdvisorySnapshot {
            origin: "here 1f 2026-01-02".to_owned(),
            advisories: vec![Advisory::of_file(FILE).unwrap().unwrap()],
        };
        let text = snapshot.to_string();
        assert_eq!(
            text,
            "# here 1f 2026-01-02\nRUSTSEC-2024-0001\tacme\tvulnerability\t>=1.2.3 | ^0.9.8\t<0.5.0\n"
        );
        assert_eq!(AdvisorySnapshot::parse(&text).unwrap(), snapshot);
    }

    #[test]
    fn withdrawn_advisories_are_left_out() {
        let text = FILE.replace("[versions]", "withdrawn = \"2024-02-03\"\n[versions]");
        assert_eq!(Advisory::of_file(&text).unwrap(), None);
    }
}
