//! Rules about the text of files.

use std::sync::LazyLock;

use regex::Regex;

use super::finding::TidyFinding;
use super::source::{SourceFile, WorkspaceSources};

/// Units: lines.
const LONGEST_FILE: usize = 800;
/// Units: lines.
const LONGEST_MAIN: usize = 60;
/// Files that may be longer, with the reason.
const LONG_FILES: &[(&str, &str)] = &[(
    "crates/rules/src/host/table.rs",
    "one table, read from top to bottom",
)];
/// Files that may read the environment: settings, code that follows variables of container tools, and tools.
const READS_ENVIRONMENT: &[&str] = &[
    "crates/oci-client/src/auth_file.rs",
    "crates/service/src/settings/",
    "crates/faults/",
    "crates/testkit/",
    "crates/host-sim/",
    "xtask/",
];

pub(super) fn status_codes(sources: &WorkspaceSources) -> Vec<TidyFinding> {
    let is_elsewhere = |file: &SourceFile| {
        file.path
            .strip_prefix("crates/api-server/src/")
            .is_some_and(|path| !path.starts_with("http/") && !path.ends_with("error.rs"))
    };
    let files = sources.files.iter().filter(|file| is_elsewhere(file));
    lines(
        files,
        |line| line.contains("StatusCode::"),
        "return a model::Error and map it in http/",
    )
}

pub(super) fn file_length(sources: &WorkspaceSources) -> Vec<TidyFinding> {
    let files = sources.files.iter().filter(|file| !file.is_test());
    files
        .filter(|file| !LONG_FILES.iter().any(|(path, _)| *path == file.path))
        .map(|file| (file, file.length()))
        .filter(|(_, count)| *count > LONGEST_FILE)
        .map(|(file, count)| TidyFinding {
            place: file.path.clone(),
            remedy: format!("split its {count} lines by noun"),
        })
        .collect()
}

pub(super) fn main_length(sources: &WorkspaceSources) -> Vec<TidyFinding> {
    let files = sources
        .files
        .iter()
        .filter(|file| file.path.ends_with("src/main.rs"));
    files
        .map(|file| (file, file.code().count()))
        .filter(|(_, count)| *count > LONGEST_MAIN)
        .map(|(file, count)| TidyFinding {
            place: file.path.clone(),
            remedy: format!("move some of its {count} lines into the library"),
        })
        .collect()
}

pub(super) fn todo(sources: &WorkspaceSources) -> Vec<TidyFinding> {
    // Split, so that this file does not match.
    static LEFT: LazyLock<Regex> = LazyLock::new(|| {
        expression(&format!(
            r"\b({}|{})\b",
            concat!("TO", "DO"),
            concat!("FIX", "ME")
        ))
    });
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| expression(r"#\d+"));
    let mut findings = Vec::new();
    for file in &sources.files {
        for (index, line) in file.text.lines().enumerate() {
            if LEFT.is_match(line) && !NUMBER.is_match(line) {
                findings.push(finding(
                    file,
                    index + 1,
                    "do it, or name its issue as in #12",
                ));
            }
        }
    }
    findings
}

pub(super) fn formatted_sql(sources: &WorkspaceSources) -> Vec<TidyFinding> {
    static CALL: LazyLock<Regex> = LazyLock::new(|| {
        expression(r"(query\w*|AssertSqlSafe|execute|push|QueryBuilder::new)\(\s*&?format!")
    });
    let is_with_sql = |file: &&SourceFile| file.path.starts_with("crates/api-server/src/");
    let mut findings = Vec::new();
    for file in sources.files.iter().filter(is_with_sql) {
        let code: String = file.code().flat_map(|(_, line)| [line, "\n"]).collect();
        let has_sql = code.contains("sqlx");
        for found in CALL.find_iter(&code).filter(|_| has_sql) {
            let text = found.as_str();
            let first_line = text.lines().next().unwrap_or(text);
            findings.push(TidyFinding {
                place: file.path.clone(),
                remedy: format!("bind values in place of `{first_line}`"),
            });
        }
    }
    findings
}

pub(super) fn environment(sources: &WorkspaceSources) -> Vec<TidyFinding> {
    static READ: LazyLock<Regex> =
        LazyLock::new(|| expression(r"\benv::(var|vars|var_os|vars_os)\("));
    let may = |file: &&SourceFile| {
        !READS_ENVIRONMENT
            .iter()
            .any(|prefix| file.path.starts_with(prefix))
    };
    let files = sources.files.iter().filter(may);
    lines(
        files,
        |line| READ.is_match(line),
        "declare a variable with service::settings!",
    )
}

pub(super) fn bare_allow(sources: &WorkspaceSources) -> Vec<TidyFinding> {
    static ALLOW: LazyLock<Regex> = LazyLock::new(|| expression(concat!(r"#!?\[", r"allow\(")));
    let mut findings = Vec::new();
    for file in &sources.files {
        for (index, line) in file.text.lines().enumerate() {
            let is_code = !line.trim_start().starts_with("//");
            if is_code && ALLOW.is_match(line) {
                findings.push(finding(
                    file,
                    index + 1,
                    "use #[expect(lint, reason = \"…\")]",
                ));
            }
        }
    }
    findings
}

/// The lines of code for which `breaks` holds.
fn lines<'a>(
    files: impl Iterator<Item = &'a SourceFile>,
    breaks: impl Fn(&str) -> bool,
    remedy: &str,
) -> Vec<TidyFinding> {
    files
        .flat_map(|file| file.code().map(move |(number, line)| (file, number, line)))
        .filter(|(_, _, line)| breaks(line))
        .map(|(file, number, _)| finding(file, number, remedy))
        .collect()
}

fn finding(file: &SourceFile, line: usize, remedy: &str) -> TidyFinding {
    TidyFinding {
        place: format!("{}:{line}", file.path),
        remedy: remedy.to_owned(),
    }
}

fn expression(text: &str) -> Regex {
    Regex::new(text).expect("the expression is a constant that the tests use")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rule: fn(&WorkspaceSources) -> Vec<TidyFinding>, path: &str, text: &str) -> usize {
        let file = SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let sources = WorkspaceSources {
            files: vec![file],
            ..WorkspaceSources::default()
        };
        rule(&sources).len()
    }

    #[test]
    fn status_codes_outside_http() {
        let text = "fn a() -> StatusCode { StatusCode::OK }\n";
        assert_eq!(
            found(status_codes, "crates/api-server/src/app/host.rs", text),
            1
        );
        assert_eq!(
            found(status_codes, "crates/api-server/src/http/host.rs", text),
            0
        );
        assert_eq!(
            found(status_codes, "crates/api-server/src/http/error.rs", text),
            0
        );
        assert_eq!(found(status_codes, "crates/registry/src/a.rs", text), 0);
    }

    #[test]
    fn long_files_are_found() {
        assert_eq!(
            found(file_length, "crates/x/src/a.rs", &"\n".repeat(801)),
            1
        );
        assert_eq!(
            found(file_length, "crates/x/src/a.rs", &"\n".repeat(800)),
            0
        );
        assert_eq!(
            found(file_length, "crates/x/tests/it/a.rs", &"\n".repeat(801)),
            0
        );
        assert_eq!(
            found(main_length, "crates/x/src/main.rs", &"x\n".repeat(61)),
            1
        );
        assert_eq!(
            found(main_length, "crates/x/src/lib.rs", &"x\n".repeat(61)),
            0
        );
    }

    #[test]
    fn items_without_an_issue_are_found() {
        let word = concat!("TO", "DO");
        assert_eq!(found(todo, "a.rs", &format!("// {word}: later")), 1);
        assert_eq!(found(todo, "a.rs", &format!("// {word}(#12): later")), 0);
        assert_eq!(found(todo, "a.rs", "// todos are listed"), 0);
    }

    #[test]
    fn formatted_sql_is_found() {
        let path = "crates/api-server/src/db/host.rs";
        let bad = "use sqlx;\nsqlx::query(&format!(\"select {x}\"))";
        assert_eq!(found(formatted_sql, path, bad), 1);
        let over_lines = "use sqlx;\nsqlx::query_as(\n    &format!(\"select {x}\"))";
        assert_eq!(found(formatted_sql, path, over_lines), 1);
        assert_eq!(
            found(formatted_sql, path, "use sqlx;\nsqlx::query!(\"select 1\")"),
            0
        );
        assert_eq!(found(formatted_sql, path, "text.push(format!(\"a\"))"), 0);
    }

    #[test]
    fn reads_of_the_environment_are_found() {
        let text = "let x = std::env::var(\"X\");\n";
        assert_eq!(found(environment, "crates/registry/src/a.rs", text), 1);
        assert_eq!(
            found(environment, "crates/service/src/settings/values.rs", text),
            0
        );
        assert_eq!(
            found(environment, "crates/registry/src/a.rs", "std::env::args()"),
            0
        );
    }

    #[test]
    fn allowed_lints_are_found() {
        let bad = concat!("#[", "allow(dead_code)]");
        assert_eq!(found(bare_allow, "a.rs", bad), 1);
        assert_eq!(
            found(bare_allow, "a.rs", "#[expect(dead_code, reason = \"x\")]"),
            0
        );
    }
}
