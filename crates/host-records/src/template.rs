//! Templates of records: without the members that a cluster sets.

use serde_json::Value;

/// Members of the metadata that belong to one object of one cluster.
const OF_OBJECT: &[&str] = &[
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "ownerReferences",
    "selfLink",
];
/// Annotation of `kubectl apply`.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The record as it can be created again: without status, identity, owners and the annotation of `kubectl apply`.
pub fn template(mut record: Value) -> Value {
    let Some(members) = record.as_object_mut() else {
        return record;
    };
    members.remove("status");
    if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
        for name in OF_OBJECT {
            metadata.remove(*name);
        }
        if let Some(annotations) = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut)
        {
            annotations.remove(LAST_APPLIED);
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    record
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_of_the_cluster_are_removed() {
        let record = json!({
            "kind": "Machine",
            "metadata": {
                "name": "a",
                "uid": "1",
                "managedFields": [],
                "finalizers": ["f"],
                "annotations": {LAST_APPLIED: "{}"},
            },
            "spec": {"x": 1},
            "status": {"phase": "Running"},
        });
        let expected = json!({
            "kind": "Machine",
            "metadata": {"name": "a", "finalizers": ["f"]},
            "spec": {"x": 1},
        });
        assert_eq!(template(record), expected);
        assert_eq!(template(expected.clone()), expected);
        assert_eq!(template(json!(1)), json!(1));
        let own = json!({"metadata": {"annotations": {LAST_APPLIED: "{}", "a": "b"}}});
        assert_eq!(
            template(own),
            json!({"metadata": {"annotations": {"a": "b"}}})
        );
    }
}
