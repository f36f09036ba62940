//! Variables, and the kinds of values that they may hold.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;

/// A secret: printed as `[REDACTED]`; may come from the file named by `<NAME>_FILE`.
pub type Secret = secrecy::SecretString;

/// A kind of value that can be read from a variable's text.
pub trait Setting: Sized {
    /// Expected format, for messages and the reference.
    const EXPECTED: &'static str;
    /// Whether the text must never be shown.
    const SECRET: bool = false;
    /// How the value may be spread over several variables.
    const SHAPE: Shape = Shape::Whole;

    /// Parses the text; the error gives the reason, without repeating the text.
    fn parse(text: &str) -> Result<Self, String>;

    /// Parses the parts, by the rest of their names after `<NAME>_`, in lower case: only of [`Shape::Parts`].
    fn parse_parts(_parts: &BTreeMap<&str, &str>) -> Result<Self, String> {
        Self::parse("")
    }
}

/// How a value may be spread over several variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Not at all.
    Whole,
    /// Item by item, as `<NAME>_0`, `<NAME>_1` and so on; they are joined by commas.
    List,
    /// Part by part, as `<NAME>_0_URL` or `<NAME>_KEY`: the kind of the value knows which.
    Parts,
}

/// A variable, for the reference table.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// Lower-case name of the field.
    pub field: &'static str,
    /// Expected format.
    pub expected: &'static str,
    /// Default value.
    pub default: &'static str,
    /// Meaning, line by line.
    pub meaning: &'static [&'static str],
    /// How it may be spread over several variables.
    pub shape: Shape,
    /// Whether its text must never be shown, and may come from a file.
    pub is_secret: bool,
}

/// Texts separated by commas; blanks around them and empty ones are dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommaList(pub Vec<String>);

/// A JSON document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JsonVar<T>(pub T);

impl Deref for CommaList {
    type Target = Vec<String>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T> Deref for JsonVar<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl Setting for String {
    const EXPECTED: &'static str = "text";

    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl Setting for PathBuf {
    const EXPECTED: &'static str = "path";

    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self::from(text))
    }
}

impl Setting for Secret {
    const EXPECTED: &'static str = "secret text";
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self::from(text))
    }
}

impl Setting for bool {
    const EXPECTED: &'static str = "boolean";

    fn parse(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "1" | "t" | "true" | "y" | "yes" | "on" => Ok(true),
            "0" | "f" | "false" | "n" | "no" | "off" => Ok(false),
            _ => Err("neither true nor false".to_owned()),
        }
    }
}

macro_rules! from_str_setting {
    ($($kind:ty => $expected:literal),* $(,)?) => {
        $(impl Setting for $kind {
            const EXPECTED: &'static str = $expected;

            fn parse(text: &str) -> Result<Self, String> {
                text.trim().parse().map_err(|error| format!("{error}"))
            }
        })*
    };
}

from_str_setting! {
    u16 => "integer from 0 to 65535",
    u32 => "integer, 0 or more",
    u64 => "integer, 0 or more",
    usize => "integer, 0 or more",
    i64 => "integer",
    f64 => "number",
    IpAddr => "IP address",
    SocketAddr => "IP address and port, as in 127.0.0.1:8090 or [::1]:8090",
}

impl<T: Setting> Setting for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;
    const SECRET: bool = T::SECRET;
    const SHAPE: Shape = T::SHAPE;

    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            Ok(None)
        } else {
            T::parse(text).map(Some)
        }
    }

    fn parse_parts(parts: &BTreeMap<&str, &str>) -> Result<Self, String> {
        T::parse_parts(parts).map(Some)
    }
}

impl Setting for CommaList {
    const EXPECTED: &'static str = "texts separated by commas";
    const SHAPE: Shape = Shape::List;

    fn parse(text: &str) -> Result<Self, String> {
        let items = text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty());
        Ok(Self(items.map(str::to_owned).collect()))
    }
}

impl<T: DeserializeOwned> Setting for JsonVar<T> {
    const EXPECTED: &'static str = "JSON";

    fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text)
            .map(Self)
            .map_err(|error| error.to_string())
    }
}

impl Setting for Duration {
    const EXPECTED: &'static str = "duration, as in 10s, 5m, 1h30m or 500ms";

    fn parse(text: &str) -> Result<Self, String> {
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err("empty".to_owned());
        }
        if rest == "0" {
            return Ok(Self::ZERO);
        }
        let mut total = Self::ZERO;
        while !rest.is_empty() {
            let digits = rest
                .find(|c: char| !c.is_ascii_digit())
                .ok_or("a number without a unit")?;
            let number: u64 = rest[..digits]
                .parse()
                .map_err(|_| "a unit without a number")?;
            rest = &rest[digits..];
            let unit_end = rest
                .find(|c: char| c.is_ascii_digit())
                .unwrap_or(rest.len());
            let unit_ms: u64 = match &rest[..unit_end] {
                "ms" => 1,
                "s" => 1000,
                "m" => 60 * 1000,
                "h" => 60 * 60 * 1000,
                _ => return Err("the units are ms, s, m and h".to_owned()),
            };
            let ms = number.checked_mul(unit_ms).ok_or("too long")?;
            total = total.checked_add(Self::from_millis(ms)).ok_or("too long")?;
            rest = &rest[unit_end..];
        }
        Ok(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(Duration::parse("1h30m").unwrap(), Duration::from_mins(90));
        assert_eq!(
            Duration::parse("500ms").unwrap(),
            Duration::from_millis(500)
        );
        assert_eq!(Duration::parse("0").unwrap(), Duration::ZERO);
        for wrong in [
            "",
            "10",
            "s",
            "10 s",
            "10d",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            assert!(Duration::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
