//! Timestamps of files and index rows.

use std::time::SystemTime;

/// Units: nanoseconds since 1970.
pub(in crate::disk) fn now() -> u64 {
    nanos(SystemTime::now())
}

/// Units: nanoseconds since 1970.
pub(in crate::disk) fn nanos(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| {
            u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
        })
}
