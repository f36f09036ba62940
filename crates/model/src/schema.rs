//! Schemas of records, traced from their own deserialisation: members, types, closed sets, and required members.
//!
//! The trace deserialises a record from nothing: each type requests the kind of value it expects, and a text that does
//! not accept the placeholder names its closed set or format in its error. Not for records with flattened members.

mod probe;

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use probe::{Formats, Given, Probe, Records, TextFormat, Tracer};

/// Corrections of placeholders in one trace: more than any record has texts.
const ATTEMPTS: usize = 1000;

/// Schemas of records by their names, in the form of OpenAPI.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordSchemas(pub BTreeMap<&'static str, Value>);

impl RecordSchemas {
    /// Adds the record `T` and those within it; returns a reference to it, or the schema of a type without members.
    pub fn add<T: DeserializeOwned>(&mut self) -> Value {
        let Trace {
            schema,
            records,
            formats,
        } = trace::<T>();
        for (name, record) in records {
            self.0.entry(name).or_insert(record);
        }
        let required = required::<T>(&formats);
        let name = schema["$ref"]
            .as_str()
            .and_then(|path| path.rsplit('/').next());
        let record = name.and_then(|name| self.0.get_mut(name));
        if let (Some(record), false) = (record, required.is_empty()) {
            record["required"] = json!(required);
        }
        schema
    }
}

/// Result of tracing one type.
struct Trace {
    schema: Value,
    records: Records,
    formats: Formats,
}

fn trace<T: DeserializeOwned>() -> Trace {
    let mut formats = Formats::new();
    for _ in 0..ATTEMPTS {
        let tracer = Tracer::new(&formats);
        let mut schema = Value::Null;
        let Err(error) = T::deserialize(Probe::new(&tracer, Given::All, &mut schema)) else {
            let records = tracer.into_records();
            return Trace {
                schema,
                records,
                formats,
            };
        };
        let path = tracer.last_text();
        if formats.contains_key(&path) {
            break;
        }
        formats.insert(path, TextFormat::of(&error));
    }
    Trace {
        schema: json!({}),
        records: Records::new(),
        formats,
    }
}

/// Members of `T` without which it does not deserialise.
fn required<T: DeserializeOwned>(formats: &Formats) -> Vec<String> {
    let mut given = BTreeSet::new();
    loop {
        let tracer = Tracer::new(formats);
        let mut schema = Value::Null;
        let probe = Probe::new(&tracer, Given::Only(&given), &mut schema);
        let missing = T::deserialize(probe)
            .err()
            .and_then(|error| error.missing());
        match missing {
            Some(member) if given.insert(member.clone()) => {}
            _ => return given.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, ClusterCreateParams};
    use crate::host::HostCreateParams;

    #[test]
    fn members_have_their_types() {
        let mut schemas = RecordSchemas::default();
        let reference = schemas.add::<Cluster>();
        assert_eq!(reference, json!({ "$ref": "#/components/schemas/Cluster" }));
        let members = &schemas.0["Cluster"]["properties"];
        assert_eq!(members["id"], json!({ "type": "string", "format": "uuid" }));
        assert_eq!(members["name"], json!({ "type": "string" }));
        assert_eq!(members["total_host_count"], json!({ "type": "integer" }));
        assert_eq!(members["pull_secret_set"], json!({ "type": "boolean" }));
        assert_eq!(members["created_at"]["format"], "date-time");
        assert_eq!(members["status"]["enum"][0], "insufficient");
        let hosts = json!({ "type": "array", "items": { "$ref": "#/components/schemas/Host" } });
        assert_eq!(members["hosts"], hosts);
        let stages = &schemas.0["HostProgressInfo"]["properties"]["current_stage"]["enum"];
        assert_eq!(stages[0], "Starting installation");
        assert!(schemas.0["Cluster"].get("required").is_none());
    }

    #[test]
    fn required_members_are_named() {
        let mut schemas = RecordSchemas::default();
        schemas.add::<ClusterCreateParams>();
        let required = &schemas.0["ClusterCreateParams"]["required"];
        assert_eq!(
            *required,
            json!(["name", "openshift_version", "pull_secret"])
        );
        schemas.add::<HostCreateParams>();
        assert_eq!(
            schemas.0["HostCreateParams"]["required"],
            json!(["host_id"])
        );
    }

    #[test]
    fn plain_types_have_no_record() {
        let mut schemas = RecordSchemas::default();
        assert_eq!(schemas.add::<String>(), json!({ "type": "string" }));
        let map = schemas.add::<BTreeMap<String, i64>>();
        assert_eq!(map["additionalProperties"], json!({ "type": "integer" }));
        assert!(schemas.0.is_empty());
    }
}
