//! A catalog as one file that is mapped into memory: replies lie in it as they are sent.

mod open;

pub use open::Cache;
