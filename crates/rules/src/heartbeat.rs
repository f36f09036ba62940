//! Heartbeats: the last poll of a host, and the offset of its clock.
//!
//! The record holds the host's clock as a time (`timestamp`), as of `checked_in_at`: both are written together, so
//! that only a poll changes their difference.

use model::host::Host;
use model::time::Timestamp;

/// The host's clock minus ours; none before its first timestamp. Units: seconds.
pub fn clock_offset_s(record: &Host) -> Option<i64> {
    let seen = record.checked_in_at.0?;
    (record.timestamp > 0).then(|| record.timestamp.saturating_sub(seen.timestamp()))
}

/// Records a heartbeat; a newly measured clock offset replaces the known one.
pub fn receive(record: &mut Host, at: Timestamp, measured_offset_s: Option<i64>) {
    let offset_s = measured_offset_s.or_else(|| clock_offset_s(record));
    record.checked_in_at = at.into();
    record.timestamp = offset_s.map_or(0, |offset_s| at.timestamp().saturating_add(offset_s));
}

/// As [`receive`], unless a heartbeat of that time or later is known.
pub fn receive_if_newer(record: &mut Host, at: Timestamp, measured_offset_s: Option<i64>) {
    if record.checked_in_at.0 < Some(at) {
        receive(record, at, measured_offset_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        chrono::DateTime::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn a_heartbeat_without_timestamp_keeps_the_clock_offset() {
        let mut record = Host::default();
        receive(&mut record, at(1000), None);
        assert_eq!((record.timestamp, clock_offset_s(&record)), (0, None));
        receive(&mut record, at(1010), Some(-30));
        assert_eq!(
            (record.timestamp, clock_offset_s(&record)),
            (980, Some(-30))
        );
        // A step of two hours, and its reply.
        receive(&mut record, at(8210), None);
        assert_eq!(
            (record.timestamp, clock_offset_s(&record)),
            (8180, Some(-30))
        );
    }

    #[test]
    fn an_older_heartbeat_changes_nothing() {
        let mut record = Host::default();
        receive_if_newer(&mut record, at(1000), Some(5));
        let known = record.clone();
        for time in [999, 1000] {
            receive_if_newer(&mut record, at(time), Some(-7));
            assert_eq!(record, known);
        }
        receive_if_newer(&mut record, at(1001), None);
        assert_eq!(
            (record.checked_in_at.0, record.timestamp),
            (Some(at(1001)), 1006)
        );
    }
}
