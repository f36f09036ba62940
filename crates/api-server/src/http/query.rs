//! Query parameters. Unknown names are ignored, malformed booleans are false, other malformed values are refused.
//!
//! Source: openshift/assisted-service, observed over HTTP.

use std::convert::Infallible;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use model::UnknownValue;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::parse_uuid;

/// The decoded query of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let text = parts.uri.query().unwrap_or_default();
        Ok(Self(
            url::form_urlencoded::parse(text.as_bytes())
                .into_owned()
                .collect(),
        ))
    }
}

impl Query {
    /// All parameters, in their order.
    pub(crate) fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// The first non-empty value of that name.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(key, value)| key == name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    }

    /// A boolean; false if absent or malformed.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.text(name).is_some_and(|text| {
            matches!(
                text.to_ascii_lowercase().as_str(),
                "true" | "1" | "t" | "y" | "yes" | "on" | "ok" | "checked"
            )
        })
    }

    /// An integer.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, ApiError> {
        self.text(name)
            .map(|text| {
                text.parse().map_err(|_| {
                    ApiError::parameter(
                        name,
                        "query",
                        format_args!("must be of type int64: {text:?}"),
                    )
                })
            })
            .transpose()
    }

    /// An id.
    pub(crate) fn id(&self, name: &str) -> Result<Option<Uuid>, ApiError> {
        self.text(name)
            .map(|text| parse_uuid(name, "query", text))
            .transpose()
    }

    /// Texts separated by commas.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        self.list(name).map(str::to_owned).collect()
    }

    /// Ids separated by commas.
    pub(crate) fn ids(&self, name: &str) -> Result<Vec<Uuid>, ApiError> {
        self.list(name)
            .map(|text| parse_uuid(name, "query", text))
            .collect()
    }

    /// A value of an enum.
    pub(crate) fn one_of<T: FromStr<Err = UnknownValue>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, ApiError> {
        self.text(name)
            .map(|text| parse_one_of(name, text))
            .transpose()
    }

    /// Values of an enum, separated by commas.
    pub(crate) fn some_of<T: FromStr<Err = UnknownValue>>(
        &self,
        name: &str,
    ) -> Result<Vec<T>, ApiError> {
        self.list(name)
            .map(|text| parse_one_of(name, text))
            .collect()
    }

    /// A required value out of `allowed`.
    pub(crate) fn required_one_of(
        &self,
        name: &str,
        allowed: &[&'static str],
    ) -> Result<&'static str, ApiError> {
        self.optional_one_of(name, allowed)?
            .ok_or_else(|| ApiError::parameter(name, "query", "is required"))
    }

    /// An optional value out of `allowed`.
    pub(crate) fn optional_one_of(
        &self,
        name: &str,
        allowed: &[&'static str],
    ) -> Result<Option<&'static str>, ApiError> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let known = allowed.iter().copied().find(|one| *one == text);
        known.map(Some).ok_or_else(|| {
            let allowed = allowed.join(" ");
            ApiError::parameter(name, "query", format_args!("should be one of [{allowed}]"))
        })
    }

    /// A MAC address, normalized to colons.
    pub(crate) fn mac(&self, name: &str) -> Result<Option<String>, ApiError> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let mac = text.replace('-', ":");
        let is_part = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
        if mac.split(':').count() == 6 && mac.split(':').all(is_part) {
            return Ok(Some(mac));
        }
        Err(ApiError::parameter(
            name,
            "query",
            format_args!("must be of type mac: {text:?}"),
        ))
    }

    /// A required value.
    pub(crate) fn required(&self, name: &str) -> Result<&str, ApiError> {
        self.text(name)
            .ok_or_else(|| ApiError::parameter(name, "query", "is required"))
    }

    fn list<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(key, _)| key == name)
            .flat_map(|(_, value)| value.split(','))
            .map(str::trim)
            .filter(|text| !text.is_empty())
    }
}

/// Parses a value of an enum in parameter `name`.
pub(crate) fn parse_one_of<T: FromStr<Err = UnknownValue>>(
    name: &str,
    text: &str,
) -> Result<T, ApiError> {
    text.parse().map_err(|error: UnknownValue| {
        ApiError::parameter(
            name,
            "query",
            format_args!("should be one of [{}]", error.expected),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::events::EventSeverity;

    fn query(text: &str) -> Query {
        Query(
            url::form_urlencoded::parse(text.as_bytes())
                .into_owned()
                .collect(),
        )
    }

    #[test]
    fn malformed_booleans_are_false_and_malformed_integers_refused() {
        assert!(query("a=true").flag("a"));
        assert!(!query("a=maybe").flag("a"));
        assert!(query("limit=x").integer("limit").is_err());
        assert_eq!(query("limit=-1").integer("limit").unwrap(), Some(-1));
    }

    #[test]
    fn macs_have_six_parts() {
        let mac = query("mac=52-54-00-AA-00-01").mac("mac").unwrap();
        assert_eq!(mac.as_deref(), Some("52:54:00:AA:00:01"));
        for wrong in [
            "mac=x",
            "mac=52:54:00:aa:00",
            "mac=52:54:00:aa:00:1g",
            "mac=$%7Bnet0/mac%7D",
        ] {
            assert!(query(wrong).mac("mac").is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_are_repeated_or_comma_separated() {
        let query = query("severities=info,warning&severities=error");
        let found = query.some_of::<EventSeverity>("severities").unwrap();
        assert_eq!(
            found,
            [
                EventSeverity::Info,
                EventSeverity::Warning,
                EventSeverity::Error
            ]
        );
    }

    #[test]
    fn unknown_values_are_refused_with_the_allowed_ones() {
        let error = query("severities=bad")
            .some_of::<EventSeverity>("severities")
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "severities in query should be one of [info warning error critical]"
        );
    }
}
