//! `atoll doctor`: sandbox mechanisms of this machine.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use sandbox::{ConfinementReport, Launcher, Mechanism};

use crate::catalog::table::table;
use crate::terminal::{notice, print};

/// Arguments of `atoll doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Writable folder for probing the sandbox. Default: the temporary folder
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Prints a row per mechanism of the sandbox; the value is the exit code.
pub(crate) fn run(arguments: &DoctorArgs) -> ExitCode {
    let folder = arguments.folder.clone();
    let folder = folder.unwrap_or_else(std::env::temp_dir);
    let report = match Launcher::own().probe(&folder) {
        Ok(report) => report,
        Err(error) => {
            let folder = folder.display();
            notice(&format!(
                "probing the sandbox in {folder}: {error}; choose another folder with --folder"
            ));
            return ExitCode::FAILURE;
        }
    };
    print(&table(["SANDBOX", "STATE", "REMEDY"], &rows(&report)));
    if report.lacks_essentials() {
        notice("programs of release images cannot be confined on this machine");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn rows(report: &ConfinementReport) -> Vec<[String; 3]> {
    let row = |mechanism: Mechanism| {
        let missing = report.missing.iter().find(|one| one.mechanism == mechanism);
        let (state, remedy) = match missing {
            Some(missing) => (format!("missing: {}", missing.reason), mechanism.remedy()),
            None if report.has(mechanism) => ("available".to_owned(), ""),
            None => ("not needed".to_owned(), ""),
        };
        [mechanism.name().to_owned(), state, remedy.to_owned()]
    };
    Mechanism::all().map(row).collect()
}

#[cfg(test)]
mod tests {
    use sandbox::Missing;

    use super::*;

    #[test]
    fn missing_mechanisms_have_a_remedy() {
        let report = ConfinementReport {
            active: vec![Mechanism::Seccomp],
            missing: vec![Missing {
                mechanism: Mechanism::Landlock,
                reason: "not in the kernel".to_owned(),
            }],
        };
        let rows = rows(&report);
        assert_eq!(rows.len(), Mechanism::all().count());
        let of = |mechanism: Mechanism| {
            let row = rows.iter().find(|row| row[0] == mechanism.name());
            row.unwrap().clone()
        };
        assert_eq!(of(Mechanism::Seccomp)[1], "available");
        assert_eq!(of(Mechanism::Landlock)[1], "missing: not in the kernel");
        assert!(!of(Mechanism::Landlock)[2].is_empty());
        assert_eq!(of(Mechanism::OwnUser)[1], "not needed");
    }
}
