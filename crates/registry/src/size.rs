//! Amounts of bytes, as people write them.

use std::fmt;

use serde::Deserialize;
use service::settings::Setting;

const UNITS: [(&str, u64); 10] = [
    ("", 1),
    ("B", 1),
    ("kB", 1000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
];

/// Units: bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Text")]
pub struct Size(pub u64);

/// YAML has numbers, too.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Number(u64),
    Text(String),
}

impl TryFrom<Text> for Size {
    type Error = String;

    fn try_from(text: Text) -> Result<Self, String> {
        match text {
            Text::Number(bytes) => Ok(Self(bytes)),
            Text::Text(text) => Self::parse(&text).map_err(|why| format!("{text:?}: {why}")),
        }
    }
}

impl Setting for Size {
    const EXPECTED: &'static str = "amount of bytes, as in 500MB, 50MiB or 2TiB";

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let end = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = (&text[..end], text[end..].trim());
        let number: u64 = number.parse().map_err(|_| "expected a number first")?;
        let (_, factor) = UNITS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit))
            .ok_or("the unit is none of kB, KiB, MB, MiB, GB, GiB, TB, TiB")?;
        let bytes = number.checked_mul(*factor).ok_or("too much")?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for Size {
    /// In the largest unit that leaves no fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, factor): &&(&str, u64)| self.0 >= *factor && self.0.is_multiple_of(*factor);
        let (unit, factor) = UNITS.iter().rev().find(fits).unwrap_or(&UNITS[1]);
        write!(f, "{} {unit}", self.0 / factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("17 B", 17),
            ("50MiB", 50 << 20),
            ("50 mib", 50 << 20),
            ("1GB", 1_000_000_000),
            ("2TiB", 2 << 40),
        ] {
            assert_eq!(Size::parse(text), Ok(Size(bytes)), "{text}");
            assert_eq!(Size::parse(&Size(bytes).to_string()), Ok(Size(bytes)));
        }
        for wrong in ["", "MiB", "-1", "1.5GiB", "1 XB", "99999999999TiB"] {
            assert!(Size::parse(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(Size(50 << 30).to_string(), "50 GiB");
        assert_eq!(Size(17).to_string(), "17 B");
    }
}
