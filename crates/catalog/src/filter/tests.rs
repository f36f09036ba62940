use serde_json::{Value, json};

use super::*;
use crate::Document;
use crate::content::PackageModel;
use crate::graph::VersionBounds;
use crate::testing;

/// 1.0.0 to 1.3.0 in `stable`, the last two in `fast` too, which has priority over `edge`; deprecations of all kinds.
fn catalog() -> Vec<Document> {
    let entry = |name: &str, replaces: &str| json!({"name": name, "replaces": replaces});
    let stable = [
        entry("v1.0.0", ""),
        entry("v1.1.0", "v1.0.0"),
        entry("v1.2.0", "v1.1.0"),
        entry("v1.3.0", "v1.2.0"),
    ];
    let channels = [
        ("stable", &stable[..]),
        ("fast", &stable[2..]),
        ("edge", &stable[3..]),
    ];
    let documents = testing::package(&channels);
    let mut values: Vec<Value> = documents
        .iter()
        .map(|document| serde_json::from_str(&document.json).unwrap())
        .collect();
    for (index, priority) in [(2, 2), (3, 1)] {
        let value = json!({"channelName": "x", "priority": priority});
        values[index]["properties"] = json!([{"type": "olm.channel", "value": value}]);
    }
    values[1]["Extra"] = json!({"b": 1.5, "a": "<\u{2028}>"});
    values.push(
        json!({"schema": "olm.deprecations", "package": "p", "entries": [
        {"reference": {"schema": "olm.channel", "name": "edge"}, "message": "m"},
        {"reference": {"schema": "olm.bundle", "name": "v1.0.0"}, "message": "m"}]}),
    );
    values.push(json!({"schema": "mine", "package": "p"}));
    testing::documents(&values)
}

fn selected(selection: &PackageSelection, full: bool) -> Result<FilteredPackage, Unsatisfied> {
    let documents = catalog();
    let package = PackageModel::assemble(&documents).unwrap().unwrap();
    let filtered = filter(&package, &documents, selection, full)?;
    PackageModel::assemble(&filtered.documents)
        .unwrap()
        .unwrap();
    Ok(filtered)
}

fn channel(name: &str, min: &str, max: &str) -> ChannelSelection {
    ChannelSelection {
        name: name.to_owned(),
        bounds: bounds(min, max),
    }
}

fn bounds(min: &str, max: &str) -> VersionBounds {
    VersionBounds {
        min: min.parse().ok(),
        max: max.parse().ok(),
    }
}

/// `channel: entries`, then the bundles, then how many deprecations there are.
fn summary(filtered: &FilteredPackage) -> (Vec<String>, Vec<String>, usize) {
    let package = PackageModel::assemble(&filtered.documents)
        .unwrap()
        .unwrap();
    let entries = |channel: &crate::content::ChannelModel<'_>| {
        let names: Vec<&str> = channel.entries.iter().map(|entry| &*entry.name).collect();
        format!("{}: {}", channel.name, names.join(" "))
    };
    let deprecated = |document: &&Document| document.schema == crate::schema::DEPRECATIONS;
    let deprecations = filtered.documents.iter().find(deprecated);
    (
        package.channels.iter().map(entries).collect(),
        package
            .bundles
            .iter()
            .map(|it| it.name.to_owned())
            .collect(),
        deprecations.map_or(0, |document| document.json.matches("message").count()),
    )
}

#[test]
fn heads_are_kept_without_bounds() {
    let filtered = selected(&PackageSelection::default(), false).unwrap();
    let (channels, bundles, deprecations) = summary(&filtered);
    assert_eq!(channels, ["edge: v1.3.0", "fast: v1.3.0", "stable: v1.3.0"]);
    assert_eq!(bundles, ["v1.3.0"]);
    assert_eq!(deprecations, 1);
}

#[test]
fn a_full_selection_changes_nothing() {
    let filtered = selected(&PackageSelection::default(), true).unwrap();
    assert_eq!(filtered.documents, catalog());
}

#[test]
fn channels_have_bounds_of_their_own_or_those_of_the_package() {
    let selection = PackageSelection {
        channels: vec![channel("stable", "", "1.1.0"), channel("fast", "", "")],
        bounds: bounds("1.3.0", ""),
        ..PackageSelection::default()
    };
    let (channels, bundles, deprecations) = summary(&selected(&selection, true).unwrap());
    assert_eq!(channels, ["fast: v1.3.0", "stable: v1.0.0 v1.1.0"]);
    assert_eq!(bundles, ["v1.0.0", "v1.1.0", "v1.3.0"]);
    assert_eq!(deprecations, 1);
}

#[test]
fn channels_without_selected_versions_are_dropped() {
    let selection = PackageSelection {
        bounds: bounds("", "1.1.0"),
        ..PackageSelection::default()
    };
    let (channels, _, deprecations) = summary(&selected(&selection, false).unwrap());
    assert_eq!(channels, ["stable: v1.0.0 v1.1.0"]);
    assert_eq!(deprecations, 1);
}

#[test]
fn another_default_channel_is_found() {
    let selection = |names: &[&str], default: Option<&str>| PackageSelection {
        channels: names.iter().map(|name| channel(name, "", "")).collect(),
        default_channel: default.map(str::to_owned),
        ..PackageSelection::default()
    };
    for (names, named, default) in [
        (&["fast", "stable"][..], Some("fast"), "stable"),
        (&["fast", "edge"], Some("edge"), "edge"),
        (&["edge"], Some("fast"), "edge"),
        (&["fast", "edge"], None, "fast"),
    ] {
        let filtered = selected(&selection(names, named), false).unwrap();
        let package = PackageModel::assemble(&filtered.documents)
            .unwrap()
            .unwrap();
        assert_eq!(package.default_channel, default, "{names:?}");
    }
}

#[test]
fn unsatisfied_selections_name_the_alternatives() {
    let unsatisfied =
        |selection: &PackageSelection| selected(selection, false).unwrap_err().to_string();
    let selection = PackageSelection {
        channels: vec![channel("slow", "", "")],
        ..PackageSelection::default()
    };
    assert_eq!(
        unsatisfied(&selection),
        "package \"p\" has no channel \"slow\"; it has edge, fast, stable"
    );
    let selection = PackageSelection {
        channels: vec![channel("fast", "2.0.0", "")],
        ..PackageSelection::default()
    };
    assert_eq!(
        unsatisfied(&selection),
        "no version of package \"p\" channel \"fast\" is within the bounds; there are 1.2.0, 1.3.0"
    );
    let selection = PackageSelection {
        bounds: bounds("2.0.0", ""),
        ..PackageSelection::default()
    };
    assert!(unsatisfied(&selection).ends_with("there are 1.0.0, 1.1.0, 1.2.0, 1.3.0"));
}

#[test]
fn an_ambiguous_default_channel_is_an_error() {
    let entry = json!({"name": "v1.0.0"});
    let entries = [entry];
    let documents = testing::package(&[("a", &entries), ("b", &entries), ("c", &entries)]);
    let package = PackageModel::assemble(&documents).unwrap().unwrap();
    let selection = PackageSelection {
        channels: vec![channel("b", "", ""), channel("c", "", "")],
        ..PackageSelection::default()
    };
    let wrong = filter(&package, &documents, &selection, false).unwrap_err();
    assert!(
        wrong
            .to_string()
            .contains("name one of b, c as the default channel")
    );
}

#[test]
fn an_empty_selection_is_all_packages() {
    assert_eq!(CatalogSelection::default().of("p").unwrap().name, "p");
    let named = |name: &str, default: &str| PackageSelection {
        name: name.to_owned(),
        default_channel: Some(default.to_owned()),
        ..PackageSelection::default()
    };
    let selection = CatalogSelection {
        packages: vec![named("p", "a"), named("p", "b")],
        full: false,
    };
    assert_eq!(
        selection.of("p").unwrap().default_channel.as_deref(),
        Some("b")
    );
    assert_eq!(selection.of("q"), None);
}
