//! The progress of a replacement, published in the cluster that it repairs: every reader of the cluster sees it.
//!
//! It is for people alone. A replacement continues by its journal.

use kube::api::{Patch, PatchParams};
use kube::core::DynamicObject;
use model::Error;
use model::node_replacement::{NodeReplacement, RepairRun, ReplacementReport};
use serde_json::{Value, json};

use super::connect::{KubernetesCluster, refused};
use super::lease::REPAIR_LEASE;
use super::listed::member;
use super::resources::{LEASES, PROGRESS};

/// Name of the ConfigMap.
const NAME: &str = "atoll-node-replacement";
/// Its member with the report, as JSON.
const REPORT: &str = "/data/report";
/// Owner of the members that are written.
const FIELD_MANAGER: &str = "atoll-node-replace";
/// Largest report that is read: another program may have written it. Units: bytes.
pub const MAX_REPORT_BYTES: usize = 64 << 10;

impl KubernetesCluster {
    /// Publishes the progress of a replacement in place of that of the last one.
    ///
    /// Errors: those of the cluster.
    pub async fn publish_replacement(&self, report: &ReplacementReport) -> Result<(), Error> {
        let record = record(report)?;
        let (api, params) = (
            self.api(&PROGRESS),
            PatchParams::apply(FIELD_MANAGER).force(),
        );
        match api.patch(NAME, &params, &Patch::Apply(&record)).await {
            Ok(_) => Ok(()),
            Err(error) => Err(refused(&PROGRESS, error)),
        }
    }

    /// The repair under way, and the last replacement that published its progress.
    ///
    /// Errors: Conflict – the published progress cannot be read; those of the cluster.
    pub async fn published_replacement(&self) -> Result<NodeReplacement, Error> {
        let (lease, published) = tokio::try_join!(
            self.find(&LEASES, REPAIR_LEASE.name),
            self.find(&PROGRESS, NAME),
        )?;
        Ok(NodeReplacement {
            run: lease.as_ref().and_then(run),
            last: published.as_ref().map(report).transpose()?,
        })
    }
}

fn record(report: &ReplacementReport) -> Result<Value, Error> {
    let report = serde_json::to_string(report);
    let report = report.map_err(|error| Error::internal("writing the progress", error))?;
    Ok(json!({
        "apiVersion": PROGRESS.api_version(),
        "kind": PROGRESS.kind,
        "metadata": { "name": NAME },
        "data": { "report": report },
    }))
}

fn run(lease: &DynamicObject) -> Option<RepairRun> {
    let holder: String = member(lease, "/spec/holderIdentity");
    (!holder.is_empty()).then(|| RepairRun {
        holder,
        since: member(lease, "/spec/acquireTime"),
        seen_at: member(lease, "/spec/renewTime"),
    })
}

fn report(record: &DynamicObject) -> Result<ReplacementReport, Error> {
    let text = record.data.pointer(REPORT).and_then(Value::as_str);
    let text = text.filter(|text| text.len() <= MAX_REPORT_BYTES);
    let report = text.and_then(|text| serde_json::from_str(text).ok());
    report.ok_or_else(|| {
        let namespace = PROGRESS.namespace.unwrap_or_default();
        Error::conflict(format!(
            "ConfigMap {namespace}/{NAME} of the cluster has no progress of a replacement: delete it if no replacement \
             is under way"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(text: &str) -> Result<ReplacementReport, Error> {
        let record = json!({ "metadata": {}, "data": { "report": text } });
        report(&serde_json::from_value(record).unwrap())
    }

    #[test]
    fn a_report_is_read_as_it_was_published() {
        let written = ReplacementReport {
            id: "r-1".to_owned(),
            ..ReplacementReport::default()
        };
        let record: DynamicObject = serde_json::from_value(record(&written).unwrap()).unwrap();
        assert_eq!(report(&record).unwrap(), written);
    }

    #[test]
    fn foreign_and_huge_reports_are_refused() {
        let valid = serde_json::to_string(&ReplacementReport::default()).unwrap();
        let padded = |length: usize| format!("{valid}{}", " ".repeat(length - valid.len()));
        // limit: published progress of a replacement
        assert!(published(&padded(MAX_REPORT_BYTES)).is_ok());
        for text in [&padded(MAX_REPORT_BYTES + 1), "", "{}", "[1]"] {
            let refused = published(text).unwrap_err().to_string();
            assert!(
                refused.contains("kube-system/atoll-node-replacement"),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_lease_without_a_holder_is_no_run() {
        let of = |spec: Value| {
            run(&serde_json::from_value(json!({ "metadata": {}, "spec": spec })).unwrap())
        };
        assert_eq!(of(json!({ "holderIdentity": "" })), None);
        let run = of(json!({ "holderIdentity": "alice", "acquireTime": "a", "renewTime": "b" }));
        let run = run.unwrap();
        assert_eq!(
            (
                run.holder.as_str(),
                run.since.as_str(),
                run.seen_at.as_str()
            ),
            ("alice", "a", "b")
        );
    }
}
