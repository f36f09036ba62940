//! Content of the testkit against the crates that it is made for.

mod prepare;
mod registry;
