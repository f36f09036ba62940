//! Invariants that hold for every input.

use std::str;

use ignition::butane::{ButaneOptions, translate};
use ignition::{
    ConfigDocument, ConfigSummary, IgnitionConfig, MAX_PROBLEMS, ProblemClass, ProblemList,
    SpecVersion,
};
use located_yaml::Position;
use located_yaml::v1_2::{self, ConfigNode, MAX_NODES, NodeValue};

const LOSSES: &[ProblemClass] = &[ProblemClass::Refused, ProblemClass::Ignored];

/// A configuration in JSON: read, written, converted, merged and summarised.
pub(crate) fn config(data: &[u8]) {
    let (document, problems) = ConfigDocument::read(data);
    check_problems(&problems);
    let Some(document) = document else {
        assert!(problems.is_refused(), "nothing came of it");
        assert!(IgnitionConfig::parse(data).is_err());
        return;
    };
    let summary = ConfigSummary::new(&document).to_string();
    let is_printable = |letter: char| letter == '\n' || !letter.is_control();
    assert!(summary.chars().all(is_printable), "{summary:?}");
    let is_lossless = problems.first(LOSSES).is_none();
    assert_eq!(IgnitionConfig::parse(data).is_ok(), is_lossless);
    if problems.is_refused() {
        return;
    }
    // Written in the names of the table, each once, it is still valid.
    let (again, problems_again) = read(&document);
    assert!(!problems_again.is_refused());
    assert_eq!(again.to_json(), document.to_json());
    if is_lossless {
        valid(&document);
    }
}

fn valid(document: &ConfigDocument) {
    let records = document.to_config().expect("valid");
    let (again, _) = ConfigDocument::read(&records.to_json());
    let again = again.expect("a version");
    let own = document.version();
    let [again, pruned] = [&again, document].map(|it| it.convert(own).expect("its own version"));
    assert_eq!(
        again.to_json(),
        pruned.to_json(),
        "the records lose nothing"
    );

    let lowest = document.lowest().expect("its own version carries it");
    assert!(lowest.version() <= own);
    for version in SpecVersion::ALL {
        match document.convert(version) {
            Ok(converted) => {
                assert!(converted.version() == version && version >= lowest.version());
                assert_eq!(read(&converted).1.first(LOSSES), None);
            }
            Err(problems) => {
                let problem = problems.first(LOSSES).expect("a reason");
                // Rules that became stricter.
                let is_newer_rule = ["target", "source", "custom", "clevis"]
                    .iter()
                    .any(|member| problem.path.contains(member));
                assert!(version < own || is_newer_rule, "{problem}");
            }
        }
    }

    let text = format!("{{\"ignition\":{{\"version\":\"{own}\"}}}}");
    let (empty, _) = ConfigDocument::read(text.as_bytes());
    let empty = empty.expect("a version");
    assert_eq!(document.merge(&empty).to_json(), document.to_json());
    assert_eq!(empty.merge(document).to_json(), document.to_json());
    let twice = document.merge(document);
    assert!(twice.root().count() <= 2 * document.root().count());
}

fn read(document: &ConfigDocument) -> (ConfigDocument, ProblemList) {
    let json = document.to_json().to_string();
    let (document, problems) = ConfigDocument::read(json.as_bytes());
    (document.expect("a version"), problems)
}

fn check_problems(problems: &ProblemList) {
    let listed = problems.as_slice();
    assert!(listed.len() <= MAX_PROBLEMS && listed.is_sorted());
    assert!(listed.iter().all(|problem| problem.at.line > 0));
    assert!(listed.iter().all(|problem| !problem.path.contains('\n')));
}

/// A YAML document: read, and checked as a configuration.
pub(crate) fn yaml(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let Ok(root) = v1_2::from_yaml(text) else {
        return;
    };
    assert!(root.count() <= MAX_NODES);
    // To YAML a carriage return ends a line, too.
    let lines = text
        .split(['\r', '\n', '\u{85}', '\u{2028}', '\u{2029}'])
        .count();
    check_positions(&root, lines);
    let json = root.to_json();
    let again = v1_2::from_json(json.to_string().as_bytes()).expect("JSON");
    assert_eq!(again.to_json(), json);
    let (_, problems) = ConfigDocument::from_tree(&root);
    check_problems(&problems);
}

/// A Butane document: translated in both forms, without local files.
pub(crate) fn butane(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    for is_raw in [false, true] {
        let options = ButaneOptions {
            files: None,
            is_raw,
        };
        let translation = translate(text, options);
        check_problems(&translation.problems);
        let Some(output) = translation.output else {
            assert!(translation.problems.is_refused(), "nothing came of it");
            continue;
        };
        assert!(!translation.problems.is_refused());
        let (json, text) = (output.to_json(), output.to_text(false));
        let again = v1_2::from_yaml(&text).expect("JSON is YAML, too");
        assert_eq!(again.to_json(), json);
        if is_raw {
            let (_, problems) = ConfigDocument::read(json.to_string().as_bytes());
            assert_eq!(problems.first(LOSSES), None, "{json}");
        }
    }
}

fn check_positions(node: &ConfigNode, lines: usize) {
    let check = |at: Position| assert!((1..=lines).contains(&at.line), "{at}");
    check(node.at);
    match &node.value {
        NodeValue::Scalar { .. } => {}
        NodeValue::List(items) => items.iter().for_each(|item| check_positions(item, lines)),
        NodeValue::Object(members) => {
            for member in members {
                check(member.at);
                check_positions(&member.node, lines);
            }
        }
    }
}
