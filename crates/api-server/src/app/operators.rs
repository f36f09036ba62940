//! Use cases of monitored operators.

use std::sync::Arc;

use model::Error;
use model::events::EventSeverity;
use model::ids::ClusterId;
use model::operators::{MonitoredOperator, OperatorMonitorReport};
use rules::NewEvent;

use super::{ClusterStore, ClusterTransaction, Scope};

/// Bound of version and status_info of a report, which are stored in the cluster. Units: bytes.
pub(crate) const REPORT_BYTES: usize = rules::bounds::TEXT_BYTES;

/// The monitored operators of a cluster: all or the one of that name.
///
/// Errors: NotFound – cluster or operator.
pub(crate) async fn operators(
    clusters: &ClusterStore,
    id: ClusterId,
    name: Option<&str>,
) -> Result<Vec<MonitoredOperator>, Error> {
    let stored = clusters.stored(id).await?;
    let all = stored.snapshot.cluster.monitored_operators.clone();
    let Some(name) = name else {
        return Ok(all);
    };
    let found: Vec<_> = all
        .into_iter()
        .filter(|operator| operator.name == name)
        .collect();
    if found.is_empty() {
        Err(Error::not_found("operator", name))
    } else {
        Ok(found)
    }
}

/// Stores the controller's report about an operator. Each report sets its time and is an event, also one without
/// a change; members that it leaves out stay.
///
/// Source: assisted-service, internal/operators/handler/handler.go, UpdateMonitoredOperatorStatus.
pub(crate) async fn report_operator(
    clusters: &Arc<ClusterStore>,
    id: ClusterId,
    report: &OperatorMonitorReport,
) -> Result<(), Error> {
    if report.name.is_empty() {
        return Err(Error::invalid("name", "is empty: name the operator"));
    }
    for (what, text) in [
        ("version", &report.version),
        ("status_info", &report.status_info),
    ] {
        if text.len() > REPORT_BYTES {
            return Err(Error::TooLarge {
                what,
                limit: REPORT_BYTES as u64,
            });
        }
    }
    let decide = |change: &mut ClusterTransaction| {
        let now = change.now;
        let operators = &mut change.snapshot.cluster.monitored_operators;
        let Some(operator) = operators
            .iter_mut()
            .find(|operator| operator.name == report.name)
        else {
            return Err(Error::not_found("operator", &report.name));
        };
        if let Some(status) = report.status {
            operator.status = Some(status);
        }
        if !report.version.is_empty() {
            operator.version.clone_from(&report.version);
        }
        if !report.status_info.is_empty() {
            operator.status_info.clone_from(&report.status_info);
        }
        operator.status_updated_at = now.into();
        let status = report.status.map_or("", |status| status.as_str());
        let text = format!(
            "Operator {} status: {status} message: {}",
            report.name, report.status_info
        );
        let event = NewEvent::new("cluster_operator_status", EventSeverity::Info, text)
            .cluster(id)
            .prop("operator_name", &report.name)
            .prop("status", status)
            .prop("status_info", &report.status_info);
        change.events.push(event);
        change.refresh();
        Ok(())
    };
    clusters
        .change("report operator", Scope::Cluster(id), decide)
        .await
        .map(drop)
}
