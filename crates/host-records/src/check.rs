//! Checks of host records, as a table.
//!
//! The files are one set: a secret or a machine may be in another file than its host. A finding has the position of the
//! mistake, its field, and the remedy. Values of secrets are in no finding.

mod annotations;
mod bmc;
mod boot_mac;
mod consumer;
mod devices;
pub(crate) mod finding;
mod identity;
mod image;
mod kinds;
mod machine;
mod power;
pub(crate) mod schema;
mod scope;
mod secret;
pub(crate) mod shape;
mod table;

pub use finding::{CheckReport, FindingSeverity, RecordCounts, RecordFinding};
pub use scope::{CheckSettings, CheckedKind};
pub use table::{CHECKS, RecordCheck};

use finding::FindingList;
use scope::CheckScope;

use crate::RecordFile;

/// Checks all records of the files.
pub fn check(files: &[RecordFile], settings: &CheckSettings) -> CheckReport {
    let scope = CheckScope::new(files, settings);
    let mut findings = FindingList::new(files);
    findings.begin(table::SYNTAX.id);
    for file in files {
        for broken in &file.broken {
            findings.broken(file, broken);
        }
    }
    for check in CHECKS {
        findings.begin(check.id);
        for record in scope.records(check.kind) {
            (check.run)(record, &scope, &mut findings);
        }
    }
    findings.into_report(scope.counts())
}

#[cfg(test)]
mod tests;
