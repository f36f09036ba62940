//! A resource as read: its path, its entity tag and its properties.

use std::fmt;

use reqwest::Method;
use serde_json::Value;
use url::Url;

use super::error::BmcError;
use super::link::RedfishPath;

/// A resource of the BMC. Properties that are missing or have another type read as missing: BMCs differ.
#[derive(Clone)]
pub(super) struct RedfishDocument {
    pub(super) path: RedfishPath,
    /// The header `ETag`.
    pub(super) etag: Option<String>,
    pub(super) body: Value,
    pub(super) origin: Url,
}

impl fmt::Debug for RedfishDocument {
    /// Without its properties: addresses of images hold tokens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedfishDocument").field(&self.path).finish()
    }
}

impl RedfishDocument {
    /// The value at a JSON pointer.
    pub(super) fn at(&self, pointer: &str) -> &Value {
        self.body.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// A text that is not empty.
    pub(super) fn text(&self, pointer: &str) -> Option<&str> {
        let text = self.at(pointer).as_str().map(str::trim);
        text.filter(|text| !text.is_empty())
    }

    pub(super) fn owned_text(&self, pointer: &str) -> Option<String> {
        self.text(pointer).map(str::to_owned)
    }

    /// A text that names something: firmware ships with placeholders.
    pub(super) fn named_text(&self, pointer: &str) -> Option<String> {
        named(self.text(pointer)?).map(str::to_owned)
    }

    /// A size or number above zero.
    pub(super) fn quantity(&self, pointer: &str) -> Option<f64> {
        quantity(self.at(pointer))
    }

    pub(super) fn flag(&self, pointer: &str) -> Option<bool> {
        self.at(pointer).as_bool()
    }

    /// The texts of a list; none when the list is missing.
    pub(super) fn texts(&self, pointer: &str) -> Option<Vec<String>> {
        let items = self.at(pointer).as_array()?.iter();
        Some(items.filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// The link of the object at `pointer`, or of the text there.
    ///
    /// Errors: ForeignLink.
    pub(super) fn link(&self, pointer: &str) -> Result<Option<RedfishPath>, BmcError> {
        let value = self.at(pointer);
        let link = value.as_str().or_else(|| value["@odata.id"].as_str());
        link.map(|link| self.parse_link(link)).transpose()
    }

    /// The links of the list at `pointer`, the first `limit` of them.
    ///
    /// Errors: ForeignLink.
    pub(super) fn links(&self, pointer: &str, limit: usize) -> Result<Vec<RedfishPath>, BmcError> {
        let items = self.at(pointer).as_array().map_or(&[][..], Vec::as_slice);
        let links = items.iter().filter_map(|it| it["@odata.id"].as_str());
        links
            .take(limit)
            .map(|link| self.parse_link(link))
            .collect()
    }

    pub(super) fn parse_link(&self, link: &str) -> Result<RedfishPath, BmcError> {
        RedfishPath::parse(link, &self.origin).map_err(|to| BmcError::ForeignLink {
            request: format!("{} {}", Method::GET, self.path),
            to,
        })
    }

    /// The entity tags to try, in order: as sent, then the other forms that BMCs mean by it.
    ///
    /// Source: sushy, connector.py (weak tags that are only taken as strong ones); community.general, issue 3268 (a
    /// header in two pairs of quotes).
    pub(super) fn etags(&self) -> Vec<String> {
        let in_body = self.body["@odata.etag"].as_str().map(str::to_owned);
        let first: Vec<String> = self.etag.clone().into_iter().chain(in_body).collect();
        let strong = first
            .iter()
            .filter_map(|it| it.strip_prefix("W/").map(str::to_owned));
        let mut all: Vec<String> = Vec::new();
        for etag in first.clone().into_iter().chain(strong) {
            if !etag.is_empty() && !all.contains(&etag) {
                all.push(etag);
            }
        }
        all
    }
}

/// Placeholder texts of unfilled fields, in lower case.
///
/// Source: assisted-installer-agent, pull requests 194 and 716; dmidecode(8) and firmware of AMI.
const PLACEHOLDERS: &[&str] = &[
    "to be filled by o.e.m.",
    "default string",
    "system manufacturer",
    "system product name",
    "system serial number",
    "not specified",
    "not available",
    "not applicable",
    "unknown",
    "undefined",
    "none",
    "null",
    "n/a",
    "na",
    "-",
    "0123456789",
    "123456789",
];

/// A text without blanks at its ends; none of a placeholder.
pub(super) fn named(text: &str) -> Option<&str> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    let is_filler = text.chars().all(|c| matches!(c, '0' | ' ' | '.' | '-'));
    (!is_filler && !PLACEHOLDERS.contains(&lower.as_str())).then_some(text)
}

/// A number above zero, also as a text: BMCs send zero for sizes that they do not know.
pub(super) fn quantity(value: &Value) -> Option<f64> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_f64(),
    };
    number.filter(|number: &f64| number.is_finite() && *number > 0.0)
}

/// The whole part of a quantity of one at least. Numbers of 2^53 and more lose digits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be in range"
)]
pub(super) fn whole(quantity: f64) -> Option<u64> {
    (1.0..1e18).contains(&quantity).then_some(quantity as u64)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) fn document(body: Value) -> RedfishDocument {
        RedfishDocument {
            path: RedfishPath::own("/redfish/v1/Systems/1"),
            etag: None,
            body,
            origin: "https://10.0.0.1".parse().unwrap(),
        }
    }

    #[test]
    fn other_types_read_as_missing() {
        let read =
            document(json!({ "Model": 7, "Boot": [], "Name": " ", "Links": { "ManagedBy": "x" } }));
        assert_eq!(read.text("/Model"), None);
        assert_eq!(read.text("/Name"), None);
        assert_eq!(read.texts("/Boot/Order"), None);
        assert_eq!(read.links("/Links/ManagedBy", 4).unwrap(), []);
        assert_eq!(read.flag("/Boot"), None);
    }

    #[test]
    fn placeholders_name_nothing() {
        for text in [
            "To Be Filled By O.E.M.",
            "Default string",
            "N/A",
            "unknown",
            "0000000000",
            " - ",
        ] {
            assert_eq!(named(text), None, "{text}");
        }
        assert_eq!(named(" SYS-510T-MR "), Some("SYS-510T-MR"));
        let read = document(json!({ "Model": "Default string", "SerialNumber": "S1" }));
        assert_eq!(read.named_text("/Model"), None);
        assert_eq!(read.named_text("/SerialNumber").as_deref(), Some("S1"));
    }

    #[test]
    fn quantities_are_numbers_above_zero() {
        for (value, expected) in [
            (json!(480_103_981_056_u64), Some(480_103_981_056)),
            (json!(4.8e11), Some(480_000_000_000)),
            (json!("128"), Some(128)),
            (json!(63.9), Some(63)),
            (json!(0), None),
            (json!(0.5), None),
            (json!(-1), None),
            (json!("large"), None),
            (json!("NaN"), None),
            (json!("inf"), None),
            (json!(1e300), None),
            (Value::Null, None),
        ] {
            assert_eq!(quantity(&value).and_then(whole), expected, "{value}");
        }
    }

    #[test]
    fn links_are_bounded_and_stay_here() {
        let members: Vec<_> = (0..5)
            .map(|n| json!({ "@odata.id": format!("/redfish/v1/{n}") }))
            .collect();
        let read = document(json!({ "Members": members, "Next": "https://evil.example/a" }));
        assert_eq!(read.links("/Members", 3).unwrap().len(), 3);
        assert!(matches!(
            read.link("/Next"),
            Err(BmcError::ForeignLink { .. })
        ));
        assert!(read.link("/Members").unwrap().is_none());
    }

    #[test]
    fn entity_tags_have_several_forms() {
        let mut read = document(json!({ "@odata.etag": "W/\"1\"" }));
        assert_eq!(read.etags(), ["W/\"1\"", "\"1\""]);
        read.etag = Some("\"\"1\"\"".to_owned());
        assert_eq!(read.etags(), ["\"\"1\"\"", "W/\"1\"", "\"1\""]);
        assert!(document(json!({})).etags().is_empty());
    }
}
