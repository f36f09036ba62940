//! Tang servers of encrypted disks.

use model::Error;
use serde_json::{Map, Value};
use url::Url;

use super::refusal::refuse;

const FIELD: &str = "disk_encryption.tang_servers";
const SHAPE: &str = r#"write [{"url":"http://host:port","thumbprint":"…"}] as text"#;
const URL: &str = "url";
const THUMBPRINT: &str = "thumbprint";

/// Parses a list of servers, whose member names may be in any letter case; returns them as `url` and `thumbprint`.
///
/// Errors: `Invalid` – malformed or empty, or a server without URL or thumbprint.
/// Source: assisted-service, pkg/tang/tang_server.go, decoded case-insensitively.
pub(crate) fn tang_servers(text: &str) -> Result<Vec<Map<String, Value>>, Error> {
    let list: Vec<Value> = serde_json::from_str(text)
        .map_err(|error| Error::invalid(FIELD, format!("is not a JSON list ({error}): {SHAPE}")))?;
    if list.is_empty() {
        return Err(Error::invalid(FIELD, format!("names no server: {SHAPE}")));
    }
    list.into_iter().map(tang_server).collect()
}

fn tang_server(value: Value) -> Result<Map<String, Value>, Error> {
    let malformed = |value: &Value| {
        let problem = format!("is not a server: {SHAPE}");
        refuse(FIELD, &value.to_string(), &problem)
    };
    let Value::Object(members) = value else {
        return Err(malformed(&value));
    };
    let server: Map<String, Value> = members
        .into_iter()
        .map(|(name, value)| (canonical(name), value))
        .collect();
    let text = |name: &str| server.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_url = Url::parse(text(URL))
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some());
    if !is_url || text(THUMBPRINT).is_empty() {
        return Err(malformed(&Value::Object(server)));
    }
    Ok(server)
}

/// A known name in its own letter case.
fn canonical(name: String) -> String {
    [URL, THUMBPRINT]
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(&name))
        .map_or(name, str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_names_match_in_any_case() {
        let servers = tang_servers(r#"[{"URL":"http://tang:7500","Thumbprint":"x"}]"#).unwrap();
        assert_eq!(servers[0]["url"], "http://tang:7500");
        assert_eq!(servers[0]["thumbprint"], "x");
    }

    #[test]
    fn malformed_servers_are_refused() {
        for bad in [
            "",
            "[]",
            "{}",
            "[1]",
            r#"[{"url":"tang"}]"#,
            r#"[{"url":"http://tang"}]"#,
        ] {
            assert!(tang_servers(bad).is_err(), "{bad}");
        }
    }
}
