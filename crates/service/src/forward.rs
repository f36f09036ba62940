//! HTTP load balancing over all replicas of a name, by round robin.
//!
//! Requests and responses are streamed; only hop-by-hop headers change, and protocol upgrades pass. There is no routing
//! by path or host, and no cache. The invariant: a request is retried only when it is idempotent, or when by all signs
//! the first replica has not read it.
//!
//! Types are named as in tower: `Balance`, `Discover`, `Retry`, its budget. Tower's own do not fit: its balance picks the
//! less loaded of two random services, this one goes round those of the best health that the request has not tried.
//! Outlier ejection is that of Envoy.

mod balance;
mod concurrency;
mod connection;
mod discover;
mod forward_request;
mod forwarding;
mod handler;
mod headers;
mod health_check;
mod lease;
mod metrics;
mod outlier;
mod pool;
mod replay_body;
mod replica;
mod retry;
mod settings;
mod socket;
mod status;
mod turns;
mod upstream;

pub use concurrency::limits;
pub use forward_request::GatewayError;
pub use forwarding::Forward;
pub use handler::{forward, report_readiness};
pub use settings::ForwardSettings;
pub use status::{ReplicaStatus, UpstreamStatus};
pub use upstream::{OriginError, Upstream};
