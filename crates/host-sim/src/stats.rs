//! Statistics of the requests of simulated machines.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::Error;

/// Recorded durations of each kind of request; later ones are not recorded.
const MAX_DURATIONS: usize = 1 << 20;

/// Durations and failures of the requests of all machines.
#[derive(Debug, Default)]
pub struct Stats {
    requests: Mutex<BTreeMap<&'static str, Vec<u32>>>,
    failures: Mutex<BTreeMap<String, u64>>,
}

impl Stats {
    pub(crate) fn answered(&self, kind: &'static str, took: Duration) {
        let micros = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let durations = requests.entry(kind).or_default();
        if durations.len() < MAX_DURATIONS {
            durations.push(micros);
        }
    }

    pub(crate) fn failed(&self, failure: &Error) {
        let name = failure
            .status()
            .map_or_else(|| "no answer".to_owned(), |status| status.to_string());
        *self
            .failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(name)
            .or_default() += 1;
    }

    /// Answered requests of a kind since the last [`Stats::take_durations`].
    pub fn count(&self, kind: &str) -> usize {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.get(kind).map_or(0, Vec::len)
    }

    /// Durations in microseconds, sorted, by kind of request. Counting begins anew.
    pub fn take_durations(&self) -> BTreeMap<&'static str, Vec<u32>> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let mut durations = std::mem::take(&mut *requests);
        drop(requests);
        for list in durations.values_mut() {
            list.sort_unstable();
        }
        durations
    }

    /// Failed requests by status, or "no answer".
    pub fn failures(&self) -> BTreeMap<String, u64> {
        self.failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
