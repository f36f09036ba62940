//! The two time formats of the API.
//!
//! Both are sent also when unset, as the year 1: clients compare with that text to detect whether
//! something has happened.

use chrono::{SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time in UTC.
pub type Timestamp = chrono::DateTime<Utc>;

macro_rules! wire_time {
    ($(#[$meta:meta])* $name:ident, $unset:literal, $print:expr) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Option<Timestamp>);

        impl $name {
            /// Text of an unset time.
            pub const UNSET: &'static str = $unset;
        }

        impl From<Timestamp> for $name {
            fn from(time: Timestamp) -> Self {
                Self(Some(time))
            }
        }

        impl From<Option<Timestamp>> for $name {
            fn from(time: Option<Timestamp>) -> Self {
                Self(time)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self.0 {
                    Some(time) => {
                        let print: fn(Timestamp) -> String = $print;
                        serializer.serialize_str(&print(time))
                    }
                    None => serializer.serialize_str(Self::UNSET),
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                parse(Option::<String>::deserialize(deserializer)?.as_deref()).map(Self).map_err(serde::de::Error::custom)
            }
        }
    };
}

wire_time!(
    /// Format `date-time`: RFC 3339 in UTC with exactly three fraction digits.
    DateTime,
    "0001-01-01T00:00:00.000Z",
    |time| time.to_rfc3339_opts(SecondsFormat::Millis, true)
);
wire_time!(
    /// Members that the peer prints as Go prints them: up to nine fraction digits, trailing zeros cut.
    GoTime,
    "0001-01-01T00:00:00Z",
    print_go
);

fn print_go(time: Timestamp) -> String {
    let nanos = time.timestamp_subsec_nanos();
    let seconds = time.format("%Y-%m-%dT%H:%M:%S");
    if nanos == 0 {
        return format!("{seconds}Z");
    }
    format!("{seconds}.{}Z", format!("{nanos:09}").trim_end_matches('0'))
}

fn parse(text: Option<&str>) -> Result<Option<Timestamp>, chrono::ParseError> {
    match text {
        None | Some("") => Ok(None),
        Some(text) if text.starts_with("0001-01-01T00:00:00") => Ok(None),
        Some(text) => chrono::DateTime::parse_from_rfc3339(text).map(|time| Some(time.to_utc())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        chrono::DateTime::parse_from_rfc3339(text).unwrap().to_utc()
    }

    #[test]
    fn date_time_has_three_digits() {
        assert_eq!(
            serde_json::json!(DateTime::from(at("2026-11-21T10:00:00Z"))),
            "2026-11-21T10:00:00.000Z"
        );
        assert_eq!(
            serde_json::json!(DateTime::default()),
            "0001-01-01T00:00:00.000Z"
        );
    }

    #[test]
    fn go_time_cuts_zeros() {
        assert_eq!(
            serde_json::json!(GoTime::from(at("2026-11-21T10:00:00.120Z"))),
            "2026-11-21T10:00:00.12Z"
        );
        assert_eq!(
            serde_json::json!(GoTime::from(at("2026-11-21T10:00:00Z"))),
            "2026-11-21T10:00:00Z"
        );
        assert_eq!(serde_json::json!(GoTime::default()), "0001-01-01T00:00:00Z");
    }

    #[test]
    fn unset_and_null_read_as_unset() {
        for text in [
            "null",
            "\"\"",
            "\"0001-01-01T00:00:00Z\"",
            "\"0001-01-01T00:00:00.000Z\"",
        ] {
            assert_eq!(
                serde_json::from_str::<DateTime>(text).unwrap(),
                DateTime(None),
                "{text}"
            );
        }
    }
}
