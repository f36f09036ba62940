//! Scalars as nmstate reads them: numbers and truth values may be written as text.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::unrenderable::shortened;

/// Longest value in a refusal. Units: characters.
const VALUE_LENGTH: usize = 40;

/// An integer, also as text, also hexadecimal (`0x…`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Integer<T>(pub(crate) T);

impl<'de, T: TryFrom<i64>> Deserialize<'de> for Integer<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let number = integer(&value)
            .ok_or_else(|| D::Error::custom(format!("{} is not an integer", described(&value))))?;
        T::try_from(number)
            .map(Self)
            .map_err(|_| D::Error::custom(format!("{number} is out of range")))
    }
}

/// A truth value, also as text (`yes`, `on`, …) or 0 and 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flag(pub(crate) bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        boolean(&value).map(Self).ok_or_else(|| {
            D::Error::custom(format!("{} is neither true nor false", described(&value)))
        })
    }
}

/// The integer that `value` holds or spells.
pub fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => match text.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        },
        _ => None,
    }
}

/// The truth value that `value` holds or spells.
pub fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) => match number.as_u64() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        },
        Value::String(text) => match text.to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" | "y" => Some(true),
            "0" | "false" | "no" | "off" | "n" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// The value in short, for a refusal.
pub(crate) fn described(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => format!("{:?}", shortened(text, VALUE_LENGTH)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}
