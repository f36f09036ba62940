//! JSON patches of the installer's manifests.
//!
//! Source: RFC 6902 and RFC 6901.

use serde::Deserialize;
use serde_json::Value;

/// One operation of a patch.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Operation {
    Add { path: String, value: Value },
    Remove { path: String },
    Replace { path: String, value: Value },
    Move { from: String, path: String },
    Copy { from: String, path: String },
    Test { path: String, value: Value },
}

/// Applies `operations` in order. An error names its path; `document` is then partially changed.
pub(crate) fn apply(document: &mut Value, operations: Vec<Operation>) -> Result<(), String> {
    for operation in operations {
        match operation {
            Operation::Add { path, value } => add(document, &path, value)?,
            Operation::Remove { path } => {
                remove(document, &path)?;
            }
            Operation::Replace { path, value } => *find(document, &path)? = value,
            Operation::Move { from, path } => {
                let value = remove(document, &from)?;
                add(document, &path, value)?;
            }
            Operation::Copy { from, path } => {
                let value = find(document, &from)?.clone();
                add(document, &path, value)?;
            }
            Operation::Test { path, value } => {
                if *find(document, &path)? != value {
                    return Err(format!("{path} is not {value}"));
                }
            }
        }
    }
    Ok(())
}

fn find<'a>(document: &'a mut Value, path: &str) -> Result<&'a mut Value, String> {
    document
        .pointer_mut(path)
        .ok_or_else(|| format!("{path} not found"))
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let Some((parent, last)) = path.rsplit_once('/') else {
        return if path.is_empty() {
            *document = value;
            Ok(())
        } else {
            Err(format!("{path} does not start with a slash"))
        };
    };
    match find(document, parent)? {
        Value::Object(members) => {
            members.insert(unescape(last), value);
        }
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            let index = index(last, path)?;
            if index > items.len() {
                return Err(format!("{path} is past the end of the list"));
            }
            items.insert(index, value);
        }
        _ => return Err(format!("{parent} is neither object nor list")),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, String> {
    let (parent, last) = path
        .rsplit_once('/')
        .ok_or_else(|| format!("{path:?} cannot be removed"))?;
    let absent = || format!("{path} not found");
    match find(document, parent)? {
        Value::Object(members) => members.remove(&unescape(last)).ok_or_else(absent),
        Value::Array(items) => {
            let index = index(last, path)?;
            if index >= items.len() {
                return Err(absent());
            }
            Ok(items.remove(index))
        }
        _ => Err(absent()),
    }
}

fn index(text: &str, path: &str) -> Result<usize, String> {
    let is_plain = text == "0" || !text.starts_with(['0', '+']);
    text.parse()
        .ok()
        .filter(|_| is_plain)
        .ok_or_else(|| format!("{path} does not end in a list index"))
}

fn unescape(text: &str) -> String {
    text.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(document: Value, patch: Value) -> Result<Value, String> {
        let mut document = document;
        apply(&mut document, serde_json::from_value(patch).unwrap())?;
        Ok(document)
    }

    #[test]
    fn operations_follow_rfc_6902() {
        let document = || json!({ "spec": { "list": [1, 2], "a/b": 1 } });
        for (patch, expected) in [
            (
                json!([{ "op": "add", "path": "/spec/new", "value": {} }]),
                json!({ "spec": { "list": [1, 2], "a/b": 1, "new": {} } }),
            ),
            (
                json!([{ "op": "add", "path": "/spec/list/0", "value": 0 }]),
                json!({ "spec": { "list": [0, 1, 2], "a/b": 1 } }),
            ),
            (
                json!([{ "op": "add", "path": "/spec/list/-", "value": 3 }]),
                json!({ "spec": { "list": [1, 2, 3], "a/b": 1 } }),
            ),
            (
                json!([{ "op": "replace", "path": "/spec/a~1b", "value": true }]),
                json!({ "spec": { "list": [1, 2], "a/b": true } }),
            ),
            (
                json!([{ "op": "move", "from": "/spec/list/1", "path": "/top" }, { "op": "remove", "path": "/spec/a~1b" }]),
                json!({ "spec": { "list": [1] }, "top": 2 }),
            ),
            (
                json!([{ "op": "test", "path": "/spec/list/0", "value": 1 }, { "op": "copy", "from": "/spec/list", "path": "" }]),
                json!([1, 2]),
            ),
        ] {
            assert_eq!(patched(document(), patch).unwrap(), expected);
        }
    }

    #[test]
    fn errors_name_the_path() {
        for patch in [
            json!([{ "op": "replace", "path": "/spec/x", "value": 1 }]),
            json!([{ "op": "remove", "path": "/spec/x" }]),
            json!([{ "op": "add", "path": "/nowhere/spec/x", "value": 1 }]),
            json!([{ "op": "add", "path": "/spec/list/3/x", "value": 1 }]),
            json!([{ "op": "test", "path": "/spec/x", "value": 1 }]),
        ] {
            let document = json!({ "spec": { "list": [1] } });
            let error = patched(document, patch).unwrap_err();
            assert!(
                error.contains("/spec/") || error.contains("/nowhere"),
                "{error}"
            );
        }
    }
}
