//! Ways and parameters of an insertion, and their changes after refusals: BMCs demand and refuse different ones.

use std::fmt;

use serde_json::{Map, Value};
use url::Url;

use super::boot_url::protocol_name;
use super::message::RedfishMessage;

/// The optional parameters of `InsertMedia`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InsertForm {
    has_inserted: bool,
    has_write_protected: bool,
    has_protocol: bool,
    has_method: bool,
    has_credentials: bool,
}

/// A rule for a parameter that a refusal names.
struct ParameterRule {
    name: &'static str,
    /// Whether the form has it.
    has: fn(&InsertForm) -> bool,
    set: fn(&mut InsertForm, bool),
}

/// Rules, in the order in which refusals are searched for them.
///
/// Source: sushy, virtual_media.py; bmclib, redfishwrapper/virtual_media.go (X11SDV refuses Inserted and
/// WriteProtected; some XCC demand Inserted); sushy, bug 2071945 (DGX demands a user name).
static PARAMETERS: &[ParameterRule] = &[
    ParameterRule {
        name: "TransferProtocolType",
        has: |form| form.has_protocol,
        set: |form, value| form.has_protocol = value,
    },
    ParameterRule {
        name: "TransferMethod",
        has: |form| form.has_method,
        set: |form, value| form.has_method = value,
    },
    ParameterRule {
        name: "UserName",
        has: |form| form.has_credentials,
        set: |form, value| form.has_credentials = value,
    },
    ParameterRule {
        name: "Password",
        has: |form| form.has_credentials,
        set: |form, value| form.has_credentials = value,
    },
    ParameterRule {
        name: "WriteProtected",
        has: |form| form.has_write_protected,
        set: |form, value| form.has_write_protected = value,
    },
    ParameterRule {
        name: "Inserted",
        has: |form| form.has_inserted,
        set: |form, value| form.has_inserted = value,
    },
];

/// Identifiers of messages about a parameter that is missing.
const MISSING: &[&str] = &[
    "ActionParameterMissing",
    "PropertyMissing",
    "CreateFailedMissingReqProperties",
    "GeneralError",
];

impl InsertForm {
    /// The image, to be inserted without write access.
    pub const FULL: Self = Self {
        has_inserted: true,
        has_write_protected: true,
        ..Self::IMAGE
    };
    /// The image alone.
    pub const IMAGE: Self = Self {
        has_inserted: false,
        has_write_protected: false,
        has_protocol: false,
        has_method: false,
        has_credentials: false,
    };
    /// Attempts of one insertion: each changes a parameter.
    pub(super) const ATTEMPTS: usize = 6;

    /// With the protocol of the image's URL.
    #[must_use]
    pub const fn with_protocol(mut self) -> Self {
        self.has_protocol = true;
        self
    }

    /// Other parameters, for a BMC that accepts these and inserts nothing.
    pub(super) fn other(self) -> Self {
        if self.has_inserted {
            Self {
                has_protocol: true,
                has_method: true,
                ..self
            }
        } else {
            Self::FULL.with_protocol()
        }
    }

    /// The body of a request.
    pub(super) fn body(self, image: &Url) -> Value {
        let mut body = Map::from_iter([("Image".to_owned(), Value::from(image.as_str()))]);
        let mut add = |is_added: bool, name: &str, value: Value| {
            if is_added {
                body.insert(name.to_owned(), value);
            }
        };
        add(self.has_inserted, "Inserted", true.into());
        add(self.has_write_protected, "WriteProtected", true.into());
        let protocol = protocol_name(image);
        add(self.has_protocol, "TransferProtocolType", protocol.into());
        add(self.has_method, "TransferMethod", "Stream".into());
        // Images are open to those that have their address; the BMC only wants the parameters.
        add(self.has_credentials, "UserName", "none".into());
        add(self.has_credentials, "Password", "none".into());
        Value::Object(body)
    }

    /// The form after a refusal that names a parameter.
    pub(super) fn after(self, refusal: &[RedfishMessage]) -> Option<Self> {
        for message in refusal {
            let is_missing = MISSING.contains(&message.id.as_str());
            for rule in PARAMETERS.iter().filter(|rule| message.concerns(rule.name)) {
                let mut next = self;
                (rule.set)(&mut next, is_missing);
                if (rule.has)(&self) != is_missing {
                    return Some(next);
                }
            }
        }
        None
    }

    /// The form after a refusal that names no parameter, as of old iLO and Supermicro.
    pub(super) fn bare(self) -> Option<Self> {
        let bare = Self {
            has_inserted: false,
            has_write_protected: false,
            ..self
        };
        (bare != self).then_some(bare)
    }
}

/// A way to insert an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsertWay {
    /// The action, with the parameters of the family.
    Action,
    /// The action with other parameters.
    OtherParameters,
    /// A write of the drive's properties.
    Properties,
}

impl InsertWay {
    /// All ways, the best one first: each is tried on every drive before the next one.
    pub(super) const ALL: [Self; 3] = [Self::Action, Self::OtherParameters, Self::Properties];

    /// The parameters; `usual` are those of the family.
    pub(super) fn form(self, usual: InsertForm) -> InsertForm {
        match self {
            Self::Action => usual,
            Self::OtherParameters => usual.other(),
            // Lenovo inserts nothing without the property.
            Self::Properties => InsertForm::FULL,
        }
    }
}

impl fmt::Display for InsertWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Action => "InsertMedia",
            Self::OtherParameters => "InsertMedia with other parameters",
            Self::Properties => "a write of its properties",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn message(id: &str, text: &str) -> RedfishMessage {
        RedfishMessage {
            id: id.to_owned(),
            text: text.to_owned(),
            properties: Vec::new(),
        }
    }

    #[test]
    fn bodies_have_the_parameters_of_their_form() {
        let image = "https://10.0.0.1/a.iso".parse().unwrap();
        assert_eq!(
            InsertForm::IMAGE.body(&image),
            json!({ "Image": "https://10.0.0.1/a.iso" })
        );
        assert_eq!(
            InsertForm::FULL.with_protocol().body(&image),
            json!({ "Image": "https://10.0.0.1/a.iso", "Inserted": true, "WriteProtected": true,
                "TransferProtocolType": "HTTPS" })
        );
    }

    #[test]
    fn other_parameters_differ() {
        for form in [
            InsertForm::FULL,
            InsertForm::IMAGE,
            InsertForm::IMAGE.with_protocol(),
        ] {
            assert_ne!(form.other(), form);
        }
        let smb = "smb://server/share/a.iso".parse().unwrap();
        let body = InsertForm::FULL.other().body(&smb);
        assert_eq!(body["TransferProtocolType"], "CIFS");
    }

    #[test]
    fn refusals_change_the_parameter_that_they_name() {
        let full = InsertForm::FULL;
        let of = |id: &str, text: &str| full.after(&[message(id, text)]);
        let without_inserted = InsertForm {
            has_inserted: false,
            ..full
        };
        let with_method = InsertForm {
            has_method: true,
            ..full
        };
        let with_credentials = InsertForm {
            has_credentials: true,
            ..full
        };
        for (id, text, expected) in [
            (
                "ActionParameterNotSupported",
                "Inserted is not supported",
                Some(without_inserted),
            ),
            (
                "ActionParameterMissing",
                "TransferProtocolType is required",
                Some(full.with_protocol()),
            ),
            ("GeneralError", "missing TransferMethod", Some(with_method)),
            (
                "ActionParameterMissing",
                "requires the parameter UserName",
                Some(with_credentials),
            ),
            ("ActionParameterMissing", "Inserted is required", None),
            ("InternalError", "", None),
        ] {
            assert_eq!(of(id, text), expected, "{id} {text}");
        }
        assert_eq!(
            (full.bare(), InsertForm::IMAGE.bare()),
            (Some(InsertForm::IMAGE), None)
        );
        let required =
            InsertForm::IMAGE.after(&[message("PropertyMissing", "Inserted is required")]);
        assert_eq!(
            required,
            Some(InsertForm {
                has_inserted: true,
                ..InsertForm::IMAGE
            })
        );
    }

    proptest! {
        #[test]
        fn forms_change_with_each_attempt(
            refusals in prop::collection::vec(("(GeneralError|PropertyUnknown)", "(Inserted|WriteProtected|Password|TransferMethod)"), 1..4)
        ) {
            let found: Vec<_> = refusals.iter().map(|(id, text)| message(id, text)).collect();
            if let Some(next) = InsertForm::FULL.after(&found) {
                prop_assert_ne!(next, InsertForm::FULL);
            }
        }
    }
}
