//! Limits of clients as data: bytes, counts and time, and the answer beyond each.
//!
//! Each server lists its limits from its loaded settings. `settings --limits` prints them, and
//! `cargo xtask codegen` writes those of the default settings to `docs/limits.md`. A test of each limit, at the bound
//! and one above, carries the comment `// limit: NAME`; `cargo xtask tidy` names the limits without one.
//!
//! A bound of a whole server says which part of it one client, owner or user may take, or why it has no such share. A
//! test of each share, with a second client or owner that it does not affect, carries the comment `// share: NAME`.

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
    /// As much as any other: those with the most give way to the others.
    EqualPart,
    /// The settings switch this limit off.
    Unlimited,
}

/// Scopes of bounds that many clients share.
const SHARED_SCOPES: [&str; 4] = ["server", "replica", "queue", "upstream"];

/// The part of a shared bound that one client, owner or user may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Share {
    /// A bound of each of them.
    Each {
        /// Scope in the singular, as in `client address` or `owner`.
        per: &'static str,
        /// Value and unit.
        bound: Bound,
        /// Variable that changes it, in upper case; absent for a fixed share.
        setting: Option<&'static str>,
        /// Answer beyond it.
        answer: &'static str,
    },
    /// None, for this reason.
    None(&'static str),
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
    /// The part of one client, owner or user; absent where the scope is one of them, or a thing of one.
    pub share: Option<Share>,
}

impl Share {
    /// A fixed share of each `per`.
    pub const fn of(per: &'static str, bound: Bound, answer: &'static str) -> Self {
        Self::Each {
            per,
            bound,
            setting: None,
            answer,
        }
    }

    /// The same share, changed by the variable `name` (upper case).
    #[must_use]
    pub const fn set_by(self, name: &'static str) -> Self {
        match self {
            Self::Each {
                per, bound, answer, ..
            } => Self::Each {
                per,
                bound,
                setting: Some(name),
                answer,
            },
            none @ Self::None(_) => none,
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Each {
                per,
                bound,
                setting,
                answer,
            } => {
                write!(f, "{bound} per {per}")?;
                if let Some(setting) = setting {
                    write!(f, " (`{setting}`)")?;
                }
                write!(f, ": {answer}")
            }
            Self::None(reason) => write!(f, "none: {reason}"),
        }
    }
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
            share: None,
        }
    }

    /// The same limit, of which one client, owner or user may take this part.
    #[must_use]
    pub const fn shared(mut self, share: Share) -> Self {
        self.share = Some(share);
        self
    }

    /// The same limit, without shares for this reason.
    #[must_use]
    pub const fn unshared(self, reason: &'static str) -> Self {
        self.shared(Share::None(reason))
    }

    /// Whether many clients share the bound, and nothing says which part one of them may take.
    pub fn lacks_share(&self) -> bool {
        SHARED_SCOPES.contains(&self.per) && self.share.is_none()
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
            Self::EqualPart => f.write_str("an equal part"),
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
            (Bound::EqualPart, "an equal part"),
            (Bound::Unlimited, "none"),
        ] {
            assert_eq!(bound.to_string(), text);
        }
    }

    #[test]
    fn shared_bounds_need_a_share_or_a_reason() {
        let of = |per| Limit::fixed("requests", Bound::Count(4, "requests"), per, "503");
        assert!(!of("request").lacks_share());
        let limit = of("server");
        assert!(limit.lacks_share());
        let share = Share::of("client address", Bound::Count(1, "requests"), "429");
        let shared = limit.clone().shared(share.set_by("MAX_PER_CLIENT"));
        assert!(!shared.lacks_share());
        assert_eq!(
            shared.share.unwrap().to_string(),
            "1 requests per client address (`MAX_PER_CLIENT`): 429"
        );
        let unshared = limit.unshared("administrators alone");
        assert!(!unshared.lacks_share());
        assert_eq!(
            unshared.share.unwrap().to_string(),
            "none: administrators alone"
        );
    }
}
