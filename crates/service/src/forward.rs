//! HTTP load balancing over all replicas of a name, by round robin.
//!
//! Requests and responses are streamed; only hop-by-hop headers change, and protocol upgrades pass. There is no routing
//! by path or host, and no cache. The invariant: a request is retried only when it is idempotent, or when by all signs
//! the first replica has not read it.

mod balance;
mod concurrency;
mod discover;
mod forward_request;
mod handler;
mod headers;
mod health_check;
mod metrics;
mod pool;
mod replay_body;
mod replica;
mod retry;
mod socket;
mod upstream;

pub use balance::Forward;
pub use concurrency::limits;
pub use handler::{forward, report_readiness};
pub use upstream::{OriginError, Upstream};
