//! `atoll host check`: mistakes in the records of hosts.

use std::path::PathBuf;

use clap::Args;
use host_records::check::{CHECKS, CheckReport, CheckSettings, check};
use host_records::{MAX_FILE, RecordFile};
use service::{Error, ResultExt as _};

use super::input::{self, ApiGroupsArgs};
use crate::catalog::table::table;
use crate::output_format::FormatArgs;
use crate::terminal;

/// Arguments of `check`.
#[derive(Debug, Clone, Args)]
pub(crate) struct CheckArgs {
    /// Files with YAML or JSON documents, which are one set; - reads standard input
    #[arg(required_unless_present = "list", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Accept hosts whose secret is in no file
    #[arg(long)]
    secrets_elsewhere: bool,
    #[command(flatten)]
    format: FormatArgs,
    /// List the checks
    #[arg(long, conflicts_with_all = ["files", "format", "json"])]
    list: bool,
    #[command(flatten)]
    groups: ApiGroupsArgs,
}

/// Checks the files; returns whether they have no errors.
///
/// Errors: a file cannot be read.
pub(super) fn run(arguments: &CheckArgs) -> Result<bool, Error> {
    if arguments.list {
        list();
        return Ok(true);
    }
    let settings = CheckSettings {
        groups: arguments.groups.read()?,
        has_secrets_elsewhere: arguments.secrets_elsewhere,
    };
    let files = arguments.files.iter().map(|path| {
        let content = input::read(path, MAX_FILE)?;
        Ok(RecordFile::read(&input::name(path), &content))
    });
    let report = check(&files.collect::<Result<Vec<_>, Error>>()?, &settings);
    if arguments.format.is_json() {
        let text = serde_json::to_string(&report);
        terminal::print(&text.doing("writing the report")?);
    } else {
        for finding in &report.findings {
            terminal::print(&finding.to_string());
        }
        terminal::line(&summary(&report));
    }
    Ok(report.errors() == 0)
}

fn list() {
    let rows: Vec<_> = CHECKS
        .iter()
        .map(|check| [check.id.to_owned(), check.doc.to_owned()])
        .collect();
    terminal::print(&table(["CHECK", "RECORDS ARE RIGHT IF"], &rows));
}

/// The numbers of mistakes and of checked records.
pub(super) fn summary(report: &CheckReport) -> String {
    let mistakes = [
        counted(report.errors(), "error"),
        counted(report.warnings(), "warning"),
    ];
    let records = report.records;
    let records = [
        counted(records.hosts, "host"),
        counted(records.secrets, "secret"),
        counted(records.machines, "machine"),
    ];
    let mut parts = vec![format!("{} in {}", mistakes.join(", "), records.join(", "))];
    if report.records.others > 0 {
        let others = counted(report.records.others, "record");
        parts.push(format!("{others} of other kinds not checked"));
    }
    if report.left_out > 0 {
        parts.push(format!("{} not shown", report.left_out));
    }
    parts.join("; ")
}

fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
