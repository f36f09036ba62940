//! The shapes of the API description, and whether a value has its shape.
//!
//! `shapes.json` has one text for each shape: `string`, `integer`, `number`, `boolean`, `uuid`, `date-time`, `time`, `any`,
//! `none` and `file`; `=a|b` is one of these texts, `[x]` a list, `{x}` a map, `@x` a record. A `?` after a shape allows
//! null, a `!` after a member's name means: always sent in an answer, required in a request.
//!
//! Source: the installer API description, and the presence rules that the service's JSON encoder follows. Where the
//! service answers otherwise than it is described (the operator `numaresources`), its answers count.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// Shapes by the names of members or parameters.
pub(super) type MemberShapes = BTreeMap<String, String>;

/// The description.
#[derive(Debug, Deserialize)]
pub(super) struct ApiShapes {
    pub(super) operations: BTreeMap<String, DescribedOperation>,
    /// Records of answers.
    answers: BTreeMap<String, MemberShapes>,
    /// Records of requests.
    pub(super) bodies: BTreeMap<String, MemberShapes>,
}

/// One operation.
#[derive(Debug, Deserialize)]
pub(super) struct DescribedOperation {
    /// Method and path.
    pub(super) route: String,
    /// Shapes of successful answers by status.
    pub(super) answers: BTreeMap<u16, String>,
    /// Query parameters.
    #[serde(default)]
    pub(super) query: MemberShapes,
    /// Name and shape of the body.
    #[serde(default)]
    pub(super) body: MemberShapes,
}

impl DescribedOperation {
    pub(super) fn method(&self) -> &str {
        self.route.split(' ').next().unwrap()
    }

    pub(super) fn path(&self) -> &str {
        self.route.split(' ').nth(1).unwrap()
    }
}

impl ApiShapes {
    pub(super) fn read() -> Self {
        serde_json::from_str(include_str!("shapes.json")).unwrap()
    }

    /// Deviations of an answer from its shape, each with its place.
    pub(super) fn deviations(&self, shape: &str, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.compare(shape, value, "answer", &mut found);
        found
    }

    fn compare(&self, shape: &str, value: &Value, place: &str, found: &mut Vec<String>) {
        if let Some(shape) = shape.strip_suffix('?') {
            if !value.is_null() {
                self.compare(shape, value, place, found);
            }
            return;
        }
        match (shape.split_at(1), value) {
            (("@", record), Value::Object(_)) => self.compare_record(record, value, place, found),
            (("[", _), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.compare(inner(shape), item, &format!("{place}[{index}]"), found);
                }
            }
            (("{", _), Value::Object(members)) => {
                for (name, member) in members {
                    self.compare(inner(shape), member, &format!("{place}.{name}"), found);
                }
            }
            _ if is_scalar(shape, value) => {}
            _ => found.push(format!("{place} is not {shape}: {value}")),
        }
    }

    fn compare_record(&self, record: &str, value: &Value, place: &str, found: &mut Vec<String>) {
        let members = &self.answers[record];
        for (key, shape) in members {
            let (name, is_always_sent) = split(key);
            match value.get(name) {
                Some(member) => self.compare(shape, member, &format!("{place}.{name}"), found),
                None if is_always_sent => found.push(format!("{place}.{name} is absent")),
                None => {}
            }
        }
        let known = |name: &str| {
            let required = format!("{name}!");
            members.contains_key(name) || members.contains_key(&required)
        };
        let sent = value.as_object().into_iter().flatten();
        for (name, _) in sent.filter(|(name, _)| !known(name)) {
            found.push(format!("{place}.{name} is not described"));
        }
    }
}

/// The shape of the items of a list or map.
pub(super) fn inner(shape: &str) -> &str {
    &shape[1..shape.len() - 1]
}

/// A member's name, and whether it is marked.
pub(super) fn split(key: &str) -> (&str, bool) {
    key.strip_suffix('!')
        .map_or((key, false), |name| (name, true))
}

fn is_scalar(shape: &str, value: &Value) -> bool {
    let text = value.as_str();
    match shape {
        "any" => true,
        "string" => text.is_some(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "uuid" => text.is_some_and(|text| text.len() == 36 && uuid::Uuid::parse_str(text).is_ok()),
        // Three digits of the second's fraction.
        "date-time" => text.is_some_and(|text| is_time(text) && text.len() == 24),
        // Up to nine, without trailing zeros.
        "time" => {
            text.is_some_and(|text| is_time(text) && (!text.contains('.') || !text.ends_with("0Z")))
        }
        _ => {
            let mut known = shape
                .strip_prefix('=')
                .into_iter()
                .flat_map(|set| set.split('|'));
            text.is_some_and(|text| known.any(|one| one == text))
        }
    }
}

fn is_time(text: &str) -> bool {
    text.ends_with('Z') && chrono::DateTime::parse_from_rfc3339(text).is_ok()
}

#[test]
fn deviations_are_found() {
    use serde_json::json;
    let shapes = json!({
        "operations": {},
        "answers": { "thing": {
            "id!": "uuid", "at!": "date-time", "made": "time", "kind": "=a|b", "parts": "[@thing]?", "more": "{integer}",
        } },
        "bodies": {},
    });
    let description: ApiShapes = serde_json::from_value(shapes).unwrap();
    let id = "00000000-0000-4000-8000-000000000001";
    let at = "2026-01-02T03:04:05.000Z";
    for (value, expected) in [
        (
            json!({ "id": id, "at": at, "parts": null, "more": { "x": 1 } }),
            "",
        ),
        (
            json!({ "id": id, "at": at, "kind": "a", "made": "2026-01-02T03:04:05.12Z" }),
            "",
        ),
        (json!({ "id": id }), "answer.at is absent"),
        (
            json!({ "id": "x", "at": at }),
            "answer.id is not uuid: \"x\"",
        ),
        (
            json!({ "id": id, "at": "2026-01-02T03:04:05Z" }),
            "answer.at is not date-time: \"2026-01-02T03:04:05Z\"",
        ),
        (
            json!({ "id": id, "at": at, "made": "2026-01-02T03:04:05.10Z" }),
            "answer.made is not time: \"2026-01-02T03:04:05.10Z\"",
        ),
        (
            json!({ "id": id, "at": at, "kind": "c" }),
            "answer.kind is not =a|b: \"c\"",
        ),
        (
            json!({ "id": id, "at": at, "kind": null }),
            "answer.kind is not =a|b: null",
        ),
        (
            json!({ "id": id, "at": at, "more": { "x": "y" } }),
            "answer.more.x is not integer: \"y\"",
        ),
        (
            json!({ "id": id, "at": at, "parts": [{ "id": id }] }),
            "answer.parts[0].at is absent",
        ),
        (
            json!({ "id": id, "at": at, "else": 1 }),
            "answer.else is not described",
        ),
        (json!([]), "answer is not @thing: []"),
    ] {
        let found = description.deviations("@thing", &value).join(", ");
        assert_eq!(found, expected, "{value}");
    }
}
