use std::collections::BTreeSet;
use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

mod cases;

const CONTROL_NODE: &str = include_str!("../../fixtures/control-node.yaml");

fn checked(files: &[(&str, &str)], settings: &CheckSettings) -> CheckReport {
    let files: Vec<_> = files
        .iter()
        .map(|(name, text)| RecordFile::read(name, text.as_bytes()))
        .collect();
    check(&files, settings)
}

fn found(text: &str) -> CheckReport {
    checked(&[("f", text)], &CheckSettings::default())
}

fn lines(report: &CheckReport) -> Vec<String> {
    report.findings.iter().map(ToString::to_string).collect()
}

/// The control node with texts replaced.
fn changed(changes: &[(&str, &str)]) -> String {
    changes
        .iter()
        .fold(CONTROL_NODE.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from:?} is not there");
            text.replacen(from, to, 1)
        })
}

/// The cases, each below its changes.
fn all_findings() -> String {
    let mut text = String::new();
    for changes in cases::CASES {
        for (from, to) in *changes {
            writeln!(text, "{from:?} -> {to:?}").unwrap();
        }
        for finding in found(&changed(changes)).findings {
            writeln!(text, "    {} {finding}", finding.check).unwrap();
        }
    }
    text
}

#[test]
fn the_records_of_the_specification_have_no_mistake() {
    let report = found(CONTROL_NODE);
    assert_eq!(lines(&report), [""; 0]);
    let records = report.records;
    assert_eq!(
        (
            records.hosts,
            records.secrets,
            records.machines,
            records.others
        ),
        (1, 1, 1, 0)
    );
}

/// "Apply the credential secret and a host record" of the specification's transition to `externally provisioned`.
#[test]
fn an_unmanaged_host_and_its_later_details_have_no_mistake() {
    let unmanaged = "apiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\n\
        metadata: {name: a, namespace: openshift-machine-api}\nspec: {online: true}\n";
    assert_eq!(lines(&found(unmanaged)), [""; 0]);
    let documents: Vec<_> = CONTROL_NODE.split("---\n").collect();
    let details = format!("{}---\n{}", documents[1], documents[2]);
    assert_eq!(lines(&found(&details)), [""; 0]);
}

#[test]
fn findings() {
    insta::assert_snapshot!(all_findings());
}

#[test]
fn each_check_fires_and_each_case_has_findings() {
    let mut fired: BTreeSet<&str> = BTreeSet::new();
    for changes in cases::CASES {
        let report = found(&changed(changes));
        let is_other_kind = report.records.others > 0;
        assert!(!report.findings.is_empty() || is_other_kind, "{changes:?}");
        fired.extend(report.findings.iter().map(|finding| finding.check));
    }
    let mut all: BTreeSet<&str> = CHECKS.iter().map(|check| check.id).collect();
    assert_eq!(all.len(), CHECKS.len());
    all.insert(table::SYNTAX.id);
    assert_eq!(fired, all);
}

#[test]
fn records_of_several_files_are_one_set() {
    let documents: Vec<_> = CONTROL_NODE.split("---\n").collect();
    let files = [
        ("secret", documents[1]),
        ("host", documents[2]),
        ("machine", documents[3]),
    ];
    let report = checked(&files, &CheckSettings::default());
    assert_eq!(lines(&report), [""; 0]);
    let report = checked(&[files[2], files[1]], &CheckSettings::default());
    assert_eq!(
        lines(&report),
        [
            "host:10:22: BareMetalHost/cp-0: spec.bmc.credentialsName: is not among the secrets; add the secret to the files"
        ]
    );
    let elsewhere = CheckSettings {
        has_secrets_elsewhere: true,
        ..CheckSettings::default()
    };
    assert_eq!(lines(&checked(&[files[2], files[1]], &elsewhere)), [""; 0]);
}

#[test]
fn findings_are_in_the_order_of_the_files_and_lines() {
    let wrong = "kind: Machine\n---\nkind: Machine\n";
    let report = checked(&[("b", wrong), ("a", wrong)], &CheckSettings::default());
    let places: Vec<_> = report
        .findings
        .iter()
        .map(|it| (it.file.as_str(), it.line))
        .collect();
    let mut sorted = places.clone();
    sorted.sort_by_key(|(file, line)| (*file == "a", *line));
    assert_eq!(places, sorted);
    assert_eq!(places.first().map(|it| it.0), Some("b"));
    assert_eq!(places.last().map(|it| it.0), Some("a"));
}

#[test]
fn other_groups_are_accepted_where_they_are_set() {
    let text = changed(&[(
        "apiVersion: metal3.io/v1alpha1",
        "apiVersion: metal3.example.com/v1",
    )])
    .replace(
        "metal3.io/BareMetalHost",
        "metal3.example.com/BareMetalHost",
    );
    assert_ne!(found(&text).errors(), 0);
    let mut settings = CheckSettings::default();
    settings.groups.host = "metal3.example.com/v1".to_owned();
    assert_eq!(lines(&checked(&[("f", &text)], &settings)), [""; 0]);
}

#[test]
fn findings_are_bounded() {
    let text = "{\"kind\": \"Machine\"}\n".repeat(2000);
    let report = found(&text);
    assert_eq!(report.findings.len(), 1000);
    assert_eq!(
        report.findings.len() + report.left_out,
        report.errors() + report.warnings()
    );
    assert!(report.left_out > 0);
    let long = format!("{{\"kind\": \"Machine\", \"{}\": 1}}", "x".repeat(100_000));
    assert!(
        found(&long)
            .findings
            .iter()
            .all(|it| it.to_string().len() < 1000)
    );
}

/// Each record names another that is not there: look-ups and suggestions must not be quadratic.
#[test]
fn large_sets_are_checked() {
    let mut text = String::new();
    for number in 0..5000 {
        let host = format!(
            r#"{{"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": {{"name": "h{number}", "namespace": "n"}},
            "spec": {{"online": true, "unknown": 1, "bmc": {{"address": "redfish://b/x", "credentialsName": "s-{number}"}},
            "consumerRef": {{"kind": "Machine", "apiVersion": "machine.openshift.io/v1beta1", "namespace": "n", "name": "n-{number}"}}}}}}"#
        );
        let machine = format!(r#"{{"kind": "Machine", "metadata": {{"name": "m{number}"}}}}"#);
        text.extend([host, machine]);
    }
    let report = found(&text);
    assert_eq!(
        (report.records.hosts, report.records.machines),
        (5000, 5000)
    );
    assert!(report.errors() > 20_000);
}

#[test]
fn reports_are_json() {
    let report = found(&changed(&[("bootMode: UEFI", "bootMode: uefi")]));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["errors"], 1);
    assert_eq!(json["records"]["hosts"], 1);
    let finding = &json["findings"][0];
    assert_eq!(finding["severity"], "error");
    assert_eq!(finding["check"], "fields");
    assert_eq!(finding["field"], "spec.bootMode");
    assert_eq!(
        (finding["line"].as_u64(), finding["column"].as_u64()),
        (Some(25), Some(13))
    );
}

proptest! {
    #[test]
    fn values_of_secrets_are_never_shown(
        secret in "[A-Za-z0-9+/]{14,30}={0,2}",
        place in 0usize..7,
    ) {
        let text = match place {
            0 => changed(&[("Y2Fsdmlu", &secret)]),
            1 => changed(&[("cm9vdA==", &secret)]),
            2 => changed(&[("password: Y2Fsdmlu", &format!("password: [\"{secret}\"]"))]),
            3 => changed(&[("data:", &format!("stringData: {{password: \"{secret}\\n\", x: \"{secret}\"}}\ndata:"))]),
            4 => changed(&[("type: Opaque", &format!("type: Opaque\nimmutable: \"{secret}\""))]),
            5 => changed(&[("Y2Fsdmlu", &format!("!!int \"{secret}\""))]),
            _ => changed(&[("://10.0.0.10/", &format!("://root:{secret}@10.0.0.10/"))]),
        };
        let report = found(&text);
        prop_assert!(!all_text(&report).contains(&secret), "{}", all_text(&report));
    }

    #[test]
    fn mutilated_records_are_checked_without_panic(
        cut in 0usize..1900, length in 0usize..60, text in "(\\[|\\]|: |- |~|5|true|\"|x|\n {0,6}|&a |\\*a){0,5}"
    ) {
        let mut whole = CONTROL_NODE.to_owned();
        let from = cut.min(whole.len());
        let to = (from + length).min(whole.len());
        whole.replace_range(from..to, &text);
        found(&whole);
    }
}

fn all_text(report: &CheckReport) -> String {
    format!("{report:?}{}", serde_json::to_string(report).unwrap())
}
