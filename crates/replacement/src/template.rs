//! Saved records as templates of new ones.

use serde_json::Value;

/// Members of the metadata that a cluster sets.
const SET_BY_CLUSTER: &[&str] = &[
    "uid",
    "resourceVersion",
    "generation",
    "selfLink",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "ownerReferences",
];
/// Annotations of tools and controllers about one object.
const ANNOTATIONS: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    // A copy of the host's status. Source: metal3-io/baremetal-operator.
    "baremetalhost.metal3.io/status",
];

/// The record without status, identity and owners, as it can be created again. Pure and idempotent.
pub fn record_template(mut record: Value) -> Value {
    let Some(members) = record.as_object_mut() else {
        return record;
    };
    members.remove("status");
    if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
        for name in SET_BY_CLUSTER {
            metadata.remove(*name);
        }
        let annotations = metadata.get_mut("annotations");
        if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
            for name in ANNOTATIONS {
                annotations.remove(*name);
            }
        }
    }
    record
}

/// A host's template whose machine is installed already: it is not provisioned again, and belongs to its machine.
pub(super) fn installed_host(mut host: Value) -> Value {
    if let Some(spec) = host.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("externallyProvisioned".to_owned(), Value::Bool(true));
        spec.insert("online".to_owned(), Value::Bool(true));
        let consumer = spec.get_mut("consumerRef").and_then(Value::as_object_mut);
        if let Some(consumer) = consumer {
            // Of the deleted machine.
            consumer.remove("uid");
            consumer.remove("resourceVersion");
        }
    }
    host
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_wish_remains() {
        let host = json!({
            "apiVersion": "metal3.io/v1alpha1",
            "kind": "BareMetalHost",
            "metadata": {
                "name": "control-2",
                "namespace": "openshift-machine-api",
                "labels": {"a": "b"},
                "uid": "1", "resourceVersion": "2", "generation": 3, "selfLink": "/x",
                "creationTimestamp": "t", "deletionTimestamp": "t", "deletionGracePeriodSeconds": 0,
                "managedFields": [{}], "ownerReferences": [{}],
                "finalizers": ["baremetalhost.metal3.io"],
                "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": "{}",
                    "baremetalhost.metal3.io/status": "{}",
                    "own": "kept",
                },
            },
            "spec": {"online": false, "consumerRef": {"kind": "Machine", "name": "m", "uid": "1"}},
            "status": {"poweredOn": true},
        });
        let template = record_template(host);
        assert_eq!(
            template,
            json!({
                "apiVersion": "metal3.io/v1alpha1",
                "kind": "BareMetalHost",
                "metadata": {
                    "name": "control-2",
                    "namespace": "openshift-machine-api",
                    "labels": {"a": "b"},
                    "finalizers": ["baremetalhost.metal3.io"],
                    "annotations": {"own": "kept"},
                },
                "spec": {"online": false, "consumerRef": {"kind": "Machine", "name": "m", "uid": "1"}},
            })
        );
        assert_eq!(record_template(template.clone()), template);
        assert_eq!(
            installed_host(template)["spec"],
            json!({
                "online": true,
                "externallyProvisioned": true,
                "consumerRef": {"kind": "Machine", "name": "m"},
            })
        );
        assert_eq!(record_template(json!([1])), json!([1]));
    }

    proptest::proptest! {
        #[test]
        fn it_is_idempotent(names in proptest::collection::vec("[a-z]{1,4}|uid|status|metadata", 0..6)) {
            let members = names.iter().map(|name| (name.clone(), json!({"uid": 1, "status": 2})));
            let record = Value::Object(members.collect());
            let once = record_template(record);
            proptest::prop_assert_eq!(record_template(once.clone()), once);
        }
    }
}
