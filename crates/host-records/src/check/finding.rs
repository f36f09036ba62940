//! Findings, and the list that collects them.

use std::collections::BTreeMap;
use std::fmt;

use located_yaml::Position;
use serde::Serialize;

use crate::{BrokenDocument, RecordFile, RecordNode};

/// Findings that are kept: more than one reads.
const MAX_FINDINGS: usize = 1000;
/// Longest name, field, reason or remedy. Units: characters.
const MAX_LENGTH: usize = 300;
/// Longest name that is compared with others. Units: bytes.
const MAX_COMPARED: usize = 100;
/// Most names that one is compared with.
const MAX_CANDIDATES: usize = 200;
/// Longest value that a reason quotes. Units: characters.
const MAX_SHOWN: usize = 60;

/// Weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingSeverity {
    /// The record is refused or cannot work.
    Error,
    /// The record is accepted, and probably not meant so.
    Warning,
}

/// A mistake in a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordFinding {
    /// Weight.
    pub severity: FindingSeverity,
    /// Id of the check.
    pub check: &'static str,
    /// Name of the file.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1. Units: characters.
    pub column: usize,
    /// `Kind/name`.
    pub record: String,
    /// Path of the field, as `spec.bmc.address`; empty for the whole record.
    pub field: String,
    /// The mistake.
    pub reason: String,
    /// The remedy; empty if the reason has it.
    pub remedy: String,
}

/// `FILE:line:column: kind/name: field: reason; remedy`, with `warning: ` after the position of warnings.
impl fmt::Display for RecordFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if self.severity == FindingSeverity::Warning {
            f.write_str("warning: ")?;
        }
        for part in [&self.record, &self.field] {
            if !part.is_empty() {
                write!(f, "{part}: ")?;
            }
        }
        f.write_str(&self.reason)?;
        if self.remedy.is_empty() {
            return Ok(());
        }
        write!(f, "; {}", self.remedy)
    }
}

/// Numbers of records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RecordCounts {
    /// Hosts.
    pub hosts: usize,
    /// Secrets.
    pub secrets: usize,
    /// Machines.
    pub machines: usize,
    /// Records of other kinds, which are not checked.
    pub others: usize,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// Sorted by file, line and column.
    pub findings: Vec<RecordFinding>,
    /// Findings beyond the limit.
    pub left_out: usize,
    /// Checked records.
    pub records: RecordCounts,
    errors: usize,
    warnings: usize,
}

impl CheckReport {
    /// Number of errors, those left out included.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// Number of warnings, those left out included.
    pub fn warnings(&self) -> usize {
        self.warnings
    }
}

/// Collects findings.
pub(crate) struct FindingList<'a> {
    check: &'static str,
    /// Order of the files.
    files: BTreeMap<&'a str, usize>,
    found: Vec<RecordFinding>,
    left_out: usize,
    errors: usize,
    warnings: usize,
}

impl<'a> FindingList<'a> {
    pub(crate) fn new(files: &'a [RecordFile]) -> Self {
        let names = files.iter().map(|file| file.name.as_str());
        Self {
            check: "",
            files: names.zip(0..).collect(),
            found: Vec::new(),
            left_out: 0,
            errors: 0,
            warnings: 0,
        }
    }

    /// Sets the check of the following findings.
    pub(crate) fn begin(&mut self, check: &'static str) {
        self.check = check;
    }

    pub(crate) fn error(
        &mut self,
        record: &RecordNode<'_>,
        path: &[&str],
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let texts = [reason.into(), remedy.into()];
        self.add_at(FindingSeverity::Error, record, path, texts);
    }

    pub(crate) fn warning(
        &mut self,
        record: &RecordNode<'_>,
        path: &[&str],
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let texts = [reason.into(), remedy.into()];
        self.add_at(FindingSeverity::Warning, record, path, texts);
    }

    fn add_at(
        &mut self,
        severity: FindingSeverity,
        record: &RecordNode<'_>,
        path: &[&str],
        texts: [String; 2],
    ) {
        let lookup = record.lookup(path);
        self.add(severity, record, (lookup.place, lookup.field), texts);
    }

    /// Adds a finding at a position and field, with reason and remedy.
    pub(crate) fn add(
        &mut self,
        severity: FindingSeverity,
        record: &RecordNode<'_>,
        (place, field): (Position, String),
        [reason, remedy]: [String; 2],
    ) {
        self.push(RecordFinding {
            severity,
            check: self.check,
            file: record.file.to_owned(),
            line: place.line,
            column: place.column,
            record: label(record),
            field: shortened(field),
            reason: shortened(reason),
            remedy: shortened(remedy),
        });
    }

    pub(crate) fn broken(&mut self, file: &RecordFile, broken: &BrokenDocument) {
        self.push(RecordFinding {
            severity: FindingSeverity::Error,
            check: self.check,
            file: file.name.clone(),
            line: broken.place.line,
            column: broken.place.column,
            record: String::new(),
            field: String::new(),
            reason: shortened(broken.reason.clone()),
            remedy: String::new(),
        });
    }

    /// The known name that a mistyped one may mean. Looks at the first names only, and at none when the list is full:
    /// distances are quadratic.
    pub(crate) fn meant<'n>(
        &self,
        name: &str,
        known: impl IntoIterator<Item = &'n str>,
    ) -> Option<&'n str> {
        if name.len() > MAX_COMPARED || self.found.len() == MAX_FINDINGS {
            return None;
        }
        let short = known.into_iter().take(MAX_CANDIDATES);
        let short = short.filter(|known| known.len() <= MAX_COMPARED);
        model::nearest(name, short, (name.len() / 3).max(1))
    }

    fn push(&mut self, finding: RecordFinding) {
        match finding.severity {
            FindingSeverity::Error => self.errors += 1,
            FindingSeverity::Warning => self.warnings += 1,
        }
        if self.found.len() < MAX_FINDINGS {
            self.found.push(finding);
        } else {
            self.left_out += 1;
        }
    }

    pub(crate) fn into_report(self, records: RecordCounts) -> CheckReport {
        let (files, mut findings) = (self.files, self.found);
        findings.sort_by(|a, b| {
            let place = |it: &RecordFinding| (files.get(&*it.file).copied(), it.line, it.column);
            (place(a), &a.field, &a.reason).cmp(&(place(b), &b.field, &b.reason))
        });
        CheckReport {
            findings,
            left_out: self.left_out,
            records,
            errors: self.errors,
            warnings: self.warnings,
        }
    }
}

/// `Kind/name`.
fn label(record: &RecordNode<'_>) -> String {
    let parts = [record.kind(), record.name()].map(|text| text.escape_debug().to_string());
    let [kind, name] = parts.map(shortened);
    match (kind.as_str(), name.as_str()) {
        ("", name) => name.to_owned(),
        (_, "") => kind,
        _ => format!("{kind}/{name}"),
    }
}

fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_LENGTH) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The beginning of a value, in quotes.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
