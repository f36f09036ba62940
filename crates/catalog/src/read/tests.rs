use std::convert::Infallible;

use super::*;

const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// What a single file gives: `line: normal form` and `line: [rule]`.
fn file(content: impl AsRef<[u8]>) -> Vec<String> {
    let content = content.as_ref().to_vec();
    let mut found = Vec::new();
    let files = [(PathBuf::from("f"), content)].into_iter();
    let Ok(problems) = read_files(files, TWO, |document| {
        found.push((document.origin.line, document.json));
        Ok::<_, Infallible>(())
    });
    let wrong = problems.0.into_iter().map(|problem| {
        let line = problem.origin.unwrap().line;
        (line, format!("[{}] {}", problem.rule, problem.text))
    });
    found.extend(wrong);
    found.sort();
    found
        .into_iter()
        .map(|(line, text)| format!("{line}: {text}"))
        .collect()
}

#[test]
fn objects_need_no_space_between_them() {
    assert_eq!(
        file("{\"schema\":\"a\"}{\"schema\":\"b\"}\n\n {\n\"schema\":\"c\"}"),
        [
            r#"1: {"schema":"a"}"#,
            r#"1: {"schema":"b"}"#,
            r#"3: {"schema":"c"}"#
        ]
    );
}

#[test]
fn documents_of_yaml_are_parted_by_lines() {
    assert_eq!(
        file("# x\nschema: a\nb: yes\n---\n--- # y\nschema: b\n"),
        [r#"2: {"b":true,"schema":"a"}"#, r#"6: {"schema":"b"}"#]
    );
}
