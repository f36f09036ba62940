//! Ignition configurations inside a Butane document: `ignition.config.merge[].inline` and `replace.inline`.

use located_yaml::v1_2::{ConfigNode, from_json};

use super::checked_object::CheckedObject;
use crate::path::NodePath;
use crate::problem::{ProblemClass, ProblemList};
use crate::shape::shape;
use crate::validate::validate;
use crate::version::SpecVersion;

/// Checks the configuration. One of another version than the one that is written is not checked, as in the original.
///
/// Source: coreos/butane, base/v0_6/util.go.
pub(super) fn check(object: &mut CheckedObject<'_, '_>) {
    let other = ["local", "source"];
    let Some(inline) = object.node.get("inline") else {
        return;
    };
    let is_configuration = object.path.to_string().starts_with("ignition.config.");
    if !is_configuration || other.iter().any(|name| object.node.get(name).is_some()) {
        return;
    }
    let text = inline.as_text().unwrap_or_default();
    for (class, reason) in problems(text, object.spec.ignition()) {
        match class {
            ProblemClass::Refused => object.refuse(&["inline"], reason),
            ProblemClass::Ignored | ProblemClass::Doubtful => object.doubt(&["inline"], reason),
        }
    }
}

fn problems(json: &str, expected: SpecVersion) -> Vec<(ProblemClass, String)> {
    let root = match from_json(json.as_bytes()) {
        Ok(root) => root,
        Err(error) => return vec![(ProblemClass::Refused, inner(&error.to_string()))],
    };
    let mut shaped = ProblemList::default();
    let root = shape(&root, expected, &mut shaped);
    let mut found = listed(&shaped, |class| class == ProblemClass::Refused);
    if shaped.is_refused() {
        return found;
    }
    let version = root.find(&["ignition", "version"]);
    let version = version.and_then(ConfigNode::as_text).unwrap_or_default();
    if SpecVersion::parse(version) == Some(expected) {
        let mut validated = ProblemList::default();
        validate(&root, expected, &mut validated);
        found.extend(listed(&shaped, |class| class == ProblemClass::Ignored));
        found.extend(listed(&validated, |_| true));
    } else if is_version(version) {
        let reason = format!(
            "the configuration has version {version}, and only one of version {expected} is checked"
        );
        found.push((ProblemClass::Doubtful, reason));
    } else {
        let above = NodePath::Member(&NodePath::Root, "ignition");
        let path = NodePath::Member(&above, "version");
        let reason = inner(&format!("{path}: {version:?} is no version"));
        found.push((ProblemClass::Refused, reason));
    }
    found
}

fn listed(
    problems: &ProblemList,
    is_wanted: impl Fn(ProblemClass) -> bool,
) -> Vec<(ProblemClass, String)> {
    problems
        .as_slice()
        .iter()
        .filter(|problem| is_wanted(problem.class))
        .map(|problem| (problem.class, inner(&problem.to_string())))
        .collect()
}

fn inner(problem: &str) -> String {
    format!("in the configuration, {problem}")
}

/// Three numbers, a pre-release and build metadata.
fn is_version(text: &str) -> bool {
    let text = text.split_once('+').map_or(text, |(version, _)| version);
    let text = text.split_once('-').map_or(text, |(version, _)| version);
    let is_number = |part: &str| part.parse::<u32>().is_ok();
    text.split('.').count() == 3 && text.split('.').all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(json: &str) -> Vec<String> {
        let found = problems(json, SpecVersion::V3_4).into_iter();
        found
            .map(|(class, text)| format!("{class:?} {text}"))
            .collect()
    }

    #[test]
    fn configurations_are_checked_as_documents() {
        assert_eq!(found(r#"{"ignition":{"version":"3.4.0"}}"#), [""; 0]);
        let text = r#"{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"a"}]},"x":1}"#;
        let problems = found(text);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(
            problems[0].starts_with("Ignored in the configuration, 1:"),
            "{problems:?}"
        );
        assert!(
            problems[1].contains("storage.files[0].path"),
            "{problems:?}"
        );
        assert!(found("{")[0].starts_with("Refused"));
        assert!(found(r#"{"storage":{}}"#)[0].starts_with("Refused"));
        let other = r#"{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"a"}]}}"#;
        assert!(found(other)[0].starts_with("Doubtful the configuration has version 3.0.0"));
        let shape = r#"{"ignition":{"version":"3.0.0"},"storage":7}"#;
        assert!(found(shape)[0].starts_with("Refused"));
    }
}
