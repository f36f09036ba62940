use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

/// The input of the specification's keyfile.
const SAMPLE: &str = "hostname: cp-0.example.com
dns: [10.0.0.2, 10.0.0.3]
search: [example.com]
interfaces:
- name: ens3
  addresses: [10.0.0.20/24]
  gateways: [10.0.0.1]
";

const BONDS: &str = "dns: [10.0.0.2, 'fd00::2']
search: [example.com, sub.example.com]
interfaces:
- name: bond0
  mtu: 9000
  bond: {ports: [ens3, ens4], mode: active-backup, options: {primary: ens3, miimon: '100'}}
- name: ens4
  mac: 52:54:00:00:00:14
- name: bond0.100
  vlan: {parent: bond0, id: 100}
  addresses: [10.0.0.20/24, 10.0.0.21/24, 'fd00::20/64']
  gateways: [10.0.0.1, 'fe80::1']
  dns: [10.0.0.9]
  routes:
  - {to: 10.1.0.0/16, via: 10.0.0.254, metric: 100}
  - {to: 'fd01::/48', via: 'fd00::1'}
  - {to: 10.2.0.0/16}
- name: ens5
  dhcp: true
- name: ens6
  dhcp: ipv4
  ipv6: false
- name: ens7
  addresses: ['fd00:7::20/64']
";

const NMSTATE: &str = "interfaces:
- name: eth0
  type: ethernet
  state: up
  ipv4:
    enabled: true
    dhcp: false
    address: [{ip: 10.0.0.20, prefix-length: 24}]
";

/// The specification's form.
const BUTANE: &str = "variant: fcos
version: 1.4.0
storage:
  files:
  - path: /etc/hostname
    mode: 0644
    contents: {inline: cp-0.example.com}
  - path: /etc/NetworkManager/system-connections/ens3.nmconnection
    mode: 0600
    contents:
      inline: |
        [connection]
        id=ens3
        type=ethernet
        interface-name=ens3

        [ipv4]
        address1=10.0.0.20/24,10.0.0.1
        dns=10.0.0.2;10.0.0.3;
        dns-search=example.com;
        may-fail=false
        method=manual
";

fn keyfiles(text: &str) -> String {
    let network = read("n.yaml", text.as_bytes()).unwrap_or_else(|report| panic!("{report:?}"));
    let mut all = String::new();
    for file in network.keyfiles {
        writeln!(all, "=== {}\n{}", file.name, file.content).unwrap();
    }
    all
}

fn mistakes(text: &str) -> Vec<String> {
    match read("n.yaml", text.as_bytes()) {
        Ok(network) => panic!("{text}: {network:?}"),
        Err(report) => report.findings.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn the_keyfile_of_the_specification_comes_out() {
    let network = read("n.yaml", SAMPLE.as_bytes()).unwrap();
    assert_eq!(network.hostname.as_deref(), Some("cp-0.example.com"));
    assert_eq!(network.keyfiles.len(), 1);
    assert_eq!(network.keyfiles[0].name, "ens3.nmconnection");
    assert_eq!(KEYFILE_MODE, 384);
    assert_eq!(
        network.keyfiles[0].content,
        "[connection]
id=ens3
type=ethernet
interface-name=ens3

[ipv4]
address1=10.0.0.20/24,10.0.0.1
dns=10.0.0.2;10.0.0.3;
dns-search=example.com;
may-fail=false
method=manual
"
    );
}

#[test]
fn bonds_vlans_and_both_families() {
    insta::assert_snapshot!(keyfiles(BONDS));
}

#[test]
fn nmstate_is_rendered_as_for_discovery_images() {
    let network = read("n.yaml", NMSTATE.as_bytes()).unwrap();
    let document = from_yaml(NMSTATE).unwrap();
    let rendered = static_network::keyfiles(&document).unwrap();
    assert_eq!(network.keyfiles, rendered);
    assert!(rendered[0].content.contains("address0=10.0.0.20/24"));
    let wrong = mistakes(&NMSTATE.replace("type: ethernet", "type: team"));
    let place = wrong[0].contains("interfaces[0].type") && !wrong[0].contains("1:1:");
    assert!(place && wrong[0].contains("of type team"), "{wrong:?}");
    let named = read(
        "n",
        format!("hostname: {{config: cp-0}}\n{NMSTATE}").as_bytes(),
    )
    .unwrap();
    assert_eq!(named.hostname.as_deref(), Some("cp-0"));
}

#[test]
fn butane_gives_the_same_network_as_the_short_form() {
    let short = read("n.yaml", SAMPLE.as_bytes()).unwrap();
    assert_eq!(read("n.bu", BUTANE.as_bytes()).unwrap(), short);
    let openshift = "variant: openshift
version: 4.14.0
metadata: {name: a, labels: {machineconfiguration.openshift.io/role: master}}";
    let openshift = BUTANE.replace("variant: fcos\nversion: 1.4.0", openshift);
    assert_eq!(read("n.bu", openshift.as_bytes()).unwrap(), short);
    // limit: MAX_INTERFACES, beside the name of the host
    let many = |count: usize| {
        let mut text = BUTANE[..BUTANE.find("  - path: /etc/Net").unwrap()].to_owned();
        for index in 0..count {
            let path = format!("{KEYFILE_FOLDER}/e{index}.nmconnection");
            writeln!(
                text,
                "  - {{path: {path}, contents: {{inline: \"[connection]\"}}}}"
            )
            .unwrap();
        }
        text
    };
    let most = read("n.bu", many(MAX_INTERFACES).as_bytes()).unwrap();
    assert_eq!(most.keyfiles.len(), MAX_INTERFACES);
    assert!(mistakes(&many(MAX_INTERFACES + 1))[0].contains("more than 256 keyfiles"));
}

#[test]
fn nothing_of_a_butane_document_is_lost_in_silence() {
    for (from, to, expected) in [
        ("1.4.0", "9.9.9", "n.yaml:2:10: version: "),
        (
            "inline: |",
            "inlime: |",
            "n.yaml:11:7: storage.files[1].contents.inlime: ",
        ),
        (
            "cp-0.example.com",
            "Cp_0",
            "n.yaml:5:5: storage.files[0]: is no host name",
        ),
        (
            "[connection]",
            "[other]",
            "n.yaml:8:5: storage.files[1]: is no keyfile",
        ),
        (
            "inline: cp-0.example.com",
            "source: 'http://h/x'",
            "n.yaml:5:5: storage.files[0]: has no text",
        ),
        (
            "/etc/hostname",
            "/etc/motd",
            "n.yaml:5:5: storage.files[0]: is neither /etc/hostname nor",
        ),
        ("/ens3.nm", "/../ens3.nm", "storage.files[1]"),
        (
            "storage:\n",
            "passwd: {users: [{name: core}]}\nstorage:\n",
            "n.yaml:3:9: passwd: is not read",
        ),
        (
            "storage:\n",
            "storage:\n  directories: [{path: /a}]\n",
            "n.yaml:4:16: storage.directories: is not read",
        ),
        (
            "contents: {inline: cp-0.example.com}",
            "contents: {local: x}",
            "n.yaml:7:",
        ),
    ] {
        assert!(BUTANE.contains(from), "{from}");
        let found = mistakes(&BUTANE.replacen(from, to, 1));
        let is_found = found.iter().any(|mistake| mistake.contains(expected));
        assert!(is_found, "{expected}: {found:#?}");
    }
}

/// Changes of the inputs.
static MISTAKES: &[(&str, &str)] = &[
    ("10.0.0.20/24]", "10.0.0.20]"),
    ("10.0.0.20/24]", "10.0.0.0/24]"),
    ("10.0.0.20/24]", "224.0.0.1/24]"),
    ("10.0.0.20/24]", "10.0.0.20/24, 10.0.0.20/16]"),
    ("[10.0.0.1]", "[10.0.1.1]"),
    ("[10.0.0.1]", "[10.0.0.20]"),
    ("[10.0.0.1]", "[10.0.0.1, 10.0.0.2]"),
    ("[10.0.0.1]", "['fe80::1']"),
    ("[10.0.0.1]", "[x]"),
    ("gateways:", "gateway:"),
    ("name: ens3", "name: ens3/x"),
    ("name: ens3", "name: a-name-that-is-too-long"),
    ("name: ens3", "name: \"ens3\\n[x]\""),
    ("name: ens3\n", "mtu: 10\n"),
    ("name: ens3\n", "name: ens3\n- name: ens3\n"),
    (
        "- name: ens3",
        "- name: ens3\n  mac: 52-54-00-00-00-10\n  mtu: 1000000",
    ),
    ("- name: ens3", "- name: ens3\n  dhcp: yes please"),
    ("- name: ens3", "- name: ens3\n  dhcp: ipv5"),
    ("- name: ens3", "- name: ens3\n  ipv4: false"),
    ("- name: ens3", "- name: ens3\n  dns: ['fd00::2']"),
    ("- name: ens3", "- name: ens3\n  search: [\"a;b\"]"),
    (
        "- name: ens3",
        "- name: ens3\n  routes: [{to: 10.1.0.0/16, via: 'fd00::1'}, {to: x}, {to: 'fd01::/48'}, {via: 10.0.0.1}]",
    ),
    (
        "- name: ens3",
        "- name: ens3\n  vlan: {parent: ens4, id: 4095}\n  bond: {ports: [], mode: fast}",
    ),
    (
        "- name: ens3",
        "- name: b\n  bond: {ports: [ens3, ens3, 'x y'], mode: 802.3ad, options: {Mode: a, mode: b, miimon: \"1\\n2\"}}\n- name: ens3",
    ),
    ("search: [example.com]", "search: [\"a b\"]"),
    ("dns: [10.0.0.2, 10.0.0.3]", "dns: [x]"),
    ("hostname: cp-0.example.com", "hostname: Cp_0"),
    ("interfaces:\n", "interfaces: []\nlinks:\n"),
    ("interfaces:\n", "---\ninterfaces:\n"),
    ("interfaces:\n", "interface:\n"),
];

#[test]
fn mistakes_have_positions_and_remedies() {
    let mut text = String::new();
    for (from, to) in MISTAKES {
        assert!(SAMPLE.contains(from), "{from}");
        writeln!(text, "{from:?} -> {to:?}").unwrap();
        for mistake in mistakes(&SAMPLE.replacen(from, to, 1)) {
            writeln!(text, "    {mistake}").unwrap();
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn sizes_are_bounded() {
    let interfaces = |count: usize| {
        let each = (0..count).flat_map(|n| {
            [
                "- {dhcp: true, name: e".to_owned(),
                n.to_string(),
                "}\n".to_owned(),
            ]
        });
        format!("interfaces:\n{}", each.collect::<String>())
    };
    let most = read("n", interfaces(MAX_INTERFACES).as_bytes()).unwrap();
    assert_eq!(most.keyfiles.len(), MAX_INTERFACES);
    assert!(mistakes(&interfaces(MAX_INTERFACES + 1))[0].contains("257 interfaces"));
    let long = |length: usize| format!("{SAMPLE}#{}", "x".repeat(length - SAMPLE.len() - 1));
    assert!(read("n", long(MAX_NETWORK).as_bytes()).is_ok());
    assert!(mistakes(&long(MAX_NETWORK + 1))[0].contains("1 MiB"));
    mistakes("");
    mistakes("a: &a [*a]\n");
}

proptest! {
    /// No value can add a line or a section to a keyfile.
    #[test]
    fn keyfiles_have_known_lines(
        text in "[a-z0-9.:/;=\\[\\]# ]{0,12}|a\\\\n\\[x\\]",
        place in prop::sample::select(vec![
            "example.com", "ens3", "10.0.0.20/24", "10.0.0.1]", "10.0.0.2,", "cp-0.example.com",
        ]),
    ) {
        let quoted = format!("\"{text}\"{}", if place.ends_with([']', ',']) { &place[place.len() - 1..] } else { "" });
        if let Ok(network) = read("n", SAMPLE.replacen(place, &quoted, 1).as_bytes()) {
            for file in &network.keyfiles {
                prop_assert!(!file.name.contains('/'));
                for line in file.content.lines() {
                    let is_section = ["[connection]", "[ipv4]", "[ipv6]"].contains(&line);
                    let is_key = line.split_once('=').is_some_and(|(key, value)| {
                        key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
                            && !value.contains(['[', '='])
                    });
                    prop_assert!(is_section || is_key || line.is_empty(), "{}", file.content);
                }
            }
        }
    }

    #[test]
    fn any_configuration_is_rendered_or_refused(
        cut in 0usize..800, length in 0usize..40, text in "(\\[|\\]|: |- |~|5|true|\"|x|\n {0,6}|&a |\\*a){0,5}"
    ) {
        let mut whole = BONDS.to_owned();
        let from = cut.min(whole.len());
        let to = (from + length).min(whole.len());
        whole.replace_range(from..to, &text);
        read("n", whole.as_bytes()).ok();
        read("n", format!("variant: fcos\nversion: 1.4.0\n{whole}").as_bytes()).ok();
    }
}
