//! What the proxy says of itself, and what it leaves to the services behind.
