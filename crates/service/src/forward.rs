//! HTTP forwarding that is balanced over all replicas of a name: what is in front of a scaled service.
//!
//! A request passes as it came beyond the headers of one connection, both ways streamed, protocol upgrades
//! included. Nothing here chooses by path or host, and nothing is cached. The invariant: a request is sent a
//! second time only when acting twice changes nothing, or when by all signs the first replica has not read it.

mod answer;
mod body;
mod check;
mod headers;
mod inner;
mod metrics;
mod pool;
mod replica;
mod send;
mod serve;
mod slots;
mod socket;
mod upstream;

pub use inner::Forward;
pub use serve::{keep, pass};
pub use slots::limits;
pub use upstream::{NotAnOrigin, Upstream};
