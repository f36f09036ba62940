//! Keyfiles compared with those of nmstate 2.2.62 (`NetworkState::gen_conf`): files, sections, keys and values.
//!
//! `samples/kinds` has a configuration for each kind of interface and its golden file, `tests/corpus/networks/keyfiles` the
//! golden files of configurations that others wrote. Order counts where NetworkManager reads it; that of rules is their
//! priority.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::{keyfiles, parse, problems};

/// Files of a configuration, each with its sections.
type Files = BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>;

/// Sections that nmstate reads and does not render: NetworkManager refuses such a keyfile, or loses the settings.
const LOST_SECTIONS: &[&str] = &["hsr", "ip-tunnel", "ipvlan", "loopback"];
/// Keys of other sections that nmstate reads and does not render.
const LOST_KEYS: &[&str] = &[
    "coalesce-sample-interval",
    "coalesce-stats-block-usecs",
    "coalesce-tx-usecs-high",
    "coalesce-tx-usecs-irq",
    "coalesce-tx-usecs-low",
];

/// Ports of Open vSwitch with the name of their bridge, and nothing else: nmstate renders an Ethernet interface, which no
/// host has; here they are the bridge's own interface.
const OWN_PORTS: &[(&str, &str)] = &[
    ("117-ovn-vlan-and-bridge", "br-lm"),
    ("118-ovn-controller-and-port", "br-lm"),
    ("ovs_empty", "br1"),
];

/// Configurations that nmstate renders and this refuses, each for a reason.
const REFUSED: &[(&str, &str)] = &[
    ("056-nmstate-vlan-absent-only", NOTHING_UP),
    ("058-nmstate-hostname-empty", NOTHING_UP),
    ("059-nmstate-hostname", NOTHING_UP),
    ("081-doc-dns-purge", NOTHING_UP),
    ("104-knmstate-dns-cleanup", NOTHING_UP),
    ("105-knmstate-absent-no-type", NOTHING_UP),
    ("108-telco-all-commented", NOTHING_UP),
    ("124-dummy-absent-only", NOTHING_UP),
];
const NOTHING_UP: &str = "nothing is up, and nmstate renders no file";

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/samples/kinds")
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/networks")
}

/// Golden files of a folder, by case.
fn goldens(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let entries = entries.filter(|path| path.extension().is_some_and(|it| it == "keyfiles"));
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    entries
        .map(|path| (name(&path), fs::read_to_string(&path).unwrap()))
        .collect()
}

fn ours(yaml: &str) -> Result<Files, String> {
    let document = parse("network", yaml).map_err(|error| error.to_string())?;
    let files = keyfiles(&document).map_err(|problem| problem.to_string())?;
    let files = files.iter().map(|file| {
        let name = file.name.strip_suffix(".nmconnection").unwrap();
        (name.to_owned(), sections(&file.content))
    });
    Ok(files.collect())
}

fn nmstates(golden: &str) -> Files {
    let files = golden.split("=== ").filter(|text| !text.is_empty());
    files
        .map(|text| {
            let (name, content) = text.split_once(".nmconnection\n").unwrap();
            (name.to_owned(), sections(content))
        })
        .collect()
}

fn sections(content: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut sections: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let (mut section, mut rules) = (String::new(), BTreeSet::new());
    for line in content.lines().filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix('[') {
            name.trim_end_matches(']').clone_into(&mut section);
            sections.entry(section.clone()).or_default();
            rules.clear();
            continue;
        }
        let (key, value) = line.split_once('=').unwrap();
        let keys = sections.get_mut(&section).unwrap();
        if key.starts_with("routing-rule") {
            rules.insert(value.to_owned());
            let joined: Vec<&str> = rules.iter().map(String::as_str).collect();
            keys.insert("routing-rules".to_owned(), joined.join("\n"));
        // The line that assisted-service adds.
        } else if key != "autoconnect-priority" {
            keys.insert(key.to_owned(), value.to_owned());
        }
    }
    sections
}

/// Removes the settings that nmstate loses, and the interfaces that it gets wrong.
fn without_deviations(case: &str, files: &mut Files, theirs: &mut Files) {
    for (known, name) in OWN_PORTS {
        if *known == case {
            assert!(
                theirs.remove(*name).is_some(),
                "{case}: nmstate has no {name}"
            );
            assert!(files.remove(&format!("{name}-if")).is_some(), "{case}");
        }
    }
    for (name, sections) in files {
        let other = theirs.get(name);
        sections.retain(|title, keys| {
            keys.retain(|key, _| !LOST_KEYS.contains(&key.as_str()));
            let is_rendered = other.is_some_and(|other| other.contains_key(title));
            is_rendered || !LOST_SECTIONS.contains(&title.as_str())
        });
    }
}

fn differences(case: &str, ours: &Files, theirs: &Files) -> String {
    let mut text = String::new();
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    for name in names {
        let (Some(own), Some(other)) = (ours.get(name), theirs.get(name)) else {
            let is_ours = ours.contains_key(name);
            writeln!(text, "{case}: {name}: only ours: {is_ours}").unwrap();
            continue;
        };
        let titles: BTreeSet<&String> = own.keys().chain(other.keys()).collect();
        for title in titles {
            let (own, other) = (own.get(title), other.get(title));
            if own != other {
                writeln!(
                    text,
                    "{case}: {name} [{title}]: {own:?}, nmstate's {other:?}"
                )
                .unwrap();
            }
        }
    }
    text
}

#[test]
fn keyfiles_have_nmstates_keys() {
    let mut text = String::new();
    let cases = goldens(&samples()).into_iter().map(|it| (samples(), it));
    let others = goldens(&corpus().join("keyfiles"));
    let cases = cases.chain(others.into_iter().map(|it| (corpus(), it)));
    let mut compared = 0;
    for (folder, (case, golden)) in cases {
        let yaml = fs::read_to_string(folder.join(format!("{case}.yaml"))).unwrap();
        let is_refused = REFUSED.iter().any(|(known, _)| *known == case);
        match ours(&yaml) {
            Ok(_) if is_refused => writeln!(text, "{case}: is not refused").unwrap(),
            Ok(mut files) => {
                let mut theirs = nmstates(&golden);
                without_deviations(&case, &mut files, &mut theirs);
                text += &differences(&case, &files, &theirs);
                compared += 1;
            }
            Err(_) if is_refused => {}
            Err(error) => writeln!(text, "{case}: {error}").unwrap(),
        }
    }
    assert!(text.is_empty(), "{text}");
    assert!(compared > 150, "{compared} cases");
}

#[test]
fn samples_pass_the_checks_before() {
    for case in goldens(&samples()).keys() {
        let yaml = fs::read_to_string(samples().join(format!("{case}.yaml"))).unwrap();
        let found = problems(&parse("network", &yaml).unwrap(), None);
        assert!(found.is_empty(), "{case}: {found:?}");
    }
}

/// Settings that nmstate does not render.
#[test]
fn lost_settings_have_networkmanagers_keys() {
    let mut text = String::new();
    for case in goldens(&samples()).keys() {
        let yaml = fs::read_to_string(samples().join(format!("{case}.yaml"))).unwrap();
        for (file, sections) in ours(&yaml).unwrap() {
            for (title, keys) in sections {
                let is_lost = LOST_SECTIONS.contains(&title.as_str());
                let keys = keys
                    .iter()
                    .filter(|(key, _)| is_lost || LOST_KEYS.contains(&key.as_str()));
                let lines: Vec<String> = keys.map(|(key, it)| format!("  {key}={it}\n")).collect();
                if !lines.is_empty() {
                    writeln!(text, "{case}: {file} [{title}]\n{}", lines.concat()).unwrap();
                }
            }
        }
    }
    insta::assert_snapshot!(text);
}
