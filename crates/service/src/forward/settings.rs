//! Settings of servers that forward: how many requests are in flight, and how long they wait for a replica.

use std::time::Duration;

crate::settings! {
    /// Bounds of forwarded requests.
    pub struct ForwardSettings {
        /// Concurrent requests and tunnels per upstream, over all clients; one more gets 503. 0: no limit.
        max_forwarded_requests: usize = "4000",
        /// How long a replica may take to accept a connection; beyond it, another one gets the request. A live one accepts within a round trip; the default allows for one lost packet.
        forward_connect_timeout: Duration = "2s",
        /// How long a replica may take to begin its answer; beyond it: 504.
        forward_response_timeout: Duration = "10h",
    }
}
