//! Positions of a host's members in the inventory, given to the members of its records.

use located_yaml::Position;
use located_yaml::v1_1::{Located, LocatedMember, Value};
use serde_json::Value as Json;

/// Positions of a host's members, those of defaults included.
#[derive(Debug, Clone)]
pub(super) struct HostPlaces {
    pub(super) host: Position,
    /// Paths in records, and the position of their source.
    pub(super) members: Vec<(&'static str, Position)>,
}

impl HostPlaces {
    /// The record, with positions of the inventory.
    pub(super) fn located(&self, json: &Json) -> Located {
        self.value(json, "", self.host)
    }

    fn value(&self, json: &Json, path: &str, around: Position) -> Located {
        let known = self.members.iter().find(|(known, _)| *known == path);
        let place = known.map_or(around, |(_, place)| *place);
        let value = match json {
            Json::Null => Value::Null,
            Json::Bool(flag) => Value::Bool(*flag),
            Json::Number(number) => number.as_i64().map_or_else(
                || Value::Float(number.as_f64().unwrap_or(f64::NAN)),
                |number| Value::Integer(number.into()),
            ),
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(list) => {
                let items = list.iter().map(|item| self.value(item, path, place));
                Value::List(items.collect())
            }
            Json::Object(members) => {
                let members = members.iter().map(|(name, value)| {
                    let below = match path {
                        "" => name.clone(),
                        path => format!("{path}.{name}"),
                    };
                    let value = self.value(value, &below, place);
                    LocatedMember {
                        name: name.clone(),
                        place: value.place,
                        value,
                    }
                });
                Value::Object(members.collect())
            }
        };
        Located { place, value }
    }
}
