//! Each commit has a short subject, and a body that gives the reason.

use std::process::Command;

use super::finding::TidyFinding;
use super::source::WorkspaceSources;
use crate::cargo::root;
use crate::command::output;

/// Commits after the one that added this file are checked.
const SINCE: &str = "xtask/src/tidy/history.rs";
/// Units: characters.
const SUBJECT_LIMIT: usize = 72;
/// Separators of commits, and of a commit's name and its message.
const END: char = '\x1e';
const FIELD: char = '\x1f';

pub(super) fn explained(_: &WorkspaceSources) -> Vec<TidyFinding> {
    match messages() {
        Ok(messages) => findings(&messages),
        Err(error) => vec![TidyFinding {
            place: "git log".to_owned(),
            remedy: format!("{error:#}"),
        }],
    }
}

/// Names and messages of the commits; empty without history.
fn messages() -> anyhow::Result<String> {
    let added = git(&["log", "--diff-filter=A", "--format=%H", "--", SINCE])?;
    let Some(since) = added.lines().last() else {
        return Ok(String::new());
    };
    let range = format!("{since}..HEAD");
    let format = format!("--format=%h{FIELD}%B{END}");
    git(&["log", "--no-merges", &format, &range])
}

fn git(arguments: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    command.current_dir(root()).args(arguments);
    Ok(String::from_utf8_lossy(&output(&mut command)?).into_owned())
}

fn findings(messages: &str) -> Vec<TidyFinding> {
    let commits = messages.split(END).filter_map(|it| it.split_once(FIELD));
    commits
        .filter_map(|(name, message)| {
            let (subject, body) = message.trim().split_once('\n').unwrap_or((message, ""));
            let length = subject.trim().chars().count();
            let remedy = if length > SUBJECT_LIMIT {
                format!("its subject has {length} characters, {SUBJECT_LIMIT} are allowed")
            } else if body.trim().is_empty() {
                "it has no body: say why".to_owned()
            } else {
                return None;
            };
            Some(TidyFinding {
                place: format!("commit {}", name.trim()),
                remedy,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_short_and_bodies_exist() {
        let commit = |name: &str, message: &str| format!("{name}{FIELD}{message}\n{END}\n");
        let short = "x".repeat(SUBJECT_LIMIT);
        let log = [
            commit("a", &format!("{short}\n\nWhy.\n")),
            commit("b", &format!("{short}x\n\nWhy.\n")),
            commit("c", "No body\n"),
        ];
        let places: Vec<_> = findings(&log.concat())
            .into_iter()
            .map(|it| it.place)
            .collect();
        assert_eq!(places, ["commit b", "commit c"]);
        assert!(findings("").is_empty());
    }
}
