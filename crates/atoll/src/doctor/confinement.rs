//! Results of the sandbox's mechanisms.

use std::path::Path;

use doctor::{CheckGroup, CheckResult, CheckStatus};
use sandbox::{ConfinementReport, Launcher, Mechanism};

/// A result for each mechanism.
pub(super) fn checks(folder: &Path) -> Vec<CheckResult> {
    match Launcher::own().probe(folder) {
        Ok(report) => results(&report),
        Err(error) => vec![result(
            "sandbox".to_owned(),
            CheckStatus::Failed,
            format!("probing in {}: {error}", folder.display()),
            "choose another folder with --probe-dir",
        )],
    }
}

fn results(report: &ConfinementReport) -> Vec<CheckResult> {
    // Programs of images run without a mechanism of lesser importance.
    let status = if report.lacks_essentials() {
        CheckStatus::Failed
    } else {
        CheckStatus::Warning
    };
    let of = |mechanism: Mechanism| {
        let missing = report.missing.iter().find(|one| one.mechanism == mechanism);
        let (status, finding, remedy) = match missing {
            Some(missing) => (
                status,
                format!("missing: {}", missing.reason),
                mechanism.remedy(),
            ),
            None if report.has(mechanism) => (CheckStatus::Passed, "available".to_owned(), ""),
            None => (CheckStatus::Passed, "not needed".to_owned(), ""),
        };
        result(
            format!("sandbox:{}", mechanism.name()),
            status,
            finding,
            remedy,
        )
    };
    Mechanism::all().map(of).collect()
}

fn result(id: String, status: CheckStatus, finding: String, remedy: &str) -> CheckResult {
    CheckResult {
        id,
        group: CheckGroup::Sandbox,
        status,
        finding,
        remedy: remedy.to_owned(),
    }
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
        let results = results(&report);
        assert_eq!(results.len(), Mechanism::all().count());
        let of = |mechanism: Mechanism| {
            let id = format!("sandbox:{}", mechanism.name());
            let found = results.iter().find(|one| one.id == id);
            found.unwrap().clone()
        };
        assert_eq!(of(Mechanism::Seccomp).finding, "available");
        assert_eq!(
            of(Mechanism::Landlock).finding,
            "missing: not in the kernel"
        );
        assert_ne!(of(Mechanism::Landlock).status, CheckStatus::Passed);
        assert!(!of(Mechanism::Landlock).remedy.is_empty());
        assert_eq!(of(Mechanism::OwnUser).finding, "not needed");
    }
}
