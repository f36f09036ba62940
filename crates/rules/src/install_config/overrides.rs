//! The user's overrides of the generated install-config.

use model::Error;
use model::events::EventSeverity;
use serde_json::{Map, Value};

use super::schema::{ROOT, Shape};
use crate::NewEvent;
use crate::Snapshot;
use crate::cluster::update::accepts_changes;
use crate::input::ca_certificates;

const FIELD: &str = "install_config_overrides";

/// Stores overrides on the cluster.
///
/// Errors: `Conflict` – the status forbids it; `Invalid` – they do not fit.
pub fn update(snapshot: &mut Snapshot, text: &str) -> Result<Vec<NewEvent>, Error> {
    accepts_changes(&snapshot.cluster)?;
    if !text.is_empty() {
        check(text)?;
    }
    text.clone_into(&mut snapshot.cluster.install_config_overrides);
    Ok(vec![
        NewEvent::new(
            "install_config_applied",
            EventSeverity::Info,
            "Custom install config was applied to the cluster",
        )
        .cluster(snapshot.cluster.id),
    ])
}

/// Parses overrides, and returns them in the installer's spelling.
///
/// Errors: `Invalid` naming the member.
/// Source: assisted-service, internal/installcfg/builder/builder.go, ValidateInstallConfigPatch.
pub fn check(text: &str) -> Result<Value, Error> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Error::invalid(FIELD, format!("is not JSON: {error}")))?;
    let value = canonical(value, &ROOT, "")?;
    if let Some(bundle) = value.get("additionalTrustBundle") {
        let text = bundle.as_str().unwrap_or_default();
        ca_certificates(&format!("{FIELD}.additionalTrustBundle"), text)?;
    }
    Ok(value)
}

fn canonical(value: Value, shape: &Shape, at: &str) -> Result<Value, Error> {
    match (shape, value) {
        (Shape::Any, value) => Ok(value),
        (Shape::Object(members), Value::Object(object)) => {
            let mut spelled = Map::new();
            for (name, inner) in object {
                let known = members
                    .iter()
                    .find(|(member, _)| member.eq_ignore_ascii_case(&name));
                let Some((member, shape)) = known else {
                    let names: Vec<&str> = members.iter().map(|(member, _)| *member).collect();
                    return Err(refused(
                        at,
                        &format!(
                            "has the unknown member {name:?}: known are [{}]",
                            names.join(" ")
                        ),
                    ));
                };
                let inner = canonical(inner, shape, &format!("{at}.{member}"))?;
                if spelled.insert((*member).to_owned(), inner).is_some() {
                    return Err(refused(at, &format!("has {member} twice: leave one out")));
                }
            }
            Ok(Value::Object(spelled))
        }
        (Shape::List(item), Value::Array(list)) => list
            .into_iter()
            .enumerate()
            .map(|(index, value)| canonical(value, item, &format!("{at}[{index}]")))
            .collect::<Result<Vec<Value>, Error>>()
            .map(Value::Array),
        (Shape::Object(_), _) => Err(refused(at, "should be an object")),
        (Shape::List(_), _) => Err(refused(at, "should be a list")),
    }
}

fn refused(at: &str, reason: &str) -> Error {
    Error::invalid(format!("{FIELD}{at}"), reason)
}

/// Removes the trust bundle: it is added to the others and does not replace them.
pub(super) fn take_trust_bundle(overrides: &mut Value) -> Option<String> {
    match overrides.as_object_mut()?.remove("additionalTrustBundle")? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Merges `over` into `base`: objects member by member, everything else replaced.
/// Source: assisted-service, internal/installcfg/builder/builder.go, applyConfigOverrides.
pub fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (name, value) in over {
                match base.get_mut(&name) {
                    Some(inner) => merge(inner, value),
                    None => {
                        base.insert(name, value);
                    }
                }
            }
        }
        (base, over) => *base = over,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn names_match_whatever_their_case() {
        let text = r#"{"ImageDigestSources":[{"Mirrors":["a"],"SOURCE":"b"}],"BootstrapInPlace":{"InstallationDisk":"/dev/sda"},"FIPS":true}"#;
        assert_eq!(
            check(text).unwrap(),
            json!({
                "imageDigestSources": [{ "mirrors": ["a"], "source": "b" }],
                "bootstrapInPlace": { "installationDisk": "/dev/sda" },
                "fips": true,
            })
        );
    }

    #[test]
    fn invalid_overrides_name_the_member() {
        for (text, expected) in [
            ("{", "install_config_overrides: is not JSON"),
            ("[]", "install_config_overrides: should be an object"),
            (
                r#"{"x":1}"#,
                "install_config_overrides: has the unknown member \"x\"",
            ),
            (
                r#"{"networking":{"x":1}}"#,
                "install_config_overrides.networking: has the unknown",
            ),
            (
                r#"{"compute":{}}"#,
                "install_config_overrides.compute: should be a list",
            ),
            (
                r#"{"compute":[1]}"#,
                "install_config_overrides.compute[0]: should be an object",
            ),
            (
                r#"{"fips":1,"Fips":2}"#,
                "install_config_overrides: has fips twice",
            ),
            (
                r#"{"additionalTrustBundle":"x"}"#,
                "install_config_overrides.additionalTrustBundle",
            ),
        ] {
            let error = check(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn objects_merge_and_lists_are_replaced() {
        let mut base = json!({ "a": { "b": 1, "c": [1, 2] }, "d": 1 });
        merge(&mut base, json!({ "a": { "c": [3] }, "e": null }));
        assert_eq!(
            base,
            json!({ "a": { "b": 1, "c": [3] }, "d": 1, "e": null })
        );
    }

    proptest! {
        #[test]
        fn checking_never_panics(text in "\\PC*") {
            let _ = check(&text);
        }
    }
}
