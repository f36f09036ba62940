//! Configurations without their secrets.
//!
//! The invariant: contents stay out unless they are known to be public. Names, modes, keys for SSH and the structure stay.

use serde_json::Value;

/// Text in place of a secret.
const REDACTED: &str = "redacted";
/// Source of a redacted file.
const SOURCE: &str = "data:,redacted";
/// Members that carry contents, with their replacement; none: they describe content that is not there any more.
const SECRETS: &[(&str, Option<&str>)] = &[
    ("contents", Some("# redacted\n")),
    ("source", Some(SOURCE)),
    ("value", Some(REDACTED)),
    ("passwordHash", Some(REDACTED)),
    ("config", Some(REDACTED)),
    ("httpProxy", Some("http://redacted")),
    ("httpsProxy", Some("http://redacted")),
    ("hash", None),
    ("compression", None),
];

/// `config` without contents of files and units, passwords, headers, and addresses of sources and proxies.
#[must_use]
pub fn redacted(config: Value) -> Value {
    match config {
        Value::Array(items) => items.into_iter().map(redacted).collect(),
        Value::Object(members) => members.into_iter().filter_map(member).collect(),
        other => other,
    }
}

fn member((name, value): (String, Value)) -> Option<(String, Value)> {
    let secret = SECRETS.iter().find(|(secret, _)| *secret == name);
    let value = match (secret, value) {
        (Some((_, replacement)), Value::String(_)) => Value::from((*replacement)?),
        (_, value) => redacted(value),
    };
    Some((name, value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn contents_are_not_in_redacted_configurations() {
        let secret = "s3cret";
        let source = format!("data:,{secret}");
        let config = json!({
            "ignition": {
                "version": "3.2.0",
                "config": { "merge": [{ "source": format!("https://h/{secret}"), "httpHeaders": [{ "name": "a", "value": secret }] }] },
                "proxy": { "httpProxy": format!("http://u:{secret}@p"), "noProxy": ["lab"] },
            },
            "passwd": { "users": [{ "name": "core", "passwordHash": secret, "sshAuthorizedKeys": ["ssh-rsa public"] }] },
            "storage": {
                "files": [{
                    "path": "/etc/a", "mode": 384,
                    "contents": { "source": source, "verification": { "hash": "sha256-s3cret" } },
                    "append": [{ "source": source }],
                }],
                "luks": [{ "name": "root", "keyFile": { "source": source }, "clevis": { "custom": { "pin": "sss", "config": secret, "needsNetwork": true } } }],
            },
            "systemd": { "units": [{ "name": "a.service", "contents": format!("Environment=T={secret}"),
                "dropins": [{ "name": "b.conf", "contents": secret }] }] },
        });
        let redacted = redacted(config);
        let text = redacted.to_string();
        assert!(!text.contains(secret), "{text}");
        for kept in [
            "/etc/a",
            "384",
            "ssh-rsa public",
            "a.service",
            "b.conf",
            "core",
            "lab",
            "data:,redacted",
        ] {
            assert!(text.contains(kept), "{kept}: {text}");
        }
    }
}
