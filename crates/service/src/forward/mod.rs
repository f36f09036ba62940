//! HTTP forwarding that is balanced over all replicas of a name: what is in front of a scaled service.
//!
//! A request passes as it came beyond the headers of one connection, both ways streamed, protocol upgrades
//! included. Nothing here chooses by path or host, and nothing is cached. The invariant: a request is sent a
//! second time only when the first replica cannot have acted on it, or when acting twice changes nothing.

mod answer;
mod body;
mod check;
mod headers;
mod inner;
mod lookup;
mod metrics;
mod pool;
mod replica;
mod send;
mod socket;
mod upstream;

pub use inner::{Forward, Status};
pub use lookup::{Found, Lookup};
pub use upstream::{NotAnOrigin, Upstream};
