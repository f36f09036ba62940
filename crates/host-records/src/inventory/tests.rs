use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::prelude::*;
use secrecy::SecretString;
use serde_json::Value as Json;

use super::*;
use crate::check::{CheckSettings, check};
use crate::{ApiGroups, RecordFile};

const INVENTORY: &str = include_str!("../../fixtures/inventory.yaml");
const CONTROL_NODE: &str = include_str!("../../fixtures/control-node.yaml");

fn passwords() -> BTreeMap<String, SecretString> {
    BTreeMap::from([("bmc.password".to_owned(), "calvin".into())])
}

fn rendered(text: &str) -> Result<Rendering, Vec<String>> {
    let groups = ApiGroups::default();
    let result = read("i.yaml", text.as_bytes(), &groups)
        .and_then(|inventory| render(&inventory, &passwords(), &groups));
    result.map_err(|report| report.findings.iter().map(ToString::to_string).collect())
}

fn yaml(rendering: &Rendering) -> String {
    rendering.hosts.iter().map(RenderedHost::to_yaml).collect()
}

fn values(text: &str) -> Vec<Json> {
    let file = RecordFile::read("f", text.as_bytes());
    assert!(file.broken.is_empty(), "{:?}", file.broken);
    file.records()
        .map(|record| record.decode().unwrap())
        .collect()
}

#[test]
fn the_first_host_is_the_control_node_of_the_specification() {
    let rendering = rendered(INVENTORY).unwrap();
    assert_eq!(values(&rendering.hosts[0].to_yaml()), values(CONTROL_NODE));
    assert_eq!(values(&rendering.hosts[0].to_json()), values(CONTROL_NODE));
}

#[test]
fn records() {
    let rendering = rendered(INVENTORY).unwrap();
    insta::assert_snapshot!(yaml(&rendering));
    let warnings: Vec<_> = rendering.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "i.yaml:27:8: warning: BareMetalHost/worker-0: spec.bmc.address: sends the password in clear text; remove +http, if the BMC has HTTPS"
        ]
    );
}

#[test]
fn rendered_records_are_accepted_by_the_check() {
    let rendering = rendered(INVENTORY).unwrap();
    for text in [
        yaml(&rendering),
        rendering.hosts.iter().map(RenderedHost::to_json).collect(),
    ] {
        let file = RecordFile::read("f", text.as_bytes());
        let report = check(&[file], &CheckSettings::default());
        assert_eq!(report.errors(), 0, "{:?}", report.findings);
        assert_eq!(
            (
                report.records.hosts,
                report.records.secrets,
                report.records.machines
            ),
            (5, 4, 3)
        );
    }
}

/// Changes of the inventory.
static MISTAKES: &[(&str, &str)] = &[
    ("52:54:00:00:00:11", "52-54-00-00-00-11"),
    ("52:54:00:00:00:11", "52:54:00:00:00:10"),
    ("bmc: fd00::12", "bmc: 10.0.0.10"),
    ("bmc: fd00::12", "bmc: fd00::12:x"),
    ("name: cp-1", "name: cp-0"),
    ("name: cp-1\n", "nam: cp-1\n"),
    ("bootMode: UEFISecureBoot", "bootMode: uefi"),
    ("scheme: idrac-virtualmedia", "scheme: idrac-virtualmedi"),
    ("    username: root\n", ""),
    ("    passwordFile: bmc.password\n", ""),
    (
        "    passwordFile: bmc.password\n",
        "    passwordFile: other\n",
    ),
    (
        "    passwordFile: bmc.password\n",
        "    passwordFile: a\n    password: b\n",
    ),
    ("cluster: prod-x7k2p\n", ""),
    ("[10.0.0.20]", "[10.0.0.20/24, x, 5]"),
    ("rootDevice: /dev/sda", "rootDevice: sda"),
    ("rootDevice: /dev/sda", "rootDevice: [sda]"),
    ("minSizeGigabytes: 120", "minSizeGigabytes: '120'"),
    ("password: \"p@ss: word\"", "password: 12345678"),
    ("password: \"p@ss: word\"", "password: [\"hidden\"]"),
    ("password: \"p@ss: word\"", "password: \"hidden\\n\\nx\""),
    ("machine: prod-x7k2p-master-1", "machine: Master_1"),
    ("hosts:\n", "hosts: []\nhost:\n"),
    ("hosts:\n", "---\nhosts:\n"),
    ("online: false", "online: off\n  mac: a"),
    ("machine: prod-x7k2p-master-1", "machine: {a: b}"),
    (
        "role: master\n  mac: 52:54:00:00:00:12",
        "role: Master\n  mac: 52:54:00:00:00:12",
    ),
];

#[test]
fn mistakes_have_positions_of_the_inventory() {
    let mut text = String::new();
    for (from, to) in MISTAKES {
        assert!(INVENTORY.contains(from), "{from}");
        let changed = INVENTORY.replacen(from, to, 1);
        let mut mistakes = rendered(&changed).err().unwrap_or_default();
        mistakes.retain(|line| !line.contains("clear text"));
        assert!(!mistakes.is_empty(), "{to}");
        writeln!(text, "{from:?} -> {to:?}").unwrap();
        for mistake in mistakes {
            writeln!(text, "    {mistake}").unwrap();
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn empty_inventories_are_refused() {
    for (text, line) in [
        ("", 1),
        ("# nothing\n", 1),
        ("5", 1),
        ("hosts: ~\n", 1),
        ("a: [", 1),
    ] {
        let mistakes = rendered(text).unwrap_err();
        assert!(
            !mistakes.is_empty() && mistakes[0].starts_with(&format!("i.yaml:{line}:")),
            "{mistakes:?}"
        );
    }
}

#[test]
fn sizes_are_bounded() {
    let hosts = |count: usize| {
        let each =
            (0..count).flat_map(|n| ["- name: h".to_owned(), n.to_string(), "\n".to_owned()]);
        format!("hosts:\n{}", each.collect::<String>())
    };
    assert_eq!(rendered(&hosts(MAX_HOSTS)).unwrap().hosts.len(), MAX_HOSTS);
    let mistakes = rendered(&hosts(MAX_HOSTS + 1)).unwrap_err();
    assert_eq!(
        mistakes,
        ["i.yaml:2:3: hosts: has 2001 hosts, and at most 2000 are read; split the inventory"]
    );
    let short = "hosts: [{name: a}]\n#";
    let long = |length: usize| format!("{short}{}", "x".repeat(length - short.len()));
    assert!(rendered(&long(MAX_INVENTORY)).is_ok());
    assert!(rendered(&long(MAX_INVENTORY + 1)).unwrap_err()[0].contains("bytes"));
}

#[test]
fn passwords_are_not_in_debug_output() {
    let groups = ApiGroups::default();
    let inventory = read("i", INVENTORY.as_bytes(), &groups).unwrap();
    assert!(!format!("{inventory:?}").contains("p@ss"));
    assert_eq!(Vec::from_iter(inventory.password_files()), ["bmc.password"]);
    let rendering = render(&inventory, &passwords(), &groups).unwrap();
    assert!(!format!("{rendering:?}").contains("calvin"));
    assert!(!format!("{rendering:?}").contains("Y2Fsdmlu"));
}

proptest! {
    #[test]
    fn passwords_are_in_no_mistake(
        secret in "[A-Za-z0-9!:]{14,20}",
        form in prop::sample::select(vec!["\"{}\"", "[\"{}\"]", "{\"x\": \"{}\"}", "\"{}\\u0007\"", "!!int \"{}\""]),
        place in prop::sample::select(vec!["password", "username", "passwordFile"]),
        cut in prop::option::of(0usize..600),
    ) {
        let value = form.replace("{}", &secret);
        let text = INVENTORY.replacen("password: \"p@ss: word\"", &format!("{place}: {value}"), 1);
        let text: String = text.chars().take(cut.unwrap_or(usize::MAX)).collect();
        if let Err(mistakes) = rendered(&text) {
            prop_assert!(!mistakes.concat().contains(&secret), "{mistakes:?}");
        }
    }

    #[test]
    fn any_inventory_is_rendered_or_refused(
        cut in 0usize..900, length in 0usize..40, text in "(\\[|\\]|: |- |~|5|true|\"|x|\n {0,6}|&a |\\*a){0,5}"
    ) {
        let mut whole = INVENTORY.to_owned();
        let from = cut.min(whole.len());
        let to = (from + length).min(whole.len());
        whole.replace_range(from..to, &text);
        if let Ok(rendering) = rendered(&whole) {
            let file = RecordFile::read("f", yaml(&rendering).as_bytes());
            let report = check(&[file], &CheckSettings::default());
            prop_assert_eq!(report.errors(), 0, "{:?}", report.findings);
        }
    }
}
