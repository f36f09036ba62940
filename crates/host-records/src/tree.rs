//! Values with positions: lookup, and output in the order of the file.

use std::collections::BTreeMap;

use located_yaml::portable;
use located_yaml::v1_1::{Located, LocatedMember, Value};
use serde::ser::{Error as _, SerializeMap as _};
use serde::{Serialize, Serializer};

/// Members of an object; none of other values.
pub(crate) fn members(value: &Located) -> &[LocatedMember] {
    match &value.value {
        Value::Object(members) => members,
        _ => &[],
    }
}

/// The member of that name; of repeated ones the last, as decoders take it.
pub(crate) fn member<'a>(value: &'a Located, name: &str) -> Option<&'a LocatedMember> {
    let mut all = members(value).iter().rev();
    all.find(|member| member.name == name)
}

/// A document as indented JSON.
///
/// Errors: a number that JSON does not have.
pub fn json_text(value: &Located) -> Result<String, String> {
    serde_json::to_string_pretty(&InOrder(value)).map_err(|error| error.to_string())
}

/// A document as YAML, with its `---`; texts that YAML 1.1 or 1.2 could read as something else are quoted.
///
/// Errors: a number that JSON does not have.
pub fn yaml_text(value: &Located) -> Result<String, String> {
    let json = serde_json::to_string(&InOrder(value)).map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    portable::write(&json, &mut text).map_err(|error| error.to_string())?;
    String::from_utf8(text).map_err(|error| error.to_string())
}

/// Serialises members in the order of the file.
pub(super) struct InOrder<'a>(pub(super) &'a Located);

impl Serialize for InOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.value {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Integer(value) => match (i64::try_from(*value), u64::try_from(*value)) {
                (Ok(value), _) => serializer.serialize_i64(value),
                (_, Ok(value)) => serializer.serialize_u64(value),
                _ => Err(S::Error::custom("an integer has more than 64 bits")),
            },
            Value::Float(value) if value.is_finite() => serializer.serialize_f64(*value),
            Value::Float(_) => Err(S::Error::custom("JSON has no infinite numbers")),
            Value::Text(text) => serializer.serialize_str(text),
            Value::List(list) => serializer.collect_seq(list.iter().map(InOrder)),
            Value::Object(members) => {
                let last: BTreeMap<&str, usize> = members
                    .iter()
                    .enumerate()
                    .map(|(index, member)| (member.name.as_str(), index))
                    .collect();
                let mut map = serializer.serialize_map(Some(last.len()))?;
                for (index, member) in members.iter().enumerate() {
                    if last.get(member.name.as_str()) == Some(&index) {
                        map.serialize_entry(&member.name, &InOrder(&member.value))?;
                    }
                }
                map.end()
            }
        }
    }
}

/// Number of values, and length of their texts and names. Units: values, bytes.
pub(super) fn weight(value: &Located) -> (usize, usize) {
    let sum = |sums: (usize, usize), more: (usize, usize)| (sums.0 + more.0, sums.1 + more.1);
    match &value.value {
        Value::Text(text) => (1, text.len()),
        Value::List(list) => list.iter().map(weight).fold((1, 0), sum),
        Value::Object(members) => {
            let each = members.iter().map(|member| {
                let (values, text) = weight(&member.value);
                (values, text + member.name.len())
            });
            each.fold((1, 0), sum)
        }
        _ => (1, 0),
    }
}
