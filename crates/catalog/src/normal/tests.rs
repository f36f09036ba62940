use proptest::prelude::*;
use serde_json::Value;

use super::*;

#[track_caller]
fn becomes(json: &str, normal: &str) {
    assert_eq!(normalised(json).as_deref(), Ok(normal), "{json}");
}

#[test]
fn members_are_sorted_by_bytes_and_the_last_of_equal_ones_stays() {
    becomes(
        r#" { "b" : 1 , "a" : { "d" : [ ] , "c" : { } } , "b" : [ 2 , { } ] } "#,
        r#"{"a":{"c":{},"d":[]},"b":[2,{}]}"#,
    );
    becomes(r#"{"a":1,"a":2,"a":3}"#, r#"{"a":3}"#);
    becomes(
        r#"{"aa":1,"a":2,"B":3,"":4}"#,
        r#"{"":4,"B":3,"a":2,"aa":1}"#,
    );
    becomes(r#"{"é":1,"z":2,"\u0041":3}"#, r#"{"A":3,"z":2,"é":1}"#);
}

#[test]
fn names_are_compared_unescaped() {
    becomes(r##"{"\"":1,"#":2,"!":3}"##, r##"{"!":3,"\"":1,"#":2}"##);
    becomes(r#"{"\\":1,"]":2,"[":3}"#, r#"{"[":3,"\\":1,"]":2}"#);
    becomes(
        r#"{"\n":1," ":2,"\u0001":3,"\u000a":4}"#,
        r#"{"\u0001":3,"\n":4," ":2}"#,
    );
}

#[test]
fn numbers_are_printed_as_ecmascript_does_but_for_negative_zero() {
    for (number, normal) in [
        ("1.50", "1.5"),
        ("1.0", "1"),
        ("-0", "-0"),
        ("-0.0", "-0"),
        ("0", "0"),
        ("1e21", "1e+21"),
        ("1e20", "100000000000000000000"),
        ("1E-7", "1e-7"),
        ("0.000001", "0.000001"),
        ("100000000000000000000", "100000000000000000000"),
        ("12345678901234567890", "12345678901234567000"),
        ("999999999999999", "999999999999999"),
        ("9007199254740993", "9007199254740992"),
        ("-123456789012345.678", "-123456789012345.67"),
        ("5e-324", "5e-324"),
        ("1e-400", "0"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
    ] {
        becomes(number, normal);
    }
}

#[test]
fn malformed_numbers_are_refused() {
    for text in [
        "01", "+1", ".5", "1.", "1e", "-", "0x1", "1e400", "-1e400", "NaN", "1_0",
    ] {
        assert!(normalised(text).is_err(), "{text}");
    }
}

#[test]
fn escapes_are_minimal() {
    becomes(r#""\u003c\u003E\u0026\/""#, r#""<>&/""#);
    becomes(r#""\u2028\u2029""#, r#""\u2028\u2029""#);
    becomes("\"\u{2028}–\u{2029}\"", r#""\u2028–\u2029""#);
    becomes(
        r#""\u0008\u000c\u000A\u000d\u0009\u0001\u001f\u007f""#,
        "\"\\b\\f\\n\\r\\t\\u0001\\u001f\u{7f}\"",
    );
    becomes(r#""\"\\\b\f\n\r\t""#, r#""\"\\\b\f\n\r\t""#);
    becomes(
        r#""\ud83d\ude00\ud83d\ud83dx\udE00""#,
        "\"😀\u{fffd}\u{fffd}x\u{fffd}\"",
    );
}

#[test]
fn malformed_strings_are_refused() {
    for text in [
        r#"""#,
        r#""\"#,
        r#""\x""#,
        r#""\u12""#,
        r#""\u12g4""#,
        "\"\n\"",
        "\"\u{1}\"",
        "'a'",
    ] {
        assert!(normalised(text).is_err(), "{text}");
    }
}

#[test]
fn malformed_json_is_refused_with_its_offset() {
    for (json, at) in [
        ("", 0),
        ("{", 1),
        ("{,}", 1),
        (r#"{"a"}"#, 4),
        (r#"{"a":}"#, 5),
        (r#"{"a":1,}"#, 7),
        (r#"{"a":1]"#, 6),
        (r#"{"a":1 "b":2}"#, 7),
        ("{a:1}", 1),
        ("[1,]", 3),
        ("[1}", 2),
        ("[,1]", 1),
        ("{} {}", 3),
        ("nul", 0),
        ("truex", 4),
        ("]", 0),
    ] {
        let at_found = normalised(json).map_err(|malformed| malformed.at);
        assert_eq!(at_found, Err(at), "{json}");
    }
}

#[test]
fn depth_is_limited() {
    let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
    becomes(&nested(MAX_DEPTH), &nested(MAX_DEPTH));
    assert!(normalised(&nested(MAX_DEPTH + 1)).is_err());
    assert!(normalised(&"[".repeat(1_000_000)).is_err());
    let objects = |depth| r#"{"b":"#.repeat(depth) + "1" + &r#","a":2}"#.repeat(depth);
    assert!(normalised(&objects(MAX_DEPTH)).is_ok());
    assert!(normalised(&objects(MAX_DEPTH + 1)).is_err());
}

#[test]
fn html_is_escaped_on_demand() {
    assert_eq!(
        html_escaped(r#"{"a":"<b> & c"}"#),
        r#"{"a":"\u003cb\u003e \u0026 c"}"#
    );
    assert_eq!(html_escaped("[1]"), "[1]");
}

/// JSON values with special characters anywhere in their strings.
fn values() -> impl Strategy<Value = Value> {
    let text =
        || proptest::string::string_regex("[a-c\"\\\\\n\u{1}\u{7f}é—\u{2028}<😀]{0,12}").unwrap();
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        // serde_json reads floats of more digits inexactly.
        any::<i32>().prop_map(|it| Value::from(f64::from(it) / 64.0)),
        any::<i64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Converts all numbers to 64-bit floats.
fn with_floats(value: &mut Value) {
    match value {
        Value::Number(number) => *value = Value::from(number.as_f64().unwrap()),
        Value::Array(values) => values.iter_mut().for_each(with_floats),
        Value::Object(members) => members.values_mut().for_each(with_floats),
        _ => {}
    }
}

proptest! {
    #[test]
    fn normalising_is_idempotent(value in values()) {
        let normal = normalised(&serde_json::to_string_pretty(&value).unwrap()).unwrap();
        prop_assert_eq!(normalised(&normal).unwrap(), normal);
    }

    #[test]
    fn the_normal_form_equals_serde_json(value in values()) {
        let json = serde_json::to_string(&value).unwrap();
        let normal = normalised(&json).unwrap();
        let mut read: Value = serde_json::from_str(&normal).unwrap();
        let mut value = value;
        with_floats(&mut value);
        with_floats(&mut read);
        prop_assert_eq!(read, value);
    }

    #[test]
    fn it_accepts_the_same_json_as_serde_json(json in "[\\[\\]{}:,\"\\\\a0-9.eu+\\- tn]{0,12}") {
        prop_assert_eq!(normalised(&json).is_ok(), serde_json::from_str::<Value>(&json).is_ok(), "{}", json);
    }

    #[test]
    fn floats_round_trip(value: f64) {
        prop_assume!(value.is_finite());
        let normal = normalised(&format!("{value:e}")).unwrap();
        prop_assert_eq!(normal.parse::<f64>().unwrap().to_bits(), value.to_bits());
    }

    #[test]
    fn any_text_is_normalised_or_refused(text in ".{0,64}") {
        let _ = normalised(&text);
    }

    #[test]
    fn strings_round_trip(text in ".{0,40}") {
        let mut writer = JsonWriter::default();
        writer.string(&text);
        let printed = writer.text();
        prop_assert_eq!(&unescaped(&printed[1..printed.len() - 1]), &text);
        prop_assert_eq!(&serde_json::from_str::<String>(printed).unwrap(), &text);
        prop_assert_eq!(normalised(printed).unwrap(), printed);
    }
}
