//! Times of listings, in the time zone of the settings.

use std::fmt::Write as _;

use tz::{DateTime, TimeZone};

/// The zone of the machine, where the settings name none.
const MACHINE: &str = "localtime";

/// A time zone.
#[derive(Debug, Clone)]
pub(super) struct LocalTime {
    zone: TimeZone,
    /// The name in the settings, where the system has no data of it, so that times are in UTC.
    unknown: Option<String>,
}

impl LocalTime {
    /// The zone `name` as in the variable TZ; empty for the machine's.
    pub(super) fn new(name: &str) -> Self {
        let zone = match name {
            "" => TimeZone::from_posix_tz(MACHINE),
            "UTC" => Ok(TimeZone::utc()),
            name => TimeZone::from_posix_tz(name),
        };
        let unknown = match &zone {
            Err(error) if !name.is_empty() => {
                tracing::warn!(TZ = name, %error, "time zone unknown, listings show UTC");
                Some(name.to_owned())
            }
            _ => None,
        };
        // Images without a file system of their own have no zone of the machine.
        let zone = zone.unwrap_or_else(|_| TimeZone::utc());
        Self { zone, unknown }
    }

    /// The configured name, where the times are in UTC because it is unknown.
    pub(super) fn unknown(&self) -> Option<&str> {
        self.unknown.as_deref()
    }

    /// Name of the zone at a time, as in `CEST`. Units: seconds since 1970.
    pub(super) fn name(&self, seconds: i64) -> &str {
        let kind = self.zone.find_local_time_type(seconds);
        let name = kind.map_or("", tz::LocalTimeType::time_zone_designation);
        if name.is_empty() { "UTC" } else { name }
    }

    /// A time as in `2026-11-21 06:14`. Units: seconds since 1970.
    pub(super) fn write(&self, seconds: i64, text: &mut String) {
        let Ok(time) = DateTime::from_timespec(seconds, 0, self.zone.as_ref()) else {
            text.push('-');
            return;
        };
        let parts = [
            (time.month(), b'-'),
            (time.month_day(), b' '),
            (time.hour(), b':'),
            (time.minute(), 0),
        ];
        write!(text, "{}", time.year()).unwrap_or_default();
        let mut separator = b'-';
        for (part, next) in parts {
            text.push(char::from(separator));
            text.push(char::from(b'0' + part / 10));
            text.push(char::from(b'0' + part % 10));
            separator = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 21 November 2026 06:14 UTC.
    const NOVEMBER: i64 = 1_795_241_640;
    /// 21 July 2026 06:14 UTC.
    const JULY: i64 = 1_784_614_440;

    fn text(time: &LocalTime, seconds: i64) -> String {
        let mut text = String::new();
        time.write(seconds, &mut text);
        format!("{text} {}", time.name(seconds))
    }

    #[test]
    fn times_follow_the_zone_of_the_settings() {
        let utc = LocalTime::new("UTC");
        assert_eq!(text(&utc, NOVEMBER), "2026-11-21 06:14 UTC");
        // Rules, which need no data of the system.
        let berlin = LocalTime::new("CET-1CEST,M3.5.0,M10.5.0/3");
        assert_eq!(text(&berlin, NOVEMBER), "2026-11-21 07:14 CET");
        assert_eq!(text(&berlin, JULY), "2026-07-21 08:14 CEST");
        assert_eq!(text(&utc, 0), "1970-01-01 00:00 UTC");
        assert_eq!(text(&utc, -1), "1969-12-31 23:59 UTC");
        assert!(text(&utc, i64::MAX).starts_with("- "));
    }

    #[test]
    fn an_unknown_zone_is_utc_and_is_named() {
        let nowhere = LocalTime::new("Nowhere/City");
        assert_eq!(nowhere.unknown(), Some("Nowhere/City"));
        assert_eq!(text(&nowhere, NOVEMBER), "2026-11-21 06:14 UTC");
        assert_eq!(LocalTime::new("").unknown(), None);
    }
}
