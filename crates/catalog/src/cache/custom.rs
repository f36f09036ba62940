//! Documents with schemas of their author's own, as messages.

use prost_types::{ListValue, Struct, Value, value::Kind};

use crate::Document;
use crate::schema::{BUNDLE, CHANNEL, DEPRECATIONS, PACKAGE};

/// Whether its schema is none of those that the other calls are about.
pub(super) fn is_custom(document: &Document) -> bool {
    ![PACKAGE, CHANNEL, BUNDLE, DEPRECATIONS].contains(&document.schema.as_str())
}

/// The message of a document in the normal form.
pub(super) fn encode(json: &str) -> Struct {
    match serde_json::from_str(json) {
        Ok(serde_json::Value::Object(members)) => object(members),
        _ => Struct::default(),
    }
}

fn object(members: serde_json::Map<String, serde_json::Value>) -> Struct {
    let fields = members.into_iter().map(|(name, json)| (name, value(json)));
    Struct {
        fields: fields.collect(),
    }
}

fn value(json: serde_json::Value) -> Value {
    let kind = match json {
        serde_json::Value::Null => Kind::NullValue(0),
        serde_json::Value::Bool(is_true) => Kind::BoolValue(is_true),
        // The normal form has none that is no double.
        serde_json::Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
        serde_json::Value::String(text) => Kind::StringValue(text),
        serde_json::Value::Array(items) => Kind::ListValue(ListValue {
            values: items.into_iter().map(value).collect(),
        }),
        serde_json::Value::Object(members) => Kind::StructValue(object(members)),
    };
    Value { kind: Some(kind) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_has_its_message() {
        let message = encode(r#"{"a":null,"b":true,"c":1.5,"d":"t","e":[1,[]],"f":{"g":-0}}"#);
        let kind = |name: &str| message.fields[name].kind.clone().unwrap();
        assert_eq!(kind("a"), Kind::NullValue(0));
        assert_eq!(kind("b"), Kind::BoolValue(true));
        assert_eq!(kind("c"), Kind::NumberValue(1.5));
        assert_eq!(kind("d"), Kind::StringValue("t".to_owned()));
        let Kind::ListValue(list) = kind("e") else {
            panic!()
        };
        assert_eq!(list.values.len(), 2);
        let Kind::StructValue(inner) = kind("f") else {
            panic!()
        };
        assert_eq!(inner.fields["g"].kind, Some(Kind::NumberValue(-0.0)));
    }
}
