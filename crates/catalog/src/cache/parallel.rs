//! Ordered parallel map with bounded read-ahead.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::thread;

/// Results per thread that are in progress or pending: one may take as long as several others.
const AHEAD: usize = 2;

/// Back-pressure: limit of the indices that may be computed.
#[derive(Default)]
struct ReadAhead {
    /// First index that may not be computed yet.
    limit: Mutex<usize>,
    moved: Condvar,
}

impl ReadAhead {
    /// Blocks until `index` may be computed.
    fn wait(&self, index: usize) {
        let limit = self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.moved.wait_while(limit, |limit| index >= *limit);
        drop(waited);
    }

    fn allow(&self, limit: usize) {
        *self.limit.lock().unwrap_or_else(PoisonError::into_inner) = limit;
        self.moved.notify_all();
    }
}

/// Releases the other threads when one panics, whose result they would wait for forever.
struct Alarm<'a>(&'a ReadAhead);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.allow(usize::MAX);
        }
    }
}

/// Calls `make` for each index below `count` in `workers` threads, and `take` with the results in index order. At most
/// [`AHEAD`] results per thread are in memory.
///
/// Errors: the first error of `take`, which stops the work.
pub(super) fn in_order<T: Send, E>(
    count: usize,
    workers: NonZeroUsize,
    make: impl Fn(usize) -> T + Sync,
    mut take: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let ahead = AHEAD * workers.get();
    let (next, progress) = (AtomicUsize::new(0), ReadAhead::default());
    progress.allow(ahead);
    let (done, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..workers.get() {
            let (next, progress, make, done) = (&next, &progress, &make, done.clone());
            scope.spawn(move || {
                let _alarm = Alarm(progress);
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    progress.wait(index);
                    if index >= count || done.send((index, make(index))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(done);
        let (mut waiting, mut taken) = (BTreeMap::new(), 0);
        let mut first = Ok(());
        for (index, result) in results {
            waiting.insert(index, result);
            while first.is_ok()
                && let Some(result) = waiting.remove(&taken)
            {
                first = take(result);
                taken += 1;
                progress.allow(taken + ahead);
            }
            if first.is_err() {
                break;
            }
        }
        next.store(count, Ordering::Relaxed);
        progress.allow(usize::MAX);
        first
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: NonZeroUsize = NonZeroUsize::new(3).unwrap();

    #[test]
    fn results_come_in_order() {
        let mut taken = Vec::new();
        let make = |index: usize| {
            if index.is_multiple_of(7) {
                thread::yield_now();
            }
            index * 2
        };
        let done: Result<(), ()> = in_order(500, THREE, make, |result| {
            taken.push(result);
            Ok(())
        });
        done.unwrap();
        assert!(taken.into_iter().eq((0..500).map(|index| index * 2)));
    }

    #[test]
    fn read_ahead_is_bounded() {
        let (made, mut taken) = (AtomicUsize::new(0), 0);
        let make = |_| made.fetch_add(1, Ordering::SeqCst);
        let done: Result<(), ()> = in_order(500, THREE, make, |_| {
            assert!(made.load(Ordering::SeqCst) <= taken + AHEAD * 3);
            taken += 1;
            Ok(())
        });
        done.unwrap();
    }

    #[test]
    fn the_first_error_stops_the_workers() {
        let made = AtomicUsize::new(0);
        let make = |index| {
            made.fetch_add(1, Ordering::SeqCst);
            index
        };
        let done = in_order(10_000, THREE, make, |index| {
            if index < 5 { Ok(()) } else { Err(index) }
        });
        assert_eq!(done, Err(5));
        assert!(made.load(Ordering::SeqCst) < 100);
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_stops_the_workers() {
        let make = |index: usize| assert_ne!(index, 5);
        in_order(500, THREE, make, |()| Ok::<_, ()>(())).ok();
    }

    #[test]
    fn zero_items_succeed() {
        let done: Result<(), ()> = in_order(0, THREE, |_| (), |()| Err(()));
        assert_eq!(done, Ok(()));
    }
}
