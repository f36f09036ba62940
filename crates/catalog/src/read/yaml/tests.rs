use std::collections::BTreeMap;

use located_yaml::v1_1::{Located, LocatedMember, Value, read as located};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::normal::normalised;

/// Recorded with opm.
const SCALARS: &str = include_str!("../../../fixtures/yaml-scalars.tsv");

fn json(text: &str) -> Result<String, DocumentError> {
    let mut writer = JsonWriter::default();
    let line = read(text, &mut writer)?;
    Ok(line.map_or_else(|| "null".to_owned(), |_| writer.text().to_owned()))
}

#[track_caller]
fn becomes(text: &str, expected: &str) {
    match json(text) {
        Ok(json) => assert_eq!(json, expected, "{text}"),
        Err(wrong) => panic!("{text}\nline {}: {}", wrong.at.line, wrong.reason),
    }
}

#[track_caller]
fn is_refused(text: &str, line: usize, why: &str) {
    let wrong = json(text).expect_err(text);
    assert_eq!(wrong.at.line, line, "{text}: {}", wrong.reason);
    assert!(wrong.reason.contains(why), "{text}: {}", wrong.reason);
}

#[test]
fn scalars_resolve_as_in_go_yaml() {
    let mut seen = 0;
    for line in SCALARS.lines().filter(|line| !line.starts_with('#')) {
        let (text, expected) = line.split_once('\t').unwrap();
        let text: String = serde_json::from_str(text).unwrap();
        let document = format!("v: {text}\n");
        if expected == "error" {
            assert!(json(&document).is_err(), "{text}");
        } else {
            becomes(&document, &format!("{{\"v\":{expected}}}"));
        }
        seen += 1;
    }
    assert_eq!(seen, 112);
}

#[test]
fn integers_have_one_sign_and_a_limit() {
    for (text, expected) in [
        ("-0x1F", "-31"),
        ("+0b1", "1"),
        ("0b-1", "-1"),
        ("0b+1_1", "3"),
        ("-0b-1", "\"-0b-1\""),
        ("0b+", "\"0b+\""),
        ("0x-1", "\"0x-1\""),
        ("+-1", "\"+-1\""),
        ("0o8", "\"0o8\""),
        ("0x_1", "1"),
        ("0xFFFFFFFFFFFFFFFF", "18446744073709552000"),
        ("0x10000000000000000", "\"0x10000000000000000\""),
        ("-9223372036854775809", "-9223372036854776000"),
        ("-0x8000000000000001", "\"-0x8000000000000001\""),
    ] {
        becomes(&format!("[{text} ]"), &format!("[{expected}]"));
    }
}

#[test]
fn keys_become_strings() {
    becomes(
        "1: a\nyes: b\n0x10: c\n1.5: d\n2024-01-01: e\n'no': f\n-0: g\n",
        r#"{"0":"g","1":"a","1.5":"d","16":"c","2024-01-01":"e","no":"f","true":"b"}"#,
    );
    becomes(
        "1e6: a\n100000.0: b\n1234567.0: c\n0.0001: d\n0.00001: e\n3.4e40: f\n-.inf: g\n.nan: h\n",
        r#"{"-.inf":"g",".inf":"f",".nan":"h","0.0001":"d","1.234567e+06":"c","100000":"b","1e+06":"a","1e-05":"e"}"#,
    );
    becomes("&a x: 1\n*a : 2\n", r#"{"x":2}"#);
    for text in [
        "~: 1",
        "? [a]\n: 1",
        "? {a: b}\n: 1",
        "18446744073709551615: 1",
    ] {
        is_refused(text, 1, "a key must be a string");
    }
}

#[test]
fn the_last_duplicate_key_wins() {
    becomes("a: 1\na: 2\n", r#"{"a":2}"#);
    becomes("1: a\n'1': b\n0x1: c\n", r#"{"1":"c"}"#);
}

#[test]
fn aliases_are_expanded() {
    becomes(
        "a: &x [1, {b: c}]\nd: *x\ne: [*x]\n",
        r#"{"a":[1,{"b":"c"}],"d":[1,{"b":"c"}],"e":[[1,{"b":"c"}]]}"#,
    );
    becomes("a: &x 1\nb: &x 2\nc: *x\n", r#"{"a":1,"b":2,"c":2}"#);
    is_refused("a: 1\nb: *x\n", 2, "unknown anchor");
    is_refused("a: &x\n  b: [*x]\n", 2, "inside its own anchor");
}

#[test]
fn merged_members_are_written_in_place() {
    let base = "b: &b {p: 1, q: 2}\n";
    for (members, expected) in [
        ("<<: *b", r#"{"p":1,"q":2}"#),
        ("<<: *b\n  p: 3", r#"{"p":3,"q":2}"#),
        // As go-yaml, though the YAML specification keeps the member.
        ("p: 3\n  <<: *b", r#"{"p":1,"q":2}"#),
        ("<<: [*b, {p: 3, r: 4}]", r#"{"p":1,"q":2,"r":4}"#),
        ("<<: {<<: *b, q: 5}", r#"{"p":1,"q":5}"#),
        ("\"<<\": 1", r#"{"<<":1}"#),
        ("!!merge \"<<\": *b", r#"{"p":1,"q":2}"#),
    ] {
        let text = format!("{base}m:\n  {members}\n");
        becomes(&text, &format!(r#"{{"b":{{"p":1,"q":2}},"m":{expected}}}"#));
    }
    for text in ["<<: 1", "<<: [1]", "<<: ", "a: &a [1]\n<<: *a"] {
        is_refused(text, text.lines().count(), "merges objects only");
    }
}

#[test]
fn yaml_tags_count_and_custom_ones_do_not() {
    becomes(
        "a: !!str 1\nb: !own 5\nc: ! 7\nd: !!map {e: !!set {f}}\ng: !!str\nh: !!timestamp 2001-01-01\n",
        r#"{"a":"1","b":"5","c":"7","d":{"e":{"f":null}},"g":"","h":"2001-01-01"}"#,
    );
    becomes(
        "a: !!binary \"//8=\"\nb: !!binary |\n  aGVs\n  bG8=\n",
        "{\"a\":\"\u{fffd}\u{fffd}\",\"b\":\"hello\"}",
    );
    becomes(
        "a: !!float 7\nb: !!int \"0x10\"\nc: !!bool \"off\"\nd: !!null \"\"\n",
        r#"{"a":7,"b":16,"c":false,"d":null}"#,
    );
    for text in [
        "!!int 1.5",
        "!!bool 1",
        "!!null x",
        "!!float x",
        "!!binary '@'",
    ] {
        is_refused(text, 1, "is no !!");
    }
}

#[test]
fn block_scalars_keep_or_fold_lines() {
    becomes(
        "lit: |\n  a\n   b\n\n  c\nfold: >-\n  a\n  b\n\n  c\nkeep: |+\n  x\n\nplain: a\n  b\nq: 'it''s'\n",
        r#"{"fold":"a b\nc","keep":"x\n\n","lit":"a\n b\n\nc\n","plain":"a b","q":"it's"}"#,
    );
}

#[test]
fn a_second_document_is_never_lost() {
    for text in [
        "{a: 1}\n{b: 2}\n",
        "# c\n{\"a\": 1}\n{\"b\": 2}",
        "a: 1\n...\nb: 2\n",
        "[1]\n[2]",
    ] {
        is_refused(
            text,
            text.trim_end().lines().count(),
            "another document begins here",
        );
    }
    becomes("a: 1\n...\n# end\n", r#"{"a":1}"#);
}

#[test]
fn excessive_aliasing_is_refused() {
    let mut bomb = vec!["a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned()];
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push(format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let wrong = json(&bomb.concat()).unwrap_err();
    assert!(wrong.reason.contains("too large"), "{}", wrong.reason);
    let useful = format!("a: &a {{b: c}}\nd: [{}]\n", vec!["*a"; 300].join(", "));
    assert!(json(&useful).is_ok());
}

#[test]
fn repeated_long_scalars_are_refused() {
    let text = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(1000),
        vec!["*a"; 90].join(", ")
    );
    let written = |limit: usize| {
        with_nodes(&text, "", |nodes| {
            expand::write(nodes, &mut JsonWriter::default(), limit)
        })
    };
    assert!(written(100_000).is_ok());
    let wrong = written(10_000).unwrap_err();
    assert!(wrong.reason.contains("too large"), "{}", wrong.reason);
}

#[test]
fn depth_is_limited() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    becomes(&nested(10_000), &nested(10_000));
    assert!(json(&nested(10_001)).is_err());
    assert!(json(&"[".repeat(100_000)).is_err());
    assert!(json(&"- ".repeat(20_000)).is_err());
    assert!(json(&"a: &a ".repeat(5)).is_err());
}

#[test]
fn go_style_keeps_integers_and_escapes_html() {
    let text =
        "k: 12345678901234567890\nm: -0x7fffffffffffffff\nf: 1.50\nt: '<a> & \u{2028}'\n'<': 1";
    let expected = r#"{"\u003c":1,"f":1.5,"k":12345678901234567890,"m":-9223372036854775807,"t":"\u003ca\u003e \u0026 \u2028"}"#;
    assert_eq!(to_json(text).as_deref(), Ok(expected));
    assert_eq!(to_json("").as_deref(), Ok("null"));
    assert_eq!(to_json("a: 1\nb: [\n").unwrap_err().at, 5);
}

proptest! {
    #[test]
    fn json_is_read_as_yaml(json in "\\[(\"[a-z<é\\\\]?\"|[1-9]{1,3}|true|null)(,(\"[a-z<é]{0,3}\"|-?[1-9]{1,3}|\\{\"a\": ?\"\"\\})){0,5}\\]") {
        if let Ok(normal) = normalised(&json) {
            prop_assert_eq!(super::tests::json(&json).ok(), Some(normal));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "([a-c:\\-\\[\\]{},&*!|>#'\"%@`?~<. \\n\\t]|---\\n|<<: |&a |\\*a |!!int ){0,40}") {
        if let Ok(json) = json(&text) {
            prop_assert_eq!(normalised(&json).unwrap(), json);
        }
    }
}

#[test]
fn quoted_scalars_may_continue_at_their_keys_indentation() {
    for (yaml, json) in [
        (
            "a:\n  b: 'x: y\n  z: ''q''\n\n  ''w'\n  c: 1",
            r#"{"a":{"b":"x: y z: 'q'\n'w","c":1}}"#,
        ),
        ("a: \"x\\\n\\ y\nz\"\nb: 1", r#"{"a":"x y z","b":1}"#),
        (
            "- a: 'x\n  y'\n  b: 1\n- !!str 'x\n  y'",
            r#"[{"a":"x y","b":1},"x y"]"#,
        ),
        ("a: |\n  'x: 'y\nb: 'x\ny'", r#"{"a":"'x: 'y\n","b":"x y"}"#),
        ("'a b': 'x\ny'\nc: it's", r#"{"a b":"x y","c":"it's"}"#),
    ] {
        assert_eq!(to_json(yaml).as_deref(), Ok(json), "{yaml}");
    }
}

#[test]
fn blanks_are_added_to_quoted_scalars_only() {
    // The second line continues a plain scalar that resembles a quoted one.
    let yaml = "a: b\n  c: 'd\ne: f'\ng: 'h\ni'";
    assert!(to_json(yaml).is_err());
}

/// As JSON with all numbers as floats; `None` for numbers that JSON lacks.
fn as_json(it: &Located) -> Option<Json> {
    Some(match &it.value {
        Value::Null => Json::Null,
        Value::Bool(value) => json!(value),
        #[expect(clippy::cast_precision_loss, reason = "the others are floats, too")]
        Value::Integer(value) => json!(*value as f64),
        Value::Float(value) if value.is_finite() => json!(value),
        Value::Float(_) => return None,
        Value::Text(text) => json!(text),
        Value::List(list) => list.iter().map(as_json).collect::<Option<_>>()?,
        Value::Object(members) => {
            let member = |it: &LocatedMember| Some((it.name.clone(), as_json(&it.value)?));
            let members: Option<BTreeMap<_, _>> = members.iter().map(member).collect();
            json!(members?)
        }
    })
}

fn with_floats(json: Json) -> Json {
    match json {
        Json::Number(number) => json!(number.as_f64()),
        Json::Array(list) => list.into_iter().map(with_floats).collect(),
        Json::Object(members) => {
            let members = members.into_iter();
            members.map(|(name, it)| (name, with_floats(it))).collect()
        }
        other => other,
    }
}

fn agree(text: &str) -> Result<(), TestCaseError> {
    let read = located(text);
    let Ok(json) = to_json(text) else {
        prop_assert!(read.map_or(None, |it| as_json(&it)).is_none(), "{}", text);
        return Ok(());
    };
    let json: Json = serde_json::from_str(&json).unwrap();
    let found = read.ok().and_then(|it| as_json(&it));
    prop_assert_eq!(found, Some(with_floats(json)), "{}", text);
    Ok(())
}

#[test]
fn both_ways_of_reading_agree() {
    for text in [
        "a: &x {b: 1, c: 0x10}\nd: {<<: *x, b: 2}\ne: {b: 3, <<: [*x, {f: 1e3}]}\n",
        "? a\n: |\n  text\n  more\nb: 'it''s\n  long'\n",
        "[1, -1, .5, ~, yes, 1_000, 010, 2001-01-01, !!str 5, \"\\u00e4\"]",
    ] {
        agree(text).unwrap();
    }
}

proptest! {
    #[test]
    fn both_ways_of_reading_agree_about_any_text(
        text in "(a|b|<<|~|[0-9.]{1,4}|yes|\"x\"|'|: |, |- |\\[|\\]|\\{|\\}|&c |\\*c|\n {0,4}|!!str |#){0,24}"
    ) {
        agree(&text)?;
    }
}
