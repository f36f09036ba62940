//! State of an upstream at one moment, for operators.

use std::net::SocketAddr;
use std::time::Instant;

use serde::Serialize;

use super::forwarding::Forward;
use super::replica::{Replica, ReplicaHealth};
use crate::clock::{self, Timestamp};

/// State of an upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UpstreamStatus {
    /// Its origin.
    pub origin: String,
    /// Reason why no replica is ready; absent when one is.
    pub unready: Option<String>,
    /// One for each address of its name.
    pub replicas: Vec<ReplicaStatus>,
}

/// State of a replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplicaStatus {
    /// Address and port.
    pub address: SocketAddr,
    /// Whether its health check passes.
    pub is_ready: bool,
    /// Result of its last health check.
    pub health: String,
    /// Requests and tunnels in flight.
    pub requests_in_flight: usize,
    /// Failed requests since it was added: no connection, no response, or a gateway error (502, 503, 504).
    pub failures: u64,
    /// End of its ejection; absent while it is not ejected.
    pub ejected_until: Option<Timestamp>,
}

impl Forward {
    /// Its state now.
    pub fn status(&self) -> UpstreamStatus {
        UpstreamStatus {
            origin: self.upstream().to_string(),
            unready: self.unready().borrow().clone(),
            replicas: self.balance.replicas().iter().map(status).collect(),
        }
    }
}

fn status(replica: &std::sync::Arc<Replica>) -> ReplicaStatus {
    let health = replica.health();
    ReplicaStatus {
        address: replica.address,
        is_ready: health == ReplicaHealth::Ready,
        health: match health {
            ReplicaHealth::Ready => "ready".to_owned(),
            ReplicaHealth::NotReady(code) => format!("answers {code}"),
            ReplicaHealth::Unresponsive => "does not answer".to_owned(),
            ReplicaHealth::Unknown => "not checked yet".to_owned(),
            ReplicaHealth::Unreachable => "cannot be reached".to_owned(),
        },
        requests_in_flight: replica.requests_in_flight(),
        failures: replica.failures(),
        ejected_until: replica
            .ejected_until()
            .map(|until| clock::now() + until.saturating_duration_since(Instant::now())),
    }
}
