//! Redaction of secrets in a program's output.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

/// Shortest redacted secret; shorter ones would redact ordinary words. Units: bytes.
const MIN_BYTES: usize = 4;
const MASK: &str = "<hidden>";

/// Texts to redact, longest first.
#[derive(Clone, Default)]
pub(crate) struct Masks(Vec<String>);

impl Masks {
    /// Masks of a pull secret: the whole text, each entry's credentials, each password.
    pub(crate) fn of_pull_secret(pull_secret: &SecretString) -> Self {
        let text = pull_secret.expose_secret();
        let mut masks = vec![text.to_owned(), text.replace('"', "\\\"")];
        let parsed: Value = serde_json::from_str(text).unwrap_or_default();
        let auths = parsed.get("auths").and_then(Value::as_object);
        for entry in auths.into_iter().flat_map(serde_json::Map::values) {
            let Some(auth) = entry.get("auth").and_then(Value::as_str) else {
                continue;
            };
            masks.push(auth.to_owned());
            let pair = STANDARD.decode(auth).unwrap_or_default();
            if let Some((_, password)) = String::from_utf8_lossy(&pair).split_once(':') {
                masks.push(password.to_owned());
            }
        }
        masks.retain(|mask| mask.len() >= MIN_BYTES);
        masks.sort_by_key(|mask| std::cmp::Reverse(mask.len()));
        Self(masks)
    }

    /// `text` with every secret replaced.
    pub(crate) fn apply(&self, text: &str) -> String {
        self.0
            .iter()
            .fold(text.to_owned(), |text, mask| text.replace(mask, MASK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pull_secrets_are_redacted() {
        let auth = STANDARD.encode("user:pass-word");
        let secret = SecretString::from(format!(r#"{{"auths":{{"r.lab":{{"auth":"{auth}"}}}}}}"#));
        let masks = Masks::of_pull_secret(&secret);
        let output = format!(
            "got {} and {auth} and pass-word for r.lab",
            secret.expose_secret()
        );
        assert_eq!(
            masks.apply(&output),
            "got <hidden> and <hidden> and <hidden> for r.lab"
        );
    }
}
