//! `cargo xtask tidy`: the house rules that a compiler does not check, one row each.

mod crates;
mod finding;
mod glossary;
mod history;
mod limits;
mod migrations;
mod module_order;
mod packages;
mod record;
mod source;
mod text;
mod type_names;
mod words;

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::advisories;
use crate::codegen;
use crate::libtest::Tally;
use finding::TidyFinding;
use source::WorkspaceSources;

/// Arguments of `tidy`.
#[derive(Debug, Args)]
pub(crate) struct TidyArgs {
    /// Lower the recorded counts of words and type names to those of today; never raises one
    #[arg(long)]
    record: bool,
}

/// A house rule.
struct TidyRule {
    /// Short name.
    name: &'static str,
    /// Its statement, true without findings.
    claim: &'static str,
    /// Finds violations.
    check: fn(&WorkspaceSources) -> Vec<TidyFinding>,
}

/// Every rule.
static RULES: &[TidyRule] = &[
    TidyRule {
        name: "dependency-direction",
        claim: "arrows between crates point down, and each transport stays in its place",
        check: crates::direction,
    },
    TidyRule {
        name: "module-order",
        claim: "modules of rules know earlier ones alone",
        check: module_order::check,
    },
    TidyRule {
        name: "inherited",
        claim: "versions and lints come from the workspace",
        check: crates::inherited,
    },
    TidyRule {
        name: "packages",
        claim: "the proxy and the web UI compile fewer than 150 packages",
        check: packages::few,
    },
    TidyRule {
        name: "status-codes",
        claim: "only http/ and error.rs of the API server know status codes",
        check: text::status_codes,
    },
    TidyRule {
        name: "file-length",
        claim: "no file of production code has more than 800 lines",
        check: text::file_length,
    },
    TidyRule {
        name: "main-length",
        claim: "main.rs has at most 60 lines: the rest is a library",
        check: text::main_length,
    },
    TidyRule {
        name: "todo",
        claim: "what is left to do has an issue number",
        check: text::todo,
    },
    TidyRule {
        name: "sql",
        claim: "no text is formatted into SQL",
        check: text::formatted_sql,
    },
    TidyRule {
        name: "migrations",
        claim: "migrations are numbered and never edited",
        check: migrations::unedited,
    },
    TidyRule {
        name: "environment",
        claim: "only service::settings reads the environment",
        check: text::environment,
    },
    TidyRule {
        name: "allow",
        claim: "lints are expected with a reason, never allowed",
        check: text::bare_allow,
    },
    TidyRule {
        name: "limits",
        claim: "each limit of docs/limits.md has a test that names it",
        check: limits::tested,
    },
    TidyRule {
        name: "glossary",
        claim: "each term of docs/glossary.md names a file",
        check: glossary::places,
    },
    TidyRule {
        name: "words",
        claim: "words that docs/glossary.md replaces become fewer in every crate",
        check: words::falling,
    },
    TidyRule {
        name: "type-names",
        claim: "type names in more than two modules become fewer",
        check: type_names::distinct,
    },
    TidyRule {
        name: "history",
        claim: "each commit has a short subject, and a body that says why",
        check: history::explained,
    },
    TidyRule {
        name: "generated",
        claim: "what is generated is what `cargo xtask codegen` writes",
        check: |_| generated(),
    },
];

fn generated() -> Vec<TidyFinding> {
    let stale = codegen::stale().unwrap_or_else(|error| vec![format!("{error:#}")]);
    let finding = |place| TidyFinding {
        place,
        remedy: "run cargo xtask codegen".to_owned(),
    };
    stale.into_iter().map(finding).collect()
}

/// Prints violations and fails when there are any; with `--record` writes the counts instead.
pub(crate) fn run(args: &TidyArgs) -> Result<ExitCode> {
    if args.record {
        let sources = WorkspaceSources::read()?;
        let mut counts = words::counts(&sources);
        counts.extend(type_names::counts(&sources));
        record::write(&counts)?;
        return Ok(ExitCode::SUCCESS);
    }
    let tally = check()?;
    println!("{} rules hold, {} do not", tally.passed, tally.failed);
    println!("{}", advisories::age()?);
    Ok(if tally.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints and counts violations.
pub(crate) fn check() -> Result<Tally> {
    let sources = WorkspaceSources::read()?;
    let mut tally = Tally::default();
    for rule in RULES {
        let findings = (rule.check)(&sources);
        tally.add(Tally::one(findings.is_empty()));
        if !findings.is_empty() {
            println!("{}: {}, but:", rule.name, rule.claim);
        }
        for TidyFinding { place, remedy } in findings {
            println!("  {place}: {remedy}");
        }
    }
    Ok(tally)
}
