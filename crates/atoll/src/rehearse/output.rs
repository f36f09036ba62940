//! Output of rehearsals: progress lines, findings, and the verdict.

use std::time::Duration;

use rehearsal::{RehearsalEvent, RehearsalReport, SiteFinding};

use crate::terminal::print;

/// Prints a change of the installation, with the time since the hosts were switched on.
pub(super) fn print_event(elapsed: Duration, event: &RehearsalEvent<'_>) {
    print(&format!(
        "{:>7.1} s  {}",
        elapsed.as_secs_f64(),
        line(event)
    ));
}

fn line(event: &RehearsalEvent<'_>) -> String {
    match event {
        RehearsalEvent::Booting { hosts } => format!("{hosts} hosts boot"),
        RehearsalEvent::Accepted => "installation accepted".to_owned(),
        RehearsalEvent::Joining { hosts } => format!("{hosts} hosts join"),
        RehearsalEvent::Cluster { name, state } => {
            format!("{:<24} {state}", format!("cluster {name}"))
        }
        RehearsalEvent::Host { name, state } => format!("{name:<24} {state}"),
        RehearsalEvent::Refused { host, reason } => format!("{host}: {reason}"),
    }
}

/// Prints the findings of the installations and the verdict; as JSON all findings.
pub(super) fn print_report(report: &RehearsalReport, as_json: bool) {
    if as_json {
        // Members in the order of their names, as in all JSON of this program.
        let json = serde_json::to_value(report).unwrap_or_default();
        print(&format!("{json:#}"));
        return;
    }
    if !report.is_played() {
        print_findings("Mistakes in the data of the site", report.of_site());
    }
    let findings = report.of_clusters().into_keys();
    let findings: Vec<SiteFinding> = findings.cloned().collect();
    print_findings("Mistakes that the installation met", &findings);
    print(&format!("Verdict: {}.", report.verdict()));
}

/// Prints findings below a heading; nothing without any.
pub(super) fn print_findings(heading: &str, findings: &[SiteFinding]) {
    if findings.is_empty() {
        return;
    }
    print(&format!("{heading}:"));
    for finding in findings {
        let host = if finding.host.is_empty() {
            "cluster"
        } else {
            &finding.host
        };
        print(&format!("  {host}: {}", finding.id));
        for (name, text) in [
            ("observed", &finding.observed),
            ("required", &finding.required),
            ("fix", &finding.fix),
        ] {
            if !text.is_empty() {
                print(&format!("    {name:<9} {text}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_aligned() {
        let host = RehearsalEvent::Host {
            name: "control-0",
            state: "known",
        };
        let cluster = RehearsalEvent::Cluster {
            name: "site-1",
            state: "ready",
        };
        assert_eq!(line(&host), "control-0                known");
        assert_eq!(line(&cluster), "cluster site-1           ready");
    }
}
