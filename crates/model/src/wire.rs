//! Presence rules of the installer API and the macro behind every closed set of wire values.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The API leaves `false` out where the description says so.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_false(value: &bool) -> bool {
    !*value
}

/// The API leaves 0 out where the description says so.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_zero(value: &i64) -> bool {
    *value == 0
}

/// The API leaves 0 out where the description says so.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_zero_f64(value: &f64) -> bool {
    *value == 0.0
}

/// Peers send `null` for an empty list, and agents for a value that a machine does not report.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Longest text of a [`Reported`] value. Units: bytes.
const REPORTED_BYTES: usize = 256;

/// A value that an agent reports: one of a closed set, or the text of a newer agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reported<T> {
    /// One of the set.
    Known(T),
    /// Another text, as it was sent.
    Other(Box<str>),
}

impl<T: Default> Default for Reported<T> {
    fn default() -> Self {
        Self::Known(T::default())
    }
}

impl<T: Copy> Reported<T> {
    /// The value, if it is one of the set.
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(value) => Some(*value),
            Self::Other(_) => None,
        }
    }
}

impl<T> From<T> for Reported<T> {
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

impl<T: fmt::Display> fmt::Display for Reported<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(value) => value.fmt(f),
            Self::Other(text) => f.pad(text),
        }
    }
}

impl<T: Serialize> Serialize for Reported<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(value) => value.serialize(serializer),
            Self::Other(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de, T: FromStr> Deserialize<'de> for Reported<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        if text.len() > REPORTED_BYTES {
            let reason = format!("a value is longer than {REPORTED_BYTES} bytes");
            return Err(serde::de::Error::custom(reason));
        }
        let known = text.parse().map(Self::Known);
        Ok(known.unwrap_or_else(|_| Self::Other(text.into())))
    }
}

/// The agent protocol says "no instruction" and "no address" with `null`.
pub(crate) fn null_when_empty<S, T>(list: &[T], serializer: S) -> Result<S::Ok, S::Error>
where
    S: Serializer,
    T: Serialize,
{
    if list.is_empty() {
        serializer.serialize_none()
    } else {
        list.serialize(serializer)
    }
}

/// Start of the alternate form of [`UnknownValue`], which lists the closed set, one value per line.
pub(crate) const VALUES_MARK: &str = "values:\n";

/// A text outside of a closed set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct UnknownValue {
    /// Name of the set.
    pub kind: &'static str,
    /// The given text.
    pub value: String,
    /// The members, separated by blanks.
    pub expected: String,
    /// The members.
    pub values: &'static [&'static str],
}

impl std::fmt::Display for UnknownValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if f.alternate() {
            return write!(f, "{VALUES_MARK}{}", self.values.join("\n"));
        }
        let Self {
            kind,
            value,
            expected,
            ..
        } = self;
        write!(
            f,
            "{value:?} is not a {kind}: it should be one of [{expected}]"
        )
    }
}

/// Declares a closed set of wire values: an enum with `ALL`, `as_str`, `Display`, `FromStr` and serde as text.
/// The first value is the default.
macro_rules! wire_enum {
    ($(#[$meta:meta])* pub enum $name:ident { $first:ident = $first_text:literal, $($variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            #[doc = concat!("`", $first_text, "`")]
            #[default]
            $first,
            $(#[doc = concat!("`", $text, "`")] $variant,)*
        }

        impl $name {
            /// Every value, in the order of the API description.
            pub const ALL: &'static [Self] = &[Self::$first, $(Self::$variant,)*];

            /// The text of every value, in the same order.
            pub const TEXTS: &'static [&'static str] = &[$first_text, $($text,)*];

            /// The text on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    Self::$first => $first_text,
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownValue;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text).ok_or_else(|| $crate::UnknownValue {
                    kind: stringify!($name),
                    value: text.to_owned(),
                    expected: Self::TEXTS.join(" "),
                    values: Self::TEXTS,
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use wire_enum;
