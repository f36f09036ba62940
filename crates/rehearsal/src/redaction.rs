//! Site files without their secrets, which rehearsals do not need: for programs that store a request.

use located_yaml::v1_2::ConfigNode;
use serde_json::{Map, Value, json};
use url::Url;

use crate::Error;

/// Parts of the names of members with secrets.
const SECRET_NAMES: [&str; 4] = ["password", "secret", "token", "auth"];
/// Login in place of another. Its form is right: sites are checked for it.
const LOGIN: &str = "cmVoZWFyc2FsOnJlaGVhcnNhbA==";

/// The site file with other pull secrets, passwords and tokens; pull secrets keep their registries.
///
/// Errors: Invalid – it is not YAML.
pub fn redacted(site: &str) -> Result<String, Error> {
    let documents = declarations::documents("site", site);
    let documents = documents.map_err(|error| Error::invalid("site", error.chain()))?;
    let documents = documents.iter().map(ConfigNode::to_json);
    // Their records name secrets, and nothing reads them.
    let mut documents: Vec<Value> = documents
        .filter(|document| document.get("kind") != Some(&json!("Secret")))
        .collect();
    documents.iter_mut().for_each(redact);
    // JSON is YAML.
    let documents: Vec<_> = documents.iter().map(Value::to_string).collect();
    Ok(documents.join("\n---\n"))
}

fn redact(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Object(members) => redact_members(members),
        Value::String(text) => {
            if let Some(bare) = without_login(text) {
                *text = bare;
            }
        }
        _ => {}
    }
}

fn redact_members(members: &mut Map<String, Value>) {
    for (name, value) in members {
        let lower = name.to_lowercase();
        match value {
            Value::String(text) if lower == "pullsecret" => *text = pull_secret(text),
            Value::String(text) if SECRET_NAMES.iter().any(|part| lower.contains(part)) => {
                "removed".clone_into(text);
            }
            _ => redact(value),
        }
    }
}

/// A malformed one stays malformed.
fn pull_secret(text: &str) -> String {
    let parsed: Result<Value, _> = serde_json::from_str(text);
    let registries = parsed.as_ref().ok().and_then(|it| it["auths"].as_object());
    let Some(registries) = registries else {
        return "removed".to_owned();
    };
    let logins = registries
        .keys()
        .map(|name| (name.clone(), json!({ "auth": LOGIN })));
    json!({ "auths": logins.collect::<Map<_, _>>() }).to_string()
}

fn without_login(text: &str) -> Option<String> {
    let mut url = Url::parse(text).ok()?;
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    Some(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_replaced_and_the_site_stays_the_same() {
        let site = "apiVersion: v1\nmetadata: {name: a}\nproxy: {httpsProxy: 'http://u:hidden@proxy:1/'}\n\
            platform: {baremetal: {hosts: [{bmc: {password: hidden, address: 'redfish://x'}}]}}\n\
            pullSecret: '{\"auths\":{\"a.example\":{\"auth\":\"hidden\"}}}'\n\
            ---\nkind: Secret\ndata: {password: hidden}\n---\nkind: AgentConfig\nhosts: [{hostname: b}]\n";
        let found = redacted(site).unwrap();
        assert!(!found.contains("hidden"), "{found}");
        let documents = declarations::documents("site", &found).unwrap();
        let documents: Vec<Value> = documents.iter().map(ConfigNode::to_json).collect();
        assert_eq!(documents.len(), 2);
        assert_eq!(documents[0]["proxy"]["httpsProxy"], "http://proxy:1/");
        assert_eq!(
            documents[0]["platform"]["baremetal"]["hosts"][0]["bmc"],
            json!({ "password": "removed", "address": "redfish://x" })
        );
        let secret = documents[0]["pullSecret"].as_str().unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(secret).unwrap(),
            json!({ "auths": { "a.example": { "auth": LOGIN } } })
        );
        assert_eq!(
            redacted("PullSecret: hidden").unwrap(),
            r#"{"PullSecret":"removed"}"#
        );
        assert!(redacted("a: [").is_err());
    }
}
