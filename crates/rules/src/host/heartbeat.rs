//! Heartbeats: the last poll of a host, and the offset of its clock.
//!
//! The record holds the host's clock as a time (`timestamp`), as of `checked_in_at`: both are written together, so
//! that only a poll changes their difference.

use chrono::TimeDelta;
use model::host::Host;
use model::time::Timestamp;

/// Longest difference between the clocks of replicas.
pub const CLOCK_SKEW: TimeDelta = TimeDelta::minutes(1);

/// Whether a heartbeat is of the time before the clock was set back: nothing is known of the host since.
pub fn is_ahead(at: Timestamp, now: Timestamp) -> bool {
    at.signed_duration_since(now) > CLOCK_SKEW
}

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

/// Whether a heartbeat is newer than the known one. One that is ahead of the clock is older than any other.
pub fn is_newer(record: &Host, at: Timestamp, now: Timestamp) -> bool {
    let Some(known) = record.checked_in_at.0 else {
        return true;
    };
    match (is_ahead(known, now), is_ahead(at, now)) {
        (true, false) => true,
        (false, true) => false,
        _ => known < at,
    }
}

/// As [`receive`], unless a heartbeat of that time or later is known.
pub fn receive_if_newer(
    record: &mut Host,
    at: Timestamp,
    measured_offset_s: Option<i64>,
    now: Timestamp,
) {
    if is_newer(record, at, now) {
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
        receive_if_newer(&mut record, at(1000), Some(5), at(1000));
        let known = record.clone();
        for time in [999, 1000] {
            receive_if_newer(&mut record, at(time), Some(-7), at(1000));
            assert_eq!(record, known);
        }
        receive_if_newer(&mut record, at(1001), None, at(1001));
        assert_eq!(
            (record.checked_in_at.0, record.timestamp),
            (Some(at(1001)), 1006)
        );
    }
    #[test]
    fn a_heartbeat_ahead_of_the_clock_is_replaced() {
        let mut record = Host::default();
        receive(&mut record, at(7200), Some(5));
        // The clock was set back by an hour.
        receive_if_newer(&mut record, at(3600), Some(3605), at(3600));
        assert_eq!(record.checked_in_at.0, Some(at(3600)));
        assert_eq!(clock_offset_s(&record), Some(3605));
        receive_if_newer(&mut record, at(7200), None, at(3601));
        assert_eq!(record.checked_in_at.0, Some(at(3600)), "of before the step");
        // A replica whose clock is a little ahead.
        receive_if_newer(&mut record, at(3650), None, at(3601));
        assert_eq!(record.checked_in_at.0, Some(at(3650)));
    }
}
