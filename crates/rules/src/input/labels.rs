//! Labels of a node.

use std::collections::BTreeMap;

use model::Error;
use model::host::NodeLabelParams;

use super::refusal::refuse;

/// Checks labels by the rules of Kubernetes, and returns them as a map.
/// Source: assisted-service, internal/bminventory/inventory.go, updateNodeLabels.
pub fn node_labels(list: &[NodeLabelParams]) -> Result<BTreeMap<String, String>, Error> {
    const FIELD: &str = "node_labels";
    let mut labels = BTreeMap::new();
    for label in list {
        if !is_key(&label.key) {
            return Err(refuse(
                FIELD,
                &label.key,
                "is not a label's key: use [domain/]name, name of at most 63 letters, digits, inner '-', '_', '.'",
            ));
        }
        if !label.value.is_empty() && !is_name(&label.value) {
            return Err(refuse(
                FIELD,
                &label.value,
                "is not a label's value: use at most 63 letters, digits, inner '-', '_', '.'",
            ));
        }
        if labels
            .insert(label.key.clone(), label.value.clone())
            .is_some()
        {
            return Err(refuse(FIELD, &label.key, "is duplicated: leave one out"));
        }
    }
    Ok(labels)
}

fn is_key(key: &str) -> bool {
    match key.split_once('/') {
        None => is_name(key),
        Some((prefix, name)) => {
            is_name(name)
                && prefix.len() <= 253
                && prefix.split('.').all(|part| {
                    is_name(part)
                        && part
                            .bytes()
                            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
                })
        }
    }
}

fn is_name(name: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    bytes.len() <= 63
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(key: &str, value: &str) -> NodeLabelParams {
        NodeLabelParams {
            key: key.to_owned(),
            value: value.to_owned(),
        }
    }

    #[test]
    fn labels() {
        for (key, value) in [("a", ""), ("node.example.com/role", "x_1"), ("A.b-c", "V")] {
            assert!(node_labels(&[label(key, value)]).is_ok(), "{key}");
        }
        for (key, value) in [
            ("", ""),
            ("/a", ""),
            ("a/", ""),
            ("a/b/c", ""),
            ("A.com/x", ""),
            ("-a", ""),
            ("a", "-"),
            ("a", "b c"),
        ] {
            assert!(node_labels(&[label(key, value)]).is_err(), "{key} {value}");
        }
        assert!(node_labels(&[label("a", "1"), label("a", "2")]).is_err());
    }
}
