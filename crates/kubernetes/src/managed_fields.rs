//! The writers of a record, as the API server notes them, with its own clock.

use kube::core::DynamicObject;
use model::time::Timestamp;

/// A write of a record's status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatusWrite {
    /// The program, by the name that it gives itself.
    pub(super) manager: String,
    pub(super) at: Timestamp,
}

/// The last write of a record.
pub(super) fn last_write(record: &DynamicObject) -> Option<Timestamp> {
    let entries = record.metadata.managed_fields.iter().flatten();
    let times = entries.filter_map(|entry| entry.time.as_ref());
    times.filter_map(|at| at.0.to_string().parse().ok()).max()
}

/// The writes of its status: the last one of each program.
pub(super) fn status_writes(record: &DynamicObject) -> Vec<StatusWrite> {
    let entries = record.metadata.managed_fields.iter().flatten();
    let of_status = entries.filter(|entry| entry.subresource.as_deref() == Some("status"));
    let write = of_status.filter_map(|entry| {
        Some(StatusWrite {
            manager: entry.manager.clone()?,
            at: entry.time.as_ref()?.0.to_string().parse().ok()?,
        })
    });
    write.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn writers_of_the_status_are_read() {
        let record: DynamicObject = serde_json::from_value(json!({ "metadata": {
            "name": "host-1",
            "managedFields": [
                { "manager": "kubectl", "operation": "Update", "time": "2026-01-02T03:04:09Z" },
                { "manager": "operator", "operation": "Update", "time": "2026-01-02T03:04:05Z", "subresource": "status" },
                { "operation": "Update", "subresource": "status" },
            ],
        } }))
        .unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert_eq!(last_write(&record), Some(at("2026-01-02T03:04:09Z")));
        let expected = StatusWrite {
            manager: "operator".to_owned(),
            at: at("2026-01-02T03:04:05Z"),
        };
        assert_eq!(status_writes(&record), [expected]);
        let unwritten: DynamicObject = serde_json::from_value(json!({ "metadata": {} })).unwrap();
        assert_eq!(last_write(&unwritten), None);
    }
}
