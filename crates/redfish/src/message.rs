//! Messages in answers: reasons of refusals and results of tasks. Source: DSP0266 "Error responses", DSP0268 Message.

use serde_json::Value;

use super::image_address::HIDDEN;

/// Messages of one answer that are read.
const COUNT_LIMIT: usize = 8;
/// Longest text of a reason. Units: characters.
const TEXT_LIMIT: usize = 500;
/// Longest secret-free list of affected properties in one message.
const PROPERTY_LIMIT: usize = 8;

/// A message of the BMC.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RedfishMessage {
    /// Identifier without registry and version: `ActionParameterMissing`.
    pub id: String,
    /// Its text with its arguments.
    pub text: String,
    /// The affected properties, as JSON pointers or names.
    pub properties: Vec<String>,
}

impl RedfishMessage {
    /// Whether the message is about the property of this name.
    pub(super) fn concerns(&self, property: &str) -> bool {
        let by_pointer = |it: &String| it.rsplit('/').next() == Some(property);
        self.properties.iter().any(by_pointer) || self.text.contains(property)
    }
}

/// The messages of an answer, in order.
pub(super) fn messages(body: &Value) -> Vec<RedfishMessage> {
    let extended = "@Message.ExtendedInfo";
    let lists = [&body["error"][extended], &body[extended], &body["Messages"]];
    let mut found: Vec<RedfishMessage> = Vec::new();
    for list in lists {
        let single = std::slice::from_ref(list);
        let items = list.as_array().map_or(single, Vec::as_slice);
        let items = items.iter().filter(|it| it.is_object());
        found.extend(items.take(COUNT_LIMIT - found.len()).map(message));
    }
    let outer = &body["error"];
    if found.iter().all(|it| it.text.is_empty()) && outer["message"].is_string() {
        found.truncate(COUNT_LIMIT - 1);
        found.push(RedfishMessage {
            id: short_id(text(&outer["code"])),
            text: bounded(text(&outer["message"])),
            properties: Vec::new(),
        });
    }
    found
}

/// The texts of messages on one line; without any, the words of `status`.
pub(super) fn reason(messages: &[RedfishMessage], status: u16) -> String {
    let shown = |it: &RedfishMessage| {
        if it.text.is_empty() {
            it.id.clone()
        } else {
            it.text.clone()
        }
    };
    let mut texts: Vec<String> = Vec::new();
    for text in messages.iter().map(shown).filter(|it| !it.is_empty()) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    if texts.is_empty() {
        let status = reqwest::StatusCode::from_u16(status).ok();
        let words = status.and_then(|it| it.canonical_reason());
        return words.unwrap_or("no reason").to_owned();
    }
    bounded(&texts.join("; "))
}

/// A text of the BMC without line breaks and beyond the limit nothing; `secrets` do not show.
pub(super) fn without_secrets(text: &str, secrets: &[&str]) -> String {
    let mut text = text.to_owned();
    for secret in secrets.iter().filter(|it| !it.is_empty()) {
        text = text.replace(secret, HIDDEN);
    }
    text
}

fn message(item: &Value) -> RedfishMessage {
    let arguments = texts(&item["MessageArgs"]);
    let mut words = text(&item["Message"]).to_owned();
    // HPE sends identifier and arguments without a text.
    if words.is_empty() && !arguments.is_empty() {
        let id = short_id(text(&item["MessageId"]));
        words = format!("{id} ({})", arguments.join(", "));
    }
    RedfishMessage {
        id: short_id(text(&item["MessageId"])),
        text: bounded(&words),
        properties: texts(&item["RelatedProperties"]),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().map_or(&[][..], Vec::as_slice);
    let items = items.iter().filter_map(Value::as_str);
    items.take(PROPERTY_LIMIT).map(bounded).collect()
}

/// `Base.1.8.ActionParameterMissing` without registry and version.
fn short_id(id: &str) -> String {
    bounded(id.rsplit('.').next().unwrap_or_default())
}

/// On one line, so that logs cannot be forged.
fn bounded(text: &str) -> String {
    let spaced = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut text: String = spaced.take(TEXT_LIMIT).collect();
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn reasons_are_read_from_all_forms() {
        let extended = json!([{ "MessageId": "Base.1.8.PropertyMissing", "Message": "no x\nhere",
            "RelatedProperties": ["#/Image"] }]);
        for (body, expected) in [
            (
                json!({ "error": { "@Message.ExtendedInfo": extended, "message": "outer" } }),
                "no x here",
            ),
            (json!({ "@Message.ExtendedInfo": extended }), "no x here"),
            (
                json!({ "error": { "@Message.ExtendedInfo": extended[0] } }),
                "no x here",
            ),
            (
                json!({ "error": { "code": "Base.1.0.GeneralError", "message": "outer" } }),
                "outer",
            ),
            (
                json!({ "error": { "@Message.ExtendedInfo": [
                    { "MessageId": "iLO.2.8.UnableToModifyDuringSystemPOST" }] } }),
                "UnableToModifyDuringSystemPOST",
            ),
            (
                json!({ "@Message.ExtendedInfo": [{ "MessageId": "a.b.Unsupported", "MessageArgs": ["x", "y"] }] }),
                "Unsupported (x, y)",
            ),
            (
                json!({ "Messages": [{ "Message": "a" }, { "Message": "b" }, { "Message": "a" }] }),
                "a; b",
            ),
            (json!("text"), "Bad Request"),
            (Value::Null, "Bad Request"),
        ] {
            assert_eq!(reason(&messages(&body), 400), expected, "{body}");
        }
    }

    #[test]
    fn messages_name_their_properties() {
        let body = json!({ "@Message.ExtendedInfo": [
            { "MessageId": "a.1.PropertyMissing", "RelatedProperties": ["#/TransferProtocolType"] },
            { "MessageId": "a.1.GeneralError", "Message": "the parameter UserName is required" }] });
        let found = messages(&body);
        assert!(found[0].concerns("TransferProtocolType") && !found[0].concerns("Protocol"));
        assert!(found[1].concerns("UserName") && !found[1].concerns("Password"));
        assert_eq!(found[0].id, "PropertyMissing");
    }

    #[test]
    fn secrets_are_hidden() {
        assert_eq!(
            without_secrets("wrong: s3cret!", &["", "s3cret"]),
            "wrong: [hidden]!"
        );
    }

    #[test]
    fn reasons_are_bounded() {
        let many = vec![
            json!({ "MessageId": "a.b", "Message": "x".repeat(TEXT_LIMIT + 1) });
            COUNT_LIMIT + 1
        ];
        let found = messages(&json!({ "error": { "@Message.ExtendedInfo": many } }));
        assert_eq!(found.len(), COUNT_LIMIT);
        assert_eq!(found[0].text.len(), TEXT_LIMIT);
        assert_eq!(reason(&found, 400).len(), TEXT_LIMIT);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let key = prop_oneof![
            Just("error".to_owned()),
            Just("@Message.ExtendedInfo".to_owned()),
            Just("Messages".to_owned()),
            Just("MessageId".to_owned()),
            Just("Message".to_owned()),
            "[a-z]{1,3}",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            ".{0,9}".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((key.clone(), inner), 0..4)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_answer_has_a_reason_on_one_line(body in any_json()) {
            let text = reason(&messages(&body), 500);
            prop_assert!(!text.is_empty());
            prop_assert!(!text.contains('\n'));
        }
    }
}
