use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::Document;
use crate::content::PackageModel;
use crate::testing::package;
use crate::version::BundleVersion;

/// 1.0.0 ← 1.1.0 ← 1.3.0 ← 2.0.0, with 1.2.0 skipped by 1.3.0, and everything before 2.0.0 by 2.1.0.
fn entries() -> Vec<Value> {
    vec![
        json!({"name": "v1.0.0", "replaces": "v0.9.0"}),
        json!({"name": "v1.1.0", "replaces": "v1.0.0"}),
        json!({"name": "v1.2.0", "replaces": "v1.1.0"}),
        json!({"name": "v1.3.0", "replaces": "v1.1.0", "skips": ["v1.2.0"]}),
        json!({"name": "v2.0.0", "replaces": "v1.3.0"}),
        json!({"name": "v2.1.0", "replaces": "v2.0.0", "skipRange": ">=1.1.0 <2.0.0"}),
    ]
}

fn with_graph<T>(
    documents: &[Document],
    test: impl FnOnce(&PackageModel<'_>, &UpgradeGraph<'_>) -> T,
) -> T {
    let package = PackageModel::assemble(documents).unwrap().unwrap();
    let graph = UpgradeGraph::new(&package, &package.channels[0]);
    test(&package, &graph)
}

#[test]
fn edges_come_from_replaces_skips_and_skip_range() {
    with_graph(&package(&[("stable", &entries())]), |_, graph| {
        let to = |name| -> Vec<String> {
            let entries = graph.upgrades_from(name);
            entries.iter().map(|entry| entry.name.to_string()).collect()
        };
        assert_eq!(to("v0.9.0"), ["v1.0.0"]);
        assert_eq!(to("v1.2.0"), ["v1.3.0", "v2.1.0"]);
        assert_eq!(to("v2.1.0"), [""; 0]);
        assert_eq!(graph.upgrades_to("v1.3.0"), ["v1.1.0", "v1.2.0"]);
        assert_eq!(
            graph.upgrades_to("v2.1.0"),
            ["v2.0.0", "v1.1.0", "v1.2.0", "v1.3.0"]
        );
        assert_eq!(graph.upgrades_to("v9"), [""; 0]);
    });
}

#[test]
fn the_shortest_path_has_the_fewest_upgrades() {
    with_graph(&package(&[("stable", &entries())]), |_, graph| {
        let path = |from, to| graph.shortest_path(from, to);
        assert_eq!(
            path("v1.0.0", "v2.1.0").unwrap(),
            ["v1.0.0", "v1.1.0", "v2.1.0"]
        );
        assert_eq!(path("v0.9.0", "v1.0.0").unwrap(), ["v0.9.0", "v1.0.0"]);
        assert_eq!(path("v1.0.0", "v1.0.0").unwrap(), ["v1.0.0"]);
        assert_eq!(path("v2.0.0", "v1.0.0"), None);
        assert_eq!(path("v1.0.0", "v9"), None);
    });
}

/// Kept and dropped entries of a channel.
fn kept(entries: &[Value], min: &str, max: &str) -> (Vec<String>, Vec<String>) {
    let version = |text: &str| -> Option<BundleVersion> { text.parse().ok() };
    let bounds = VersionBounds {
        min: version(min),
        max: version(max),
    };
    with_graph(&package(&[("stable", entries)]), |package, _| {
        let kept = keep(package, &package.channels[0], &bounds);
        let list = |names: &std::collections::BTreeSet<String>| names.iter().cloned().collect();
        (list(&kept.entries), list(&kept.left_out))
    })
}

#[test]
fn entries_within_bounds_are_kept() {
    let none = [""; 0];
    for (min, max, entries_kept, left_out) in [
        ("2.0.0", "", &["v2.0.0", "v2.1.0"][..], &none[..]),
        ("1.2.0", "2.0.0", &["v1.2.0", "v1.3.0", "v2.0.0"], &none),
        // Nothing that is wanted skips it, and nothing replaces it.
        ("1.1.0", "1.2.0", &["v1.1.0", "v1.2.0"], &none),
        ("", "1.0.0", &["v1.0.0"], &none),
        ("3.0.0", "", &[], &none),
    ] {
        let (entries, left) = kept(&entries(), min, max);
        assert_eq!(entries, entries_kept, "{min} to {max}");
        assert_eq!(left, left_out, "{min} to {max}");
    }
}

#[test]
fn entries_from_a_start_to_the_head_are_kept() {
    let entries = [
        json!({"name": "v1.0.0"}),
        json!({"name": "v1.1.0", "replaces": "v1.0.0"}),
        // A patch of 1.0.0, and one that only newer ones know.
        json!({"name": "v1.0.1", "replaces": "v1.0.0"}),
        json!({"name": "v1.1.5"}),
        json!({"name": "v1.2.0", "replaces": "v1.1.0", "skips": ["v1.0.1", "v1.1.5"]}),
        json!({"name": "v1.3.0", "replaces": "v1.2.0", "skips": ["v1.1.5"]}),
    ];
    let kept = |starts: &[&str]| {
        with_graph(&package(&[("stable", &entries)]), |package, _| {
            let names = starts.iter().map(|it| (*it).to_owned()).collect();
            let kept = keep_from(package, &package.channels[0], &names);
            assert_eq!(kept.left_out.len(), 0, "{starts:?}");
            kept.entries.into_iter().collect::<Vec<_>>().join(" ")
        })
    };
    for (starts, expected) in [
        (&["v1.3.0"][..], "v1.3.0"),
        (&["v1.1.0"], "v1.1.0 v1.2.0 v1.3.0"),
        (&["v1.0.0"], "v1.0.0 v1.0.1 v1.1.0 v1.2.0 v1.3.0"),
        (&["v1.0.1"], "v1.0.1 v1.1.0 v1.2.0 v1.3.0"),
        (&["v1.1.5"], "v1.1.5 v1.2.0 v1.3.0"),
        (&["v1.2.0", "v1.1.5"], "v1.1.5 v1.2.0 v1.3.0"),
        (&[], ""),
    ] {
        assert_eq!(kept(starts), expected, "{starts:?}");
    }
}

#[test]
fn entries_between_selected_ones_are_kept_and_unreachable_ones_dropped() {
    let entries = [
        json!({"name": "v1.0.0"}),
        json!({"name": "v0.5.0", "replaces": "v1.0.0"}),
        json!({"name": "v1.1.0", "replaces": "v0.5.0"}),
        json!({"name": "v1.0.5"}),
        json!({"name": "v2.0.0", "replaces": "v1.1.0", "skips": ["v1.0.5"]}),
    ];
    let (entries, left_out) = kept(&entries, "1.0.0", "1.1.0");
    assert_eq!(entries, ["v0.5.0", "v1.0.0", "v1.1.0"]);
    assert_eq!(left_out, ["v1.0.5"]);
}

#[test]
fn skipped_cycles_are_dropped() {
    let entries = [
        json!({"name": "v1.0.0", "replaces": "v1.0.0"}),
        json!({"name": "v2.0.0", "skips": ["v1.0.0"]}),
    ];
    let (entries, left_out) = kept(&entries, "", "1.0.0");
    assert_eq!(entries, [""; 0]);
    assert_eq!(left_out, ["v1.0.0"]);
}

#[test]
fn channels_are_rendered_as_mermaid_and_dot() {
    let entries = [
        json!({"name": "v1.0.0", "replaces": "v0\"9"}),
        json!({"name": "v1.1.0", "skips": ["v1.0.0"], "skipRange": "<1.1.0"}),
    ];
    with_graph(&package(&[("stable", &entries)]), |package, _| {
        let channel = &package.channels[0];
        assert_eq!(
            mermaid(package, channel),
            "graph LR
  subgraph channel[\"p stable\"]
    n0[\"v0#34;9\"]:::missing
    n1[\"v1.0.0\"]
    n2[\"v1.1.0\"]:::head
  end
  n0 --> n1
  n1 -. skips .-> n2
  classDef head stroke-width:3px
  classDef deprecated fill:#ddd,stroke:#999
  classDef missing stroke-dasharray:4
"
        );
        assert_eq!(
            dot(package, channel),
            "digraph \"p stable\" {
  rankdir=LR;
  node [shape=box];
  \"v0\\\"9\" [style=dashed];
  \"v1.0.0\";
  \"v1.1.0\" [penwidth=3];
  \"v0\\\"9\" -> \"v1.0.0\";
  \"v1.0.0\" -> \"v1.1.0\" [style=dashed, label=skips];
}
"
        );
    });
}

/// A channel in which every entry is in the chain or skipped. Per entry: whether it is in the chain, its replaces
/// otherwise, and the entry that skips it.
fn channels() -> impl Strategy<Value = Vec<Value>> {
    let entry = (
        any::<bool>(),
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
    );
    prop::collection::vec(entry, 1..12).prop_map(|entries| {
        let last = entries.len() - 1;
        let is_in_chain = |index: usize| index == last || entries[index].0;
        let mut skips = vec![Vec::new(); entries.len()];
        let mut jsons = Vec::new();
        let mut before = None;
        for (index, (_, replaces, skipped_by)) in entries.iter().enumerate() {
            let replaces = if is_in_chain(index) {
                before.replace(index)
            } else {
                let above: Vec<usize> = (index + 1..=last).filter(|i| is_in_chain(*i)).collect();
                skips[above[skipped_by.index(above.len())]].push(format!("v{index}.0.0"));
                (index > 0).then(|| replaces.index(index))
            };
            let replaces = replaces.map(|index| format!("v{index}.0.0"));
            jsons.push(json!({"name": format!("v{index}.0.0"), "replaces": replaces}));
        }
        for (json, skips) in jsons.iter_mut().zip(skips) {
            json["skips"] = json!(skips);
        }
        jsons
    })
}

proptest! {
    #[test]
    fn kept_entries_form_a_valid_channel(entries in channels(), min in 0_usize..12, max in 0_usize..12) {
        let (kept, left_out) = kept(&entries, &format!("{min}.0.0"), &format!("{max}.0.0"));
        let is_kept = |entry: &&Value| kept.iter().any(|name| entry["name"] == name.as_str());
        let part: Vec<Value> = entries.iter().filter(is_kept).cloned().collect();
        if !part.is_empty() {
            let documents = package(&[("stable", &part)]);
            prop_assert!(PackageModel::assemble(&documents).is_ok());
        }
        for index in min..=max.min(entries.len() - 1) {
            let name = format!("v{index}.0.0");
            prop_assert!(kept.contains(&name) || left_out.contains(&name));
        }
    }
}
