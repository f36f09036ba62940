//! Heartbeats of hosts, buffered until a batch is flushed.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::host::Host;
use model::ids::{HostId, InfraEnvId};
use model::time::Timestamp;

use crate::db::CheckIn;

/// The last heartbeat of each host since the last flush. Bounded by the number of hosts.
#[derive(Debug, Default)]
pub(crate) struct CheckIns(Mutex<CheckInBuffer>);

type ByHost = HashMap<(InfraEnvId, HostId), CheckIn>;

#[derive(Debug, Default)]
struct CheckInBuffer {
    pending: ByHost,
    /// The last batch, which is being flushed or has been. It is kept until the next one: a request may have read the
    /// record before the flush, and apply heartbeats after it.
    last_taken: ByHost,
}

impl CheckIns {
    fn buffer(&self) -> MutexGuard<'_, CheckInBuffer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a heartbeat; `clock_offset_s` if the poll carries the host's time.
    pub(crate) fn note(
        &self,
        infra_env: InfraEnvId,
        host: HostId,
        now: Timestamp,
        clock_offset_s: Option<i64>,
    ) {
        let mut buffer = self.buffer();
        let known = buffer
            .pending
            .get(&(infra_env, host))
            .and_then(|check_in| check_in.clock_offset_s);
        let check_in = CheckIn {
            infra_env_id: infra_env,
            host_id: host,
            checked_in_at: now,
            clock_offset_s: clock_offset_s.or(known),
        };
        buffer.pending.insert((infra_env, host), check_in);
    }

    /// Takes the pending batch; [`CheckIns::put_back`] follows a failed flush.
    pub(crate) fn take(&self) -> Vec<CheckIn> {
        let mut buffer = self.buffer();
        buffer.last_taken = std::mem::take(&mut buffer.pending);
        buffer.last_taken.values().copied().collect()
    }

    /// Makes the last batch pending again after a failed flush; newer heartbeats win.
    pub(crate) fn put_back(&self) {
        let mut buffer = self.buffer();
        let failed = std::mem::take(&mut buffer.last_taken);
        for (host, check_in) in failed {
            let newer = buffer.pending.entry(host).or_insert(check_in);
            newer.clock_offset_s = newer.clock_offset_s.or(check_in.clock_offset_s);
        }
    }

    /// Applies the buffered heartbeats to a record.
    pub(crate) fn apply(&self, host: &mut Host) {
        let now = service::clock::now();
        for check_in in self.known(host.infra_env_id, host.id) {
            apply(&check_in, host, now);
        }
    }

    /// Buffered heartbeats of a host, the older one first.
    pub(crate) fn known(
        &self,
        infra_env: InfraEnvId,
        host: HostId,
    ) -> impl Iterator<Item = CheckIn> + use<> {
        let buffer = self.buffer();
        let of = |known: &ByHost| known.get(&(infra_env, host)).copied();
        let known = [of(&buffer.last_taken), of(&buffer.pending)];
        known.into_iter().flatten()
    }
}

/// Applies a heartbeat to a record, if it is newer.
pub(crate) fn apply(check_in: &CheckIn, host: &mut Host, now: Timestamp) {
    rules::host::heartbeat::receive_if_newer(
        host,
        check_in.checked_in_at,
        check_in.clock_offset_s,
        now,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        chrono::DateTime::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn heartbeats_of_one_host_are_merged() {
        let check_ins = CheckIns::default();
        let (infra_env, host) = (InfraEnvId::default(), HostId::default());
        check_ins.note(infra_env, host, at(1), Some(-7));
        check_ins.note(infra_env, host, at(2), None);
        let batch = check_ins.take();
        assert_eq!(batch.len(), 1);
        assert_eq!(
            (batch[0].checked_in_at, batch[0].clock_offset_s),
            (at(2), Some(-7))
        );
        assert!(check_ins.take().is_empty());
    }

    #[test]
    fn a_batch_is_applied_until_the_next_one() {
        let check_ins = CheckIns::default();
        let mut record = Host::default();
        check_ins.note(record.infra_env_id, record.id, at(1), Some(5));
        check_ins.take();
        check_ins.apply(&mut record);
        assert_eq!((record.checked_in_at.0, record.timestamp), (Some(at(1)), 6));
        assert!(check_ins.take().is_empty(), "each is taken once");
        let mut record = Host::default();
        check_ins.apply(&mut record);
        assert_eq!(record.checked_in_at.0, None);
    }

    #[test]
    fn restored_heartbeats_do_not_replace_newer_ones() {
        let check_ins = CheckIns::default();
        let (infra_env, host) = (InfraEnvId::default(), HostId::default());
        check_ins.note(infra_env, host, at(1), None);
        check_ins.take();
        check_ins.note(infra_env, host, at(2), None);
        check_ins.put_back();
        let mut record = Host::default();
        check_ins.apply(&mut record);
        assert_eq!(record.checked_in_at.0, Some(at(2)));
    }
}
