//! Limits of clients as data: bytes, counts and time, and the answer beyond each.
//!
//! Each server lists its limits from its loaded settings. `settings --limits` prints them, and
//! `cargo xtask codegen` writes those of the default settings to `docs/limits.md`. A test of each limit, at the bound
//! and one above, carries the comment `// limit: NAME`; `cargo xtask tidy` names the limits without one.

use std::fmt;
use std::time::Duration;

/// Value and unit of a [`Limit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Bytes.
    Bytes(u64),
    /// Bytes in a second, at least.
    MinimumRate(u64),
    /// Number of things and their name in the plural, as in `requests`.
    Count(u64, &'static str),
    /// Deadline or timeout.
    Time(Duration),
    /// The settings switch this limit off.
    Unlimited,
}

/// A limit of the resources of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// Short noun phrase, unique within a server, as in `request head`.
    pub name: &'static str,
    /// Value and unit.
    pub bound: Bound,
    /// Scope in the singular, as in `connection`, `client address`, `cluster` or `server`.
    pub per: &'static str,
    /// Variable that changes it, in upper case; absent for a fixed limit.
    pub setting: Option<&'static str>,
    /// Answer that the client sees beyond the bound, as in `431` or `connection closed`.
    pub answer: &'static str,
}

impl Limit {
    /// A fixed limit.
    pub const fn fixed(
        name: &'static str,
        bound: Bound,
        per: &'static str,
        answer: &'static str,
    ) -> Self {
        Self {
            name,
            bound,
            per,
            setting: None,
            answer,
        }
    }

    /// The same limit, changed by the variable `name` (upper case).
    #[must_use]
    pub const fn set_by(mut self, name: &'static str) -> Self {
        self.setting = Some(name);
        self
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write_bytes(f, *bytes),
            Self::MinimumRate(bytes) => {
                f.write_str("at least ")?;
                write_bytes(f, *bytes)?;
                f.write_str("/s")
            }
            Self::Count(count, unit) => write!(f, "{count} {unit}"),
            Self::Time(time) => write_time(f, *time),
            Self::Unlimited => f.write_str("none"),
        }
    }
}

/// In the largest unit of which it is a whole number.
fn write_bytes(f: &mut fmt::Formatter<'_>, bytes: u64) -> fmt::Result {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let whole = units
        .iter()
        .find(|(bits, _)| bytes > 0 && bytes.is_multiple_of(1 << bits));
    match whole {
        Some((bits, unit)) => write!(f, "{} {unit}", bytes >> bits),
        None => write!(f, "{bytes} bytes"),
    }
}

fn write_time(f: &mut fmt::Formatter<'_>, time: Duration) -> fmt::Result {
    let milliseconds = time.as_millis();
    let units = [(3_600_000, "h"), (60_000, "min"), (1000, "s")];
    let whole = units
        .iter()
        .find(|(unit, _)| milliseconds > 0 && milliseconds.is_multiple_of(*unit));
    match whole {
        Some((unit, name)) => write!(f, "{} {name}", milliseconds / unit),
        None => write!(f, "{milliseconds} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_shown_in_their_largest_unit() {
        for (bound, text) in [
            (Bound::Bytes(64 << 10), "64 KiB"),
            (Bound::Bytes(2 << 30), "2 GiB"),
            (Bound::Bytes(1000), "1000 bytes"),
            (Bound::Bytes(0), "0 bytes"),
            (Bound::MinimumRate(1 << 10), "at least 1 KiB/s"),
            (Bound::Count(400, "requests"), "400 requests"),
            (Bound::Time(Duration::from_secs(90)), "90 s"),
            (Bound::Time(Duration::from_hours(1)), "1 h"),
            (Bound::Time(Duration::from_millis(1500)), "1500 ms"),
            (Bound::Unlimited, "none"),
        ] {
            assert_eq!(bound.to_string(), text);
        }
    }
}
