//! Configurations that others wrote, each with nmstate's verdict.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::{parse, problems};

/// Configurations on which this check is stricter than nmstate, each for a reason.
const STRICTER: &[(&str, &str)] = &[
    ("058-nmstate-hostname-empty.yaml", NO_INTERFACES),
    ("059-nmstate-hostname.yaml", NO_INTERFACES),
    ("081-doc-dns-purge.yaml", NO_INTERFACES),
    ("155-issue-blackhole-only.yaml", NO_INTERFACES),
    ("158-issue-route-rules-two-tables.yaml", NO_INTERFACES),
    ("159-issue-route-rule-local-table.yaml", NO_INTERFACES),
    (
        "193-nmpolicy-capture-names.yaml",
        "captures need the policy around them",
    ),
];
const NO_INTERFACES: &str =
    "assisted-service refuses the network of a host without interfaces, too";

/// Configurations that only nmstate refuses.
const LAXER: &[(&str, &str)] = &[
    ("084-doc-team.yaml", "a newer nmstate may know the type"),
    (
        "170-issue-ports-match-proposal.yaml",
        "settings of single ports are not checked",
    ),
];

#[test]
fn networks_have_nmstates_verdicts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/networks");
    let verdicts = fs::read_to_string(folder.join("verdicts.txt")).unwrap();
    let (mut refusals, mut wrong) = (String::new(), Vec::new());
    for line in verdicts.lines() {
        let (name, verdict) = line.split_once(' ').unwrap();
        let text = fs::read_to_string(folder.join(name)).unwrap();
        let found: Vec<String> = match parse("network", &text) {
            Ok(document) => problems(&document, None)
                .iter()
                .map(ToString::to_string)
                .collect(),
            Err(error) => vec![error.to_string()],
        };
        let is_listed = |list: &[(&str, &str)]| list.iter().any(|(known, _)| *known == name);
        let expected = match verdict {
            "accepted" => is_listed(STRICTER),
            "refused" => !is_listed(LAXER),
            _ => !found.is_empty(),
        };
        if expected == found.is_empty() {
            wrong.push(format!("{name} is {verdict} by nmstate: {found:?}"));
        }
        for text in found {
            writeln!(refusals, "{name}: {text}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    insta::assert_snapshot!(refusals);
}
