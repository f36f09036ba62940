//! The report of a rehearsal: verdict and findings.

use std::collections::BTreeMap;
use std::mem;

use declarations::site::{SiteFinding, is_consequence};
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use crate::installation::InstallationOutcome;

/// Findings of the data and of the installations. Serialized: `verdict`, `good` and all `findings`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RehearsalReport {
    data: Vec<SiteFinding>,
    played: Vec<InstallationOutcome>,
}

/// A finding as a report has it.
#[derive(Debug, Serialize)]
struct ReportedFinding<'a> {
    id: &'a str,
    host: &'a str,
    observed: &'a str,
    required: &'a str,
    fix: &'a str,
    /// Number of clusters that have it; none: it is one of the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    clusters: Option<usize>,
}

impl RehearsalReport {
    /// The report of findings in the data and of played installations: one cause is one finding, also if all hosts have
    /// it.
    pub fn new(data: Vec<SiteFinding>, mut played: Vec<InstallationOutcome>) -> Self {
        for outcome in &mut played {
            let findings = mem::take(&mut outcome.findings).into_iter();
            let causes = findings.filter(|one| !is_consequence(one, &data));
            outcome.findings = of_all_hosts(causes);
        }
        Self { data, played }
    }

    /// The report of a site whose installation was not played.
    pub fn of_data(data: Vec<SiteFinding>) -> Self {
        Self::new(data, Vec::new())
    }

    /// Whether no mistake was found and each cluster was installed.
    pub fn is_good(&self) -> bool {
        let mut played = self.played.iter();
        self.data.is_empty() && played.all(|one| one.is_installed && one.findings.is_empty())
    }

    /// Whether installations were played.
    pub fn is_played(&self) -> bool {
        !self.played.is_empty()
    }

    /// Findings of the data.
    pub fn of_site(&self) -> &[SiteFinding] {
        &self.data
    }

    /// Findings of the installations, each once, with the number of clusters that have it.
    pub fn of_clusters(&self) -> BTreeMap<&SiteFinding, usize> {
        let mut counts = BTreeMap::new();
        for finding in self.played.iter().flat_map(|one| &one.findings) {
            *counts.entry(finding).or_default() += 1;
        }
        counts
    }

    /// The result in a few words, as "installed, no mistakes".
    pub fn verdict(&self) -> String {
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
}

impl Serialize for RehearsalReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let data = self.data.iter().map(|one| reported(one, None));
        let played = self.of_clusters().into_iter();
        let played = played.map(|(one, count)| reported(one, Some(count)));
        let findings: Vec<_> = data.chain(played).collect();
        let mut report = serializer.serialize_struct("RehearsalReport", 3)?;
        report.serialize_field("verdict", &self.verdict())?;
        report.serialize_field("good", &self.is_good())?;
        report.serialize_field("findings", &findings)?;
        report.end()
    }
}

/// Findings that differ in nothing but the host become one that names all hosts.
fn of_all_hosts(findings: impl Iterator<Item = SiteFinding>) -> Vec<SiteFinding> {
    let mut merged: Vec<SiteFinding> = Vec::new();
    let mut positions: BTreeMap<SiteFinding, usize> = BTreeMap::new();
    for finding in findings {
        let host = finding.host.clone();
        let cause = SiteFinding {
            host: String::new(),
            ..finding.clone()
        };
        match positions.get(&cause).map(|at| &mut merged[*at].host) {
            Some(hosts) if !hosts.is_empty() && !host.is_empty() => {
                // Hosts may share a name, which is a mistake of its own.
                if hosts.split(", ").all(|known| known != host) {
                    hosts.push_str(", ");
                    hosts.push_str(&host);
                }
            }
            _ => {
                positions.insert(cause, merged.len());
                merged.push(finding);
            }
        }
    }
    merged
}

fn reported(finding: &SiteFinding, clusters: Option<usize>) -> ReportedFinding<'_> {
    ReportedFinding {
        id: &finding.id,
        host: &finding.host,
        observed: &finding.observed,
        required: &finding.required,
        fix: &finding.fix,
        clusters,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(is_installed: bool, findings: Vec<SiteFinding>) -> InstallationOutcome {
        InstallationOutcome {
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
        let good = RehearsalReport::new(Vec::new(), vec![outcome(true, Vec::new())]);
        assert!(good.is_good());
        assert_eq!(good.verdict(), "installed, no mistakes");
        let bad = outcome(false, vec![finding.clone()]);
        let many = RehearsalReport::new(
            Vec::new(),
            vec![outcome(true, Vec::new()), bad.clone(), bad.clone()],
        );
        assert!(!many.is_good());
        assert_eq!(many.verdict(), "1 of 3 clusters installed, 1 mistake");
        let json = serde_json::to_value(&many).unwrap();
        assert_eq!(json["findings"][0]["clusters"], 2);
        let one = RehearsalReport::new(vec![finding], vec![bad]);
        assert_eq!(one.verdict(), "not installed (insufficient), 2 mistakes");
        let finding =
            json!({ "id": "ntp-synced", "host": "", "observed": "", "required": "", "fix": "" });
        let mut counted = finding.clone();
        counted["clusters"] = json!(1);
        let expected =
            json!({ "verdict": one.verdict(), "good": false, "findings": [finding, counted] });
        assert_eq!(serde_json::to_value(&one).unwrap(), expected);
    }

    #[test]
    fn one_cause_is_one_mistake() {
        let unsynced = |host: &str| SiteFinding {
            id: "ntp-synced".to_owned(),
            host: host.to_owned(),
            ..SiteFinding::default()
        };
        let played = outcome(true, vec![unsynced("a"), unsynced("b"), unsynced("c")]);
        let dead = RehearsalReport::new(Vec::new(), vec![played.clone()]);
        assert_eq!(dead.verdict(), "installed, 1 mistake");
        let findings: Vec<_> = dead.of_clusters().into_keys().collect();
        assert_eq!(findings, [&unsynced("a, b, c")]);
        let missing = SiteFinding {
            id: "time-source-missing".to_owned(),
            ..SiteFinding::default()
        };
        let missing = RehearsalReport::new(vec![missing], vec![played]);
        assert_eq!(missing.verdict(), "installed, 1 mistake");
    }

    #[test]
    fn an_installed_cluster_with_a_mistake_is_not_good() {
        let finding = SiteFinding::default();
        assert!(!RehearsalReport::new(vec![finding], vec![outcome(true, Vec::new())]).is_good());
        assert!(!RehearsalReport::of_data(vec![SiteFinding::default()]).is_good());
        assert!(RehearsalReport::of_data(Vec::new()).is_good());
    }
}
