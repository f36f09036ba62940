//! Times of polls, gathered until a batch is written.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::host::Host;
use model::ids::{HostId, InfraEnvId};
use model::time::Timestamp;

use crate::db::CheckIn;

/// The last poll of each host since the last flush. Bounded by the number of hosts.
#[derive(Debug, Default)]
pub(crate) struct CheckIns(Mutex<Gathered>);

type ByHost = HashMap<(InfraEnvId, HostId), CheckIn>;

#[derive(Debug, Default)]
struct Gathered {
    pending: ByHost,
    /// Taken, and perhaps not written yet: still the newest word on a host without a pending one.
    taken: ByHost,
}

impl CheckIns {
    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A host was heard of; `clock_offset_s` when it told its time.
    pub(crate) fn note(
        &self,
        infra_env: InfraEnvId,
        host: HostId,
        now: Timestamp,
        clock_offset_s: Option<i64>,
    ) {
        let mut gathered = self.gathered();
        let known = gathered
            .pending
            .get(&(infra_env, host))
            .and_then(|check_in| check_in.clock_offset_s);
        let check_in = CheckIn {
            infra_env_id: infra_env,
            host_id: host,
            checked_in_at: now,
            clock_offset_s: clock_offset_s.or(known),
        };
        gathered.pending.insert((infra_env, host), check_in);
    }

    /// Takes everything that is not written yet; [`CheckIns::written`] or [`CheckIns::put_back`] follows.
    pub(crate) fn take(&self) -> Vec<CheckIn> {
        let mut gathered = self.gathered();
        gathered.taken = std::mem::take(&mut gathered.pending);
        gathered.taken.values().copied().collect()
    }

    /// What was taken is written.
    pub(crate) fn written(&self) {
        self.gathered().taken.clear();
    }

    /// What was taken could not be written: it is taken again, except where a newer one came meanwhile.
    pub(crate) fn put_back(&self) {
        let mut gathered = self.gathered();
        let taken = std::mem::take(&mut gathered.taken);
        for (host, check_in) in taken {
            let newer = gathered.pending.entry(host).or_insert(check_in);
            newer.clock_offset_s = newer.clock_offset_s.or(check_in.clock_offset_s);
        }
    }

    /// Brings a record up to what is known here.
    pub(crate) fn apply(&self, host: &mut Host) {
        for check_in in self.known(host.infra_env_id, host.id) {
            apply(&check_in, host);
        }
    }

    /// What is known here of a host, the older one first.
    pub(crate) fn known(
        &self,
        infra_env: InfraEnvId,
        host: HostId,
    ) -> impl Iterator<Item = CheckIn> + use<> {
        let gathered = self.gathered();
        let of = |known: &ByHost| known.get(&(infra_env, host)).copied();
        let known = [of(&gathered.taken), of(&gathered.pending)];
        known.into_iter().flatten()
    }
}

/// Brings a record up to a check-in, if that is newer.
pub(crate) fn apply(check_in: &CheckIn, host: &mut Host) {
    rules::presence::heard_if_newer(host, check_in.checked_in_at, check_in.clock_offset_s);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        chrono::DateTime::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn polls_of_one_host_become_one() {
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
    fn what_is_being_written_is_seen() {
        let check_ins = CheckIns::default();
        let mut record = Host::default();
        check_ins.note(record.infra_env_id, record.id, at(1), Some(5));
        check_ins.take();
        check_ins.apply(&mut record);
        assert_eq!((record.checked_in_at.0, record.timestamp), (Some(at(1)), 6));
        check_ins.written();
        assert!(check_ins.take().is_empty());
    }

    #[test]
    fn what_is_put_back_does_not_hide_what_is_newer() {
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
