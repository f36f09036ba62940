//! The only reader of the system clock.

pub use model::time::Timestamp;

/// Now, cut to microseconds as in the database, so that a record read back equals the one written.
#[expect(clippy::disallowed_methods, reason = "this is the place")]
pub fn now() -> Timestamp {
    let now = chrono::Utc::now();
    let micros = now.timestamp_micros();
    chrono::DateTime::from_timestamp_micros(micros).unwrap_or(now)
}
