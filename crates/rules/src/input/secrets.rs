//! Pull secrets, certificates and ignition overrides.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::Error;
use serde_json::{Map, Value};

use super::refusal::refuse;

use crate::urls::registry_of;

const PULL_SECRET: &str = "pull_secret";
/// Key of the hosted service in pull secrets.
const CLOUD: &str = "cloud.openshift.com";
/// Key of the registry `docker.io` in pull secrets.
const DOCKER_IO: &str = "https://index.docker.io/v1/";

/// Checks a pull secret: it must be well formed and hold credentials for every image in `required`.
///
/// Registries in `exempt` (hosts, or locations with a path) need none. The text never appears in an error.
/// Source: assisted-service, internal/cluster/validations/pull_secret_validation.go, ValidatePullSecret.
pub fn pull_secret<R, E>(text: &str, required: &[R], exempt: &[E]) -> Result<(), Error>
where
    R: AsRef<str>,
    E: AsRef<str>,
{
    let auths = auths(text)?;
    for (registry, entry) in &auths {
        check_entry(registry, entry)?;
    }
    let exempt: Vec<&str> = exempt
        .iter()
        .map(|location| location.as_ref().trim())
        .filter(|location| !location.is_empty())
        .collect();
    for reference in required.iter().map(AsRef::as_ref) {
        if reference.is_empty() {
            continue;
        }
        let location = location_of(reference);
        let known = prefixes(&location)
            .any(|prefix| auths.contains_key(prefix) || exempt.contains(&prefix));
        let is_docker = registry_of(reference) == "docker.io" && auths.contains_key(DOCKER_IO);
        if !known && !is_docker {
            return Err(Error::invalid(
                PULL_SECRET,
                format!(
                    "has no entry for registry {:?}, which {reference:?} comes from: add one to auths, or name the registry in PUBLIC_CONTAINER_REGISTRIES",
                    registry_of(reference)
                ),
            ));
        }
    }
    Ok(())
}

/// The token by which agents are known to a service with users of its own; none if the pull secret has none.
/// Source: assisted-service, internal/cluster/auth.go, cloudPullSecretToken.
pub fn cloud_token(pull_secret: &str) -> Option<String> {
    let auths = auths(pull_secret).ok()?;
    let token = auths.get(CLOUD)?.get("auth")?.as_str()?.trim();
    (!token.is_empty()).then(|| token.to_owned())
}

/// Source: assisted-service, internal/cluster/validations/pull_secret_validation.go, ParsePullSecret.
fn auths(text: &str) -> Result<Map<String, Value>, Error> {
    // serde_json names line and column and repeats nothing of the text for a syntax error.
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Error::invalid(PULL_SECRET, format!("is not JSON: {error}")))?;
    match value {
        Value::Object(mut object) => match object.remove("auths") {
            Some(Value::Object(auths)) if !auths.is_empty() => Ok(auths),
            _ => Err(Error::invalid(
                PULL_SECRET,
                "has no registry: it should look like {\"auths\":{\"registry.example.com:5000\":{\"auth\":\"…\"}}}",
            )),
        },
        _ => Err(Error::invalid(PULL_SECRET, "is not a JSON object")),
    }
}

/// Source: assisted-service, internal/cluster/validations/pull_secret_validation.go, parseAuthConfig.
fn check_entry(registry: &str, entry: &Value) -> Result<(), Error> {
    let wrong = |reason: &str| {
        Err(Error::invalid(
            PULL_SECRET,
            format!("auths[{registry:?}] {reason}"),
        ))
    };
    let Some(entry) = entry.as_object() else {
        return wrong("is not an object: write {\"auth\":\"…\"}");
    };
    match entry.get("auth") {
        None => Ok(()),
        Some(Value::String(auth)) => {
            let has_colon = STANDARD
                .decode(auth.trim())
                .is_ok_and(|bytes| bytes.contains(&b':'));
            if has_colon {
                Ok(())
            } else {
                wrong("has an auth that is not the base64 of user:password")
            }
        }
        Some(_) => wrong("has an auth that is not a text"),
    }
}

/// The reference without tag and digest, its host in front.
fn location_of(reference: &str) -> String {
    let name = reference.split('@').next().unwrap_or_default();
    let slash = name.rfind('/').map_or(0, |at| at + 1);
    let end = name
        .get(slash..)
        .and_then(|last| last.find(':'))
        .map_or(name.len(), |at| slash + at);
    let name = name.get(..end).unwrap_or(name);
    if registry_of(reference) == "docker.io" && !name.starts_with("docker.io/") {
        return format!("docker.io/{name}");
    }
    name.to_owned()
}

/// `host/ns/repo`, `host/ns`, `host`.
fn prefixes(location: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(location), |rest| {
        rest.rsplit_once('/').map(|(head, _)| head)
    })
}

/// Checks PEM certificates, and returns them trimmed; empty is allowed.
/// Source: assisted-service, internal/cluster/validations/validations.go, ValidatePEMCertificateBundle.
pub fn ca_certificates(field: &str, text: &str) -> Result<String, Error> {
    let trimmed = text.trim();
    let mut rest = trimmed;
    while !rest.is_empty() {
        rest = certificate(rest)
            .ok_or_else(|| {
                Error::invalid(
                    field,
                    "is not a list of PEM certificates: only -----BEGIN CERTIFICATE----- blocks may stand in it",
                )
            })?
            .trim_start();
    }
    Ok(trimmed.to_owned())
}

/// Splits off one block, and returns the rest.
fn certificate(text: &str) -> Option<&str> {
    let body = text.strip_prefix("-----BEGIN CERTIFICATE-----")?;
    let (body, rest) = body.split_once("-----END CERTIFICATE-----")?;
    let base64: String = body.split_whitespace().collect();
    let der = STANDARD.decode(base64).ok()?;
    // A certificate is an ASN.1 sequence.
    (der.first() == Some(&0x30) && der.len() > 2).then_some(rest)
}

/// Checks an ignition override: JSON of Ignition 3; empty is allowed.
/// Source: assisted-service, internal/bminventory/inventory.go, validateInfraEnvIgnitionParams.
pub fn ignition_config_override(field: &str, text: &str) -> Result<(), Error> {
    if text.is_empty() {
        return Ok(());
    }
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Error::invalid(field, format!("is not JSON: {error}")))?;
    let version = value
        .pointer("/ignition/version")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !version.starts_with("3.") {
        return Err(refuse(
            field,
            version,
            "as ignition.version is not supported: use 3.1.0 or another version 3",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const AGENT: &str = "quay.example.com:8443/edge/agent:v1";

    fn secret(registries: &[&str]) -> String {
        let auth = STANDARD.encode("user:password");
        let auths: Map<String, Value> = registries
            .iter()
            .map(|name| {
                (
                    (*name).to_owned(),
                    serde_json::json!({ "auth": auth, "email": "a@b" }),
                )
            })
            .collect();
        serde_json::json!({ "auths": auths }).to_string()
    }

    #[test]
    fn agents_have_the_token_of_the_hosted_service() {
        let secret =
            r#"{"auths":{"a.example":{"auth":"YTpi"},"cloud.openshift.com":{"auth":" dTpw\n"}}}"#;
        assert_eq!(cloud_token(secret).as_deref(), Some("dTpw"));
        for other in [
            "",
            "{}",
            r#"{"auths":{"a.example":{"auth":"YTpi"}}}"#,
            r#"{"auths":{"cloud.openshift.com":{"auth":""}}}"#,
        ] {
            assert_eq!(cloud_token(other), None, "{other}");
        }
    }

    #[test]
    fn entries_match_along_the_path() {
        let none: &[&str] = &[];
        for registry in [
            "quay.example.com:8443",
            "quay.example.com:8443/edge",
            "quay.example.com:8443/edge/agent",
        ] {
            assert!(
                pull_secret(&secret(&[registry]), &[AGENT], none).is_ok(),
                "{registry}"
            );
        }
        for registry in [
            "quay.example.com",
            "quay.example.com:8443/other",
            "example.com",
        ] {
            let error = pull_secret(&secret(&[registry]), &[AGENT], none).unwrap_err();
            assert!(
                error.to_string().contains("quay.example.com:8443"),
                "{error}"
            );
        }
        assert!(pull_secret(&secret(&[DOCKER_IO]), &["library/busybox:1"], none).is_ok());
        assert!(pull_secret(&secret(&["docker.io"]), &["busybox"], none).is_ok());
    }

    #[test]
    fn public_registries_need_no_entry() {
        let text = secret(&["other.example.com"]);
        assert!(pull_secret(&text, &[AGENT], &["quay.example.com:8443"]).is_ok());
        assert!(pull_secret(&text, &[AGENT], &["quay.example.com:8443/edge"]).is_ok());
        assert!(pull_secret(&text, &[AGENT], &["", " "]).is_err());
    }

    #[test]
    fn malformed_secrets_are_refused_without_showing_them() {
        let none: &[&str] = &[];
        for bad in [
            "",
            "[]",
            "{}",
            r#"{"auths":{}}"#,
            r#"{"auths":[]}"#,
            r#"{"auths":{"a":"hidden"}}"#,
            r#"{"auths":{"a":{"auth":"hidden"}}}"#,
            r#"{"auths":{"a":{"auth":1}}}"#,
            r#"{"auths":{"a":{"auth":"aGlkZGVu"}}}"#,
        ] {
            let error = pull_secret(bad, none, none).unwrap_err();
            assert!(!error.to_string().contains("hidden"), "{error}");
        }
        assert!(pull_secret(r#"{"auths":{"a":{}}}"#, none, none).is_ok());
    }

    #[test]
    fn certificates() {
        let block = "-----BEGIN CERTIFICATE-----\nMIIB\nAAAA\n-----END CERTIFICATE-----";
        assert_eq!(
            ca_certificates("x", &format!("\n{block}\n")).unwrap(),
            block
        );
        assert!(ca_certificates("x", &format!("{block}\n{block}")).is_ok());
        assert_eq!(ca_certificates("x", " \n").unwrap(), "");
        for bad in [
            "text".to_owned(),
            format!("# comment\n{block}"),
            block.replace("CERTIFICATE", "PRIVATE KEY"),
            block.replace("MIIB", "!!!!"),
            "-----BEGIN CERTIFICATE-----\nMIIB".to_owned(),
        ] {
            assert!(ca_certificates("x", &bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ignition_overrides() {
        assert!(ignition_config_override("x", "").is_ok());
        assert!(ignition_config_override("x", r#"{"ignition":{"version":"3.1.0"}}"#).is_ok());
        for bad in ["{", "{}", r#"{"ignition":{"version":"2.2.0"}}"#] {
            assert!(ignition_config_override("x", bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_check_panics(text in "\\PC*", reference in "[a-z0-9:/@.é]{0,24}") {
            let _ = pull_secret(&text, &[&reference], &["a"]);
            let _ = ca_certificates("x", &text);
            let _ = location_of(&reference);
        }
    }
}
