//! Units and drop-ins.

use std::collections::{HashMap, HashSet};

use located_yaml::v1_2::ConfigNode;

use super::node::CheckedNode;
use super::node::Step::{Item, Member};
use super::unit_syntax;
use crate::problem::{ProblemList, quoted};

/// Kinds of units.
const UNIT_KINDS: &[&str] = &[
    "service",
    "socket",
    "device",
    "mount",
    "automount",
    "swap",
    "target",
    "path",
    "timer",
    "snapshot",
    "slice",
    "scope",
];

/// The folder that Ignition writes units to.
const FOLDER: &str = "/etc/systemd/system/";

/// `systemd.units[]`
pub(super) fn unit(unit: &CheckedNode<'_>, problems: &mut ProblemList) {
    let at = [Member("name")];
    if let Some(name) = name(unit) {
        if !extension(name).is_some_and(|kind| UNIT_KINDS.contains(&kind)) {
            let name = quoted(name);
            let reason = format!(
                "{name} is not the name of a unit, expected one that ends in .service, .socket, .mount, .timer or another kind of unit"
            );
            unit.refuse(problems, &at, reason);
        } else if name.contains('/') || name.starts_with('.') {
            unit.doubt(
                problems,
                &at,
                format!("systemd loads no unit named {}", quoted(name)),
            );
        }
    }
    let contents = unit.text("contents").unwrap_or_default();
    match unit_syntax::read(contents) {
        Err(reason) => unit.refuse(problems, &[Member("contents")], reason),
        Ok(outline) => {
            if unit.is_true("enabled") && !contents.is_empty() && !outline.has_install {
                let reason = "the unit is enabled, but has no section [Install]: nothing starts it";
                unit.doubt(problems, &[Member("contents")], reason);
            }
        }
    }
}

/// `systemd.units[].dropins[]`
pub(super) fn dropin(dropin: &CheckedNode<'_>, problems: &mut ProblemList) {
    let at = [Member("name")];
    if let Some(name) = name(dropin) {
        if extension(name) != Some("conf") {
            let reason = format!("{} does not end in .conf", quoted(name));
            dropin.refuse(problems, &at, reason);
        } else if name.contains('/') || name == ".conf" {
            dropin.doubt(
                problems,
                &at,
                format!("systemd loads no drop-in named {}", quoted(name)),
            );
        }
    }
    if let Err(reason) = unit_syntax::read(dropin.text("contents").unwrap_or_default()) {
        dropin.refuse(problems, &[Member("contents")], reason);
    }
}

/// The name; none when it is of another type.
fn name<'a>(node: &CheckedNode<'a>) -> Option<&'a str> {
    match node.node.get("name") {
        None => Some(""),
        Some(name) => name.as_text(),
    }
}

/// The text after the last dot. Source: Go, `path.Ext`.
fn extension(name: &str) -> Option<&str> {
    let file = name.rsplit('/').next()?;
    file.rsplit_once('.').map(|(_, extension)| extension)
}

/// `systemd`: enabled instances of a template that has no section `[Install]`.
pub(super) fn instances(systemd: &CheckedNode<'_>, problems: &mut ProblemList) {
    let units = systemd.items("units");
    let text = |node: &'_ ConfigNode, name: &str| {
        node.get(name)
            .and_then(ConfigNode::as_text)
            .map(str::to_owned)
    };
    let contents: HashMap<String, String> = units
        .iter()
        .filter_map(|unit| {
            let name = text(unit, "name").filter(|name| name.ends_with("@.service"))?;
            Some((name, text(unit, "contents").unwrap_or_default()))
        })
        .collect();
    for (index, node) in units.iter().enumerate() {
        let unit = CheckedNode { node, ..*systemd };
        let template = unit.text("name").and_then(template);
        let Some(template) = template.filter(|_| unit.is_true("enabled")) else {
            continue;
        };
        let contents = contents.get(&template).filter(|text| !text.is_empty());
        let outline = contents.and_then(|contents| unit_syntax::read(contents).ok());
        if outline.is_some_and(|outline| !outline.has_install) {
            let template = quoted(&template);
            let reason = format!(
                "the unit is enabled, but its template {template} has no section [Install]"
            );
            let steps = [Member("units"), Item(index), Member("contents")];
            systemd.doubt(problems, &steps, reason);
        }
    }
}

/// The template of an instance: `a@.service` of `a@b.service`.
fn template(name: &str) -> Option<String> {
    let stem = name.strip_suffix(".service")?;
    let at = stem
        .char_indices()
        .skip(1)
        .find(|(_, letter)| *letter == '@')?
        .0;
    (at + 1 < stem.len()).then(|| format!("{}@.service", &stem[..at]))
}

/// The whole configuration: files, directories and links in place of a unit.
pub(super) fn paths(config: &CheckedNode<'_>, problems: &mut ProblemList) {
    let systemd = config.node.find(&["systemd", "units"]);
    let mut written = HashSet::new();
    let text = |node: &ConfigNode, name: &str| {
        let text = node.get(name).and_then(ConfigNode::as_text);
        text.unwrap_or_default().to_owned()
    };
    for unit in systemd.map_or(&[][..], ConfigNode::items) {
        let path = format!("{FOLDER}{}", text(unit, "name"));
        for dropin in unit.get("dropins").map_or(&[][..], ConfigNode::items) {
            if !text(dropin, "contents").is_empty() {
                written.insert(format!("{path}.d/{}", text(dropin, "name")));
            }
        }
        if !text(unit, "contents").is_empty() {
            written.insert(path);
        }
    }
    for list in ["files", "directories", "links"] {
        let nodes = config.node.find(&["storage", list]);
        for (index, node) in nodes.map_or(&[][..], ConfigNode::items).iter().enumerate() {
            if written.contains(&text(node, "path")) {
                let steps = [Member("storage"), Member(list), Item(index), Member("path")];
                let reason = "a unit or drop-in of this configuration has the same path";
                config.refuse(problems, &steps, reason);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_of_instances() {
        assert_eq!(
            template("getty@tty1.service").as_deref(),
            Some("getty@.service")
        );
        assert_eq!(template("a@b@c.service").as_deref(), Some("a@.service"));
        for name in ["getty@.service", "a.service", "@b.service", "a@b.socket"] {
            assert_eq!(template(name), None, "{name}");
        }
    }

    #[test]
    fn extensions_are_of_the_last_name() {
        assert_eq!(extension("a.b.service"), Some("service"));
        assert_eq!(extension(".conf"), Some("conf"));
        assert_eq!(extension("a.conf/b"), None);
        assert_eq!(extension("a"), None);
    }
}
