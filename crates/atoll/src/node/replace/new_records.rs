//! The records of a new node, from a file.

use std::path::Path;

use host_records::check::{CheckSettings, FindingSeverity, check};
use host_records::{MAX_FILE, RecordFile, json_text};
use serde_json::Value;
use service::{Error, ResultExt as _};

use crate::host::input;

/// Secret, BareMetalHost and Machine, in the order of the file.
///
/// Errors: the file cannot be read; a record has a mistake, the first one with its line.
pub(super) fn read(path: &Path) -> Result<Vec<Value>, Error> {
    let doing = || format!("reading {}", input::name(path));
    let content = input::read(path, MAX_FILE)?;
    let file = RecordFile::read(&input::name(path), &content);
    let report = check(std::slice::from_ref(&file), &CheckSettings::default());
    let is_error = |severity: &FindingSeverity| matches!(severity, FindingSeverity::Error);
    if let Some(finding) = report.findings.iter().find(|it| is_error(&it.severity)) {
        return Err(Error::new(doing(), finding.to_string()));
    }
    let records = file.records().map(|record| {
        let text = json_text(record.root).doing(doing)?;
        serde_json::from_str(&text).doing(doing)
    });
    records.collect()
}
