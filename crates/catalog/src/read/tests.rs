use std::convert::Infallible;
use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::normal::{MAX_DEPTH, normalised};

const A: &str = r#"{"schema":"a"}"#;
const B: &str = r#"{"schema":"b"}"#;

fn workers(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

fn read_memory(
    files: impl IntoIterator<Item = (String, Vec<u8>), IntoIter: Send>,
    count: usize,
) -> (Vec<Document>, CatalogProblems) {
    let files = files.into_iter();
    let files = files.map(|(name, content)| (PathBuf::from(name), content));
    let mut documents = Vec::new();
    let Ok(problems) = read_files(files, workers(count), |document| {
        documents.push(document);
        Ok::<_, Infallible>(())
    });
    (documents, problems)
}

/// Documents and broken rules of one file, by line.
fn file(content: impl AsRef<[u8]>) -> Vec<(u64, String)> {
    let content = content.as_ref().to_vec();
    let (documents, problems) = read_memory([("f".to_owned(), content)], 1);
    let documents = documents.into_iter().map(|it| (it.origin.line, it.json));
    let problems = problems.0.into_iter().map(|it| {
        let origin = it.origin.unwrap();
        assert_eq!(*origin.file, *Path::new("f"));
        (origin.line, format!("{}: {}", it.rule, it.text))
    });
    let mut all: Vec<_> = documents.chain(problems).collect();
    all.sort_by_key(|(line, _)| *line);
    all
}

/// Asserts documents and problem prefixes of a file.
#[track_caller]
fn gives(content: impl AsRef<[u8]>, expected: &[(u64, &str)]) {
    let content = content.as_ref();
    let found = file(content);
    let is_as_expected = found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, expected)| {
            let is_document = found.1.starts_with('{');
            found.0 == expected.0
                && if is_document {
                    found.1 == expected.1
                } else {
                    found.1.starts_with(expected.1)
                }
        });
    let content = String::from_utf8_lossy(&content[..content.len().min(1000)]);
    assert!(
        is_as_expected,
        "{content}\n{found:.1000?}\n{expected:.1000?}"
    );
}

#[test]
fn an_empty_file_is_an_empty_catalog() {
    gives("", &[]);
}

#[test]
fn objects_need_no_space_between_them() {
    gives(
        format!("{A}{B}\n\n \t{{\r\n\"schema\":\n\"c\"}}"),
        &[(1, A), (1, B), (3, r#"{"schema":"c"}"#)],
    );
}

#[test]
fn an_object_may_stand_before_documents_of_yaml() {
    gives(format!("{A}\n---\nschema: b\n"), &[(1, A), (3, B)]);
    gives(format!("{A}\nschema: b\n"), &[(1, A), (2, B)]);
    gives(format!("{A} schema: b\n"), &[(1, A), (1, B)]);
    gives(
        format!("{A}\n---\n{B}\n---\n{A}\n"),
        &[(1, A), (3, B), (5, A)],
    );
}

#[test]
fn only_objects_may_follow_two_objects() {
    gives(
        format!("{A}{B}\n---\nschema: c\n"),
        &[(1, A), (1, B), (2, "syntax: expected a JSON object")],
    );
    gives(
        format!("{A}{B}{{\"schema\":\"c\",}}{A}"),
        &[(1, A), (1, B), (1, A), (1, "syntax: a name")],
    );
}

#[test]
fn yaml_flow_style_is_not_json() {
    gives(r#"{"schema":"a",}"#, &[(1, A)]);
    gives("{schema: a}\n---\n{schema: b}\n", &[(1, A), (3, B)]);
    gives(
        "{schema: a, # }\n text: it's\n}\n",
        &[(1, r#"{"schema":"a","text":"it's"}"#)],
    );
    gives(
        r#"{"schema":"a","n":1e400}"#,
        &[(1, r#"{"n":"1e400","schema":"a"}"#)],
    );
}

/// opm silently reads one of each.
#[test]
fn no_object_is_lost() {
    gives(
        format!("{{\"schema\":\"a\",}}\n{B}\n"),
        &[(1, "syntax: a name"), (2, B)],
    );
    gives(
        format!("{A}\n{{\"schema\":\"b\",}}\n{A}"),
        &[(1, A), (2, "syntax: a name"), (3, A)],
    );
    gives(
        format!("# c\n{A}\n{B}\n"),
        &[(3, "syntax: another document begins here")],
    );
    gives(
        format!("\u{feff}{A}{B}"),
        &[(1, "syntax: another document begins here")],
    );
    gives(
        "schema: a\n...\nschema: b\n",
        &[(3, "syntax: another document begins here")],
    );
}

#[test]
fn json_errors_have_lines() {
    gives(
        "{\n\"schema\": \"a\",\n\"b\" 1\n}",
        &[(3, "syntax: `:` was expected, not '1'")],
    );
    gives(
        format!("{A}{B}\n\n{{\"schema\":\n"),
        &[(1, A), (1, B), (4, "syntax: it ends where a value")],
    );
    gives(
        format!("{A}{B}\n{{\"c\":tru}}\n{B}"),
        &[(1, A), (1, B), (2, "syntax: a value"), (3, B)],
    );
    gives(
        format!("{A}{B}null"),
        &[(1, A), (1, B), (1, "syntax: expected a JSON object")],
    );
}

#[test]
fn yaml_documents_are_split_at_separators() {
    gives("schema: a\n---\nschema: b\n", &[(1, A), (3, B)]);
    gives(
        "---\nschema: a\n--- # c\n\n# d\nschema: b\n---",
        &[(2, A), (6, B)],
    );
    gives(
        "schema: a\r\n---\r\n---\r\nschema: b\r\n",
        &[(1, A), (4, B)],
    );
    gives(
        "text: |\n ---\n x\nschema: a\n",
        &[(1, r#"{"schema":"a","text":"---\nx\n"}"#)],
    );
}

#[test]
fn empty_yaml_documents_do_not_count() {
    for text in [
        "\n",
        "# c\n",
        "null\n",
        "~",
        " \n \n",
        "---\n---\n",
        "---\n# c\n---",
        "---\n...\n",
    ] {
        gives(text, &[]);
    }
    for text in [
        "schema: a\n---\n# c\n---\nschema: b\n",
        "schema: a\n---\n---\n---\nschema: b\n",
    ] {
        gives(text, &[(1, A), (5, B)]);
    }
    gives(format!("{A}\n# c\n"), &[(1, A)]);
    gives("---\n---\nschema: a\n", &[(3, A)]);
    gives(format!("{A}\n---\n"), &[(1, A)]);
}

#[test]
fn only_a_comment_may_follow_a_separator() {
    let wrong = "syntax: only a comment may follow";
    gives(
        "schema: a\n--- {schema: c}\n---\nschema: b\n",
        &[(1, A), (2, wrong), (4, B)],
    );
    gives("----\nx: y\n---\n---\nschema: b\n", &[(1, wrong), (5, B)]);
    gives("schema: a\n--- x", &[(1, A), (2, wrong)]);
}

#[test]
fn yaml_errors_have_lines() {
    gives(
        "schema: a\nb: [\n---\nschema: b\n---\nc: 1\nd: *x\n---\nname: d\n",
        &[
            (2, "syntax: not YAML"),
            (4, B),
            (7, "syntax: not YAML"),
            (9, "document: the document has no"),
        ],
    );
    gives(
        "schema: a\nb: .inf\n",
        &[(2, "syntax: JSON has no such number")],
    );
    gives("schema: a\nb:\n\tc: 1\n", &[(3, "syntax: not YAML")]);
}

#[test]
fn schema_package_and_name_are_case_insensitive() {
    let text = r#"{"SCHEMA":"a\u003c","Package":"p\"","nAME":"n","ſ":1}"#;
    let (documents, problems) = read_memory([("f".to_owned(), text.into())], 1);
    assert_eq!(problems, CatalogProblems::default());
    let document = &documents[0];
    assert_eq!(
        [&document.schema, &document.package, &document.name],
        ["a<", "p\"", "n"]
    );
    gives(r#"{"ſchema":"a"}"#, &[(1, r#"{"ſchema":"a"}"#)]);
}

#[test]
fn no_two_members_differ_in_case_only() {
    for (one, other) in [
        ("name", "Name"),
        ("foo", "FOO"),
        ("ß", "SS"),
        ("k", "\u{212a}"),
        ("ẞ", "ss"),
        ("ﬀ", "FF"),
        ("σ", "ς"),
    ] {
        for (schema, rule) in [("a", "custom-document: "), ("olm.bundle", "document: ")] {
            gives(
                json!({"schema": schema, one: "1", other: "2"}).to_string(),
                &[(1, rule)],
            );
        }
    }
    gives(
        r#"{"schema":"a","b":{"c":1,"C":2}}"#,
        &[(1, r#"{"b":{"C":2,"c":1},"schema":"a"}"#)],
    );
    gives(r#"{"schema":"b","schema":"a"}"#, &[(1, A)]);
    let dotless = r#"{"i":1,"schema":"a","ı":2}"#;
    gives(dotless, &[(1, dotless)]);
}

#[test]
fn schema_package_and_name_are_strings() {
    for key in ["schema", "package", "name"] {
        for value in ["null", "1", "true", "{}", "[]"] {
            let text = format!("{{\"schema\":\"a\",\"{key}\":{value}}}");
            let rule = if key == "schema" {
                "document"
            } else {
                "custom-document"
            };
            gives(
                text,
                &[(
                    1,
                    &format!("{rule}: the value of \"{key}\" must be a string"),
                )],
            );
        }
    }
}

#[test]
fn every_document_has_a_schema() {
    let wrong = "document: the document has no \"schema\"";
    for text in [
        "{}",
        r#"{"name":"n"}"#,
        r#"{"schema":""}"#,
        "name: x",
        "Schemas: a",
    ] {
        gives(text, &[(1, wrong)]);
    }
    for text in ["[1]", "text", "- schema: a", "1"] {
        gives(text, &[(1, "document: a document is an object")]);
    }
    gives(
        format!("{A}\n[1]\n"),
        &[(1, A), (2, "document: a document is an object")],
    );
}

#[test]
fn problems_name_their_package_if_known() {
    let text = r#"{"schema":1,"package":"p"}"#;
    let (_, problems) = read_memory([("f".to_owned(), text.into())], 1);
    assert_eq!(problems.0[0].package, "p");
}

#[test]
fn invalid_utf_8_is_replaced_in_json_and_refused_in_yaml() {
    gives(
        b"{\"schema\":\"a\",\"b\":\"\xe2\x82c\xed\xa0\x80\xff\"}",
        &[(
            1,
            "{\"b\":\"\u{fffd}\u{fffd}c\u{fffd}\u{fffd}\u{fffd}\u{fffd}\",\"schema\":\"a\"}",
        )],
    );
    gives(
        b"schema: a\nb: \xff\n---\nschema: b\n",
        &[(2, "syntax: a byte is not UTF-8"), (4, B)],
    );
    gives(
        b"{\"schema\":\"a\"}\xff",
        &[(1, A), (1, "syntax: a byte is not UTF-8")],
    );
}

#[test]
fn utf_16_is_refused_and_a_utf_8_mark_is_skipped() {
    for mark in [b"\xff\xfe", b"\xfe\xff"] {
        gives(
            [&mark[..], b"{\0}\0"].concat(),
            &[(1, "syntax: the file is UTF-16")],
        );
    }
    gives(format!("\u{feff}{A}"), &[(1, A)]);
    gives("\u{feff}---\nschema: a\n", &[(2, A)]);
    gives("{\0\"\0", &[(1, "syntax: ")]);
}

#[test]
fn depth_is_limited() {
    let nested = |depth| {
        format!(
            "{{\"a\":{}{},\"schema\":\"a\"}}",
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    let deepest = nested(MAX_DEPTH - 1);
    gives(&deepest, &[(1, &deepest)]);
    let wrong = "syntax: objects and lists are nested more than 10000 deep";
    gives(nested(MAX_DEPTH), &[(1, wrong)]);
    gives(format!("# yaml\n{deepest}"), &[(2, &deepest)]);
    gives(format!("# yaml\n{}", nested(MAX_DEPTH)), &[(2, "syntax: ")]);
    gives("[".repeat(1_000_000), &[(1, "syntax: not YAML")]);
    gives("{\"a\":".repeat(1_000_000), &[(1, wrong)]);
}

#[test]
fn a_document_of_100_mb_is_read() {
    let line = "0123456789abcdef".repeat(1 << 12);
    let lines = vec![line.as_str(); (100 << 20) / line.len()];
    let text = format!(
        "{{\"schema\": \"a\", \"lines\": [\"{}\"]}}",
        lines.join("\", \"")
    );
    let expected = format!(
        "{{\"lines\":[\"{}\"],\"schema\":\"a\"}}",
        lines.join("\",\"")
    );
    let (documents, problems) = read_memory([("f".to_owned(), text.into_bytes())], 1);
    assert_eq!(problems, CatalogProblems::default());
    assert!(documents[0].json == expected);
}

#[test]
fn a_hundred_thousand_documents_come_in_order() {
    let text: Vec<_> = (0..100_000)
        .map(|number| format!("{{\"schema\":\"a\",\"name\":\"{number}\"}}\n"))
        .collect();
    let text = text.concat();
    let (documents, problems) = read_memory([("f".to_owned(), text.into_bytes())], 2);
    assert_eq!(problems, CatalogProblems::default());
    assert_eq!(documents.len(), 100_000);
    for (number, document) in documents.iter().enumerate() {
        assert_eq!(document.name, number.to_string());
        assert_eq!(document.origin.line, number as u64 + 1);
    }
}

#[test]
fn files_are_delivered_in_order_by_any_number_of_workers() {
    // Large and small ones, and some with nothing but problems.
    let files: Vec<_> = (0..200_usize)
        .map(|number| {
            let size = if number % 10 == 0 { 3000 } else { 1 };
            let text = match number % 7 {
                0 => "[".to_owned(),
                _ => format!(
                    "{{\"schema\":\"a\",\"name\":\"{number}\",\"text\":\"{}\"}}",
                    "x".repeat(100)
                ),
            };
            (format!("f{number}"), text.repeat(size).into_bytes())
        })
        .collect();
    let (expected, wrong) = read_memory(files.clone(), 1);
    assert_eq!(wrong.0.len(), 29);
    let order: Vec<_> = wrong
        .0
        .iter()
        .map(|it| it.origin.clone().unwrap().file)
        .collect();
    assert!(
        order
            .iter()
            .map(|it| it.to_str().unwrap()[1..].parse::<usize>().unwrap())
            .is_sorted()
    );
    for count in [2, 3, 16] {
        let (documents, problems) = read_memory(files.clone(), count);
        assert!(documents == expected, "{count} workers");
        assert_eq!(problems, wrong);
    }
}

#[test]
fn an_error_of_the_callback_stops_reading() {
    let mut taken = 0;
    let mut count = 0;
    let files = (0..).map(|number| {
        taken += 1;
        (
            PathBuf::from(format!("f{number}")),
            A.repeat(10).into_bytes(),
        )
    });
    let end = read_files(files, workers(3), |_| {
        count += 1;
        if count == 25 { Err("enough") } else { Ok(()) }
    });
    assert_eq!(end, Err("enough"));
    assert_eq!(count, 25);
    assert!(taken < 100, "{taken} files were read");
}

#[test]
fn surplus_problems_are_only_counted() {
    let text = "{}".repeat(MAX_PROBLEMS + 5);
    let (_, problems) = read_memory([("f".to_owned(), text.into_bytes())], 2);
    assert_eq!(problems.0.len(), MAX_PROBLEMS + 1);
    assert_eq!(problems.0.last().unwrap().text, "5 more problems follow");
}

#[test]
fn problem_messages_are_bounded() {
    let long = "x".repeat(100_000);
    let text = format!(
        "{{\"schema\":\"a\",\"{long}\":1,\"{}\":2}}",
        long.to_uppercase()
    );
    let found = file(text);
    assert!(found[0].1.contains("differ in case only"), "{found:.200?}");
    assert!(found[0].1.len() < 300);
    let found = file(format!("schema: a\nn: !!int {long}\n"));
    assert!(found[0].1.contains("is no !!int"));
    assert!(found[0].1.len() < 300);
    let names = 'a'..='z';
    let members: Vec<_> = names
        .map(|it| format!("\"{it}\":1,\"{}\":2", it.to_uppercase()))
        .collect();
    assert!(file(format!("{{{}}}", members.join(",")))[0].1.len() < 500);
}

#[test]
fn documents_and_problems_are_in_walk_order() {
    let folder = TempDir::new().unwrap();
    for (name, text) in [
        ("b/x.yaml", "schema: b"),
        ("a.json", A),
        ("a/z", "["),
        ("c", "{}"),
        (".indexignore", "*.md\n"),
        ("README.md", "# Read me"),
    ] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    std::os::unix::fs::symlink("nowhere", folder.path().join("bb")).unwrap();
    let mut documents = Vec::new();
    let Ok(problems) = read(folder.path(), workers(2), |document| {
        documents.push(document.origin.to_string());
        Ok::<_, Infallible>(())
    });
    assert_eq!(documents, ["a.json:1", "b/x.yaml:1"]);
    let wrong: Vec<_> = problems
        .0
        .iter()
        .map(|it| (it.origin.as_ref().unwrap().to_string(), it.rule))
        .collect();
    let expected = [
        ("a/z:1", Rule::Syntax),
        ("bb:1", Rule::Readable),
        ("c:1", Rule::Document),
    ];
    assert_eq!(
        wrong,
        expected.map(|(origin, rule)| (origin.to_owned(), rule))
    );
}

#[test]
fn missing_and_unreadable_files_are_problems() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("b"), B).unwrap();
    let sources = ["a", "b", "."].map(|name| FileSource {
        name: PathBuf::from(name),
        content: FileContent::File(folder.path().join(name)),
    });
    let mut documents = Vec::new();
    let Ok(problems) = read_sources(sources.into_iter(), workers(2), |document| {
        documents.push(document.json);
        Ok::<_, Infallible>(())
    });
    assert_eq!(documents, [B]);
    let wrong = problems
        .0
        .iter()
        .map(|it| (it.origin.as_ref().unwrap().to_string(), it.rule));
    let expected = ["a:1", ".:1"].map(|it| (it.to_owned(), Rule::Readable));
    assert_eq!(wrong.collect::<Vec<_>>(), expected);
}

#[test]
fn a_missing_folder_is_a_problem() {
    let Ok(problems) = read(Path::new("/nowhere/at/all"), cores(), |_| {
        Ok::<_, Infallible>(())
    });
    assert_eq!(problems.0.len(), 1);
    assert_eq!(problems.0[0].rule, Rule::Readable);
}

fn documents() -> impl Strategy<Value = Vec<Value>> {
    let text = "[a-z \"\\\\\n#:{}é-]{0,8}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text, inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    let document =
        (text, value).prop_map(|(name, value)| json!({"schema": "a", "name": name, "x": value}));
    prop::collection::vec(document, 1..5)
}

proptest! {
    /// As objects, and as YAML with the same content.
    #[test]
    fn documents_are_what_serde_json_reads_in_the_normal_form(documents in documents(), step in 0_usize..3) {
        let texts = documents.iter().map(|document| match step {
            0 => document.to_string(),
            1 => serde_json::to_string_pretty(document).unwrap() + "\n",
            _ => format!("---\n{document}\n"),
        });
        let (read, problems) = read_memory([("f".to_owned(), texts.collect::<String>().into_bytes())], 1);
        prop_assert_eq!(problems, CatalogProblems::default());
        let read: Vec<_> = read.into_iter().map(|document| document.json).collect();
        let expected: Vec<_> = documents.iter().map(|it| normalised(&it.to_string()).unwrap()).collect();
        prop_assert_eq!(read, expected);
    }
}
