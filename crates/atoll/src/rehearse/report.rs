//! The report of a rehearsal: verdict and findings, for people or as JSON.

use std::collections::BTreeMap;

use rules::site::SiteFinding;
use serde_json::{Value, json};

use super::play::Outcome;
use crate::terminal::print;

/// Findings of the data and of the installations.
#[derive(Debug, Default)]
pub(super) struct Report {
    data: Vec<SiteFinding>,
    played: Vec<Outcome>,
}

impl Report {
    pub(super) fn new(data: Vec<SiteFinding>, played: Vec<Outcome>) -> Self {
        Self { data, played }
    }

    /// The report of a site whose installation was not played.
    pub(super) fn of_data(data: Vec<SiteFinding>) -> Self {
        Self::new(data, Vec::new())
    }

    /// Whether no mistake was found and each cluster was installed.
    pub(super) fn is_good(&self) -> bool {
        let mut played = self.played.iter();
        self.data.is_empty() && played.all(|one| one.is_installed && one.findings.is_empty())
    }

    /// Findings of the installations, each once, with the number of clusters that have it.
    fn of_clusters(&self) -> BTreeMap<&SiteFinding, usize> {
        let mut counts = BTreeMap::new();
        for finding in self.played.iter().flat_map(|one| &one.findings) {
            *counts.entry(finding).or_default() += 1;
        }
        counts
    }

    fn verdict(&self) -> String {
        let installed = self.played.iter().filter(|one| one.is_installed).count();
        let mistakes = self.data.len() + self.of_clusters().len();
        let mistakes = match mistakes {
            0 => "no mistakes".to_owned(),
            1 => "1 mistake".to_owned(),
            count => format!("{count} mistakes"),
        };
        match (self.played.len(), installed) {
            (0, _) => format!("not played, {mistakes}"),
            (1, 1) => format!("installed, {mistakes}"),
            (1, _) => {
                let status = self.played.iter().map(|one| one.status.as_str());
                format!("not installed ({}), {mistakes}", status.collect::<String>())
            }
            (all, some) => format!("{some} of {all} clusters installed, {mistakes}"),
        }
    }

    /// Prints the findings of the installations and the verdict; as JSON all findings.
    pub(super) fn print(&self, as_json: bool) {
        if as_json {
            print(&format!("{:#}", self.json()));
            return;
        }
        if self.played.is_empty() {
            print_findings("Mistakes in the data of the site", &self.data);
        }
        let findings: Vec<SiteFinding> = self.of_clusters().into_keys().cloned().collect();
        print_findings("Mistakes that the installation met", &findings);
        print(&format!("Verdict: {}.", self.verdict()));
    }

    fn json(&self) -> Value {
        let played = self.of_clusters().into_iter().map(|(finding, count)| {
            let mut finding = of(finding);
            finding["clusters"] = json!(count);
            finding
        });
        json!({
            "verdict": self.verdict(),
            "good": self.is_good(),
            "findings": self.data.iter().map(of).chain(played).collect::<Vec<_>>(),
        })
    }
}

fn of(finding: &SiteFinding) -> Value {
    json!({ "id": finding.id, "host": finding.host, "observed": finding.observed,
        "required": finding.required, "fix": finding.fix })
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

    fn outcome(is_installed: bool, findings: Vec<SiteFinding>) -> Outcome {
        Outcome {
            is_installed,
            status: if is_installed {
                "installed"
            } else {
                "insufficient"
            }
            .to_owned(),
            findings,
        }
    }

    #[test]
    fn the_verdict_counts_each_mistake_once() {
        let finding = SiteFinding {
            id: "ntp-synced".to_owned(),
            ..SiteFinding::default()
        };
        let good = Report::new(Vec::new(), vec![outcome(true, Vec::new())]);
        assert!(good.is_good());
        assert_eq!(good.verdict(), "installed, no mistakes");
        let bad = outcome(false, vec![finding.clone()]);
        let many = Report::new(
            Vec::new(),
            vec![outcome(true, Vec::new()), bad.clone(), bad.clone()],
        );
        assert!(!many.is_good());
        assert_eq!(many.verdict(), "1 of 3 clusters installed, 1 mistake");
        assert_eq!(many.json()["findings"][0]["clusters"], 2);
        let one = Report::new(vec![finding], vec![bad]);
        assert_eq!(one.verdict(), "not installed (insufficient), 2 mistakes");
    }

    #[test]
    fn an_installed_cluster_with_a_mistake_is_not_good() {
        let finding = SiteFinding::default();
        assert!(!Report::new(vec![finding], vec![outcome(true, Vec::new())]).is_good());
        assert!(!Report::of_data(vec![SiteFinding::default()]).is_good());
        assert!(Report::of_data(Vec::new()).is_good());
    }
}
