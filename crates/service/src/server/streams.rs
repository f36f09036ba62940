//! Long streams, limited for each holder and in all.
//!
//! When all are taken, a holder with few takes one from the holder with the most: streams last for hours, so that without
//! this rule the first to come would keep the others out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::clients::Holder;
use super::held::HeldTable;
use super::quota::Exceeded;

/// Limits of streams; shared by its clones.
#[derive(Debug, Clone)]
pub struct StreamQuota(Arc<StreamTable>);

#[derive(Debug)]
struct StreamTable {
    max: usize,
    max_per_holder: usize,
    open: Mutex<HeldTable<Holder, CancellationToken>>,
}

/// An open stream, until it is dropped.
#[derive(Debug)]
pub struct OpenStream {
    quota: StreamQuota,
    holder: Holder,
    evicted: Arc<CancellationToken>,
}

impl StreamQuota {
    /// At most `max` streams in all and `max_per_holder` of each holder.
    pub fn new(max: usize, max_per_holder: usize) -> Self {
        Self(Arc::new(StreamTable {
            max,
            max_per_holder,
            open: Mutex::default(),
        }))
    }

    /// Opens a stream; the newest one of the holder with the most ends for it if all are taken.
    ///
    /// Errors: the limit that is reached; the total one only when no holder would still have as many as this one.
    pub fn open(&self, holder: Holder) -> Result<OpenStream, Exceeded> {
        let mut open = self.lock();
        let own = open.of(&holder).len();
        if own >= self.0.max_per_holder {
            return Err(Exceeded::Client);
        }
        if open.total() >= self.0.max && !evict(&mut open, own) {
            return Err(Exceeded::Total);
        }
        let evicted = Arc::new(CancellationToken::new());
        open.insert(holder.clone(), Arc::clone(&evicted));
        let quota = self.clone();
        Ok(OpenStream {
            quota,
            holder,
            evicted,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HeldTable<Holder, CancellationToken>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a stream for a holder that has `own` ones. Afterwards the loser has no fewer than that holder: two clients that
/// open their streams again do not end those of each other for ever.
fn evict(open: &mut HeldTable<Holder, CancellationToken>, own: usize) -> bool {
    let heaviest = open.holders().max_by_key(|(_, its)| its.len());
    let newest = heaviest
        .filter(|(_, its)| its.len() >= own + 2)
        .and_then(|(holder, its)| Some((holder.clone(), Arc::clone(its.last()?))));
    let Some((holder, stream)) = newest else {
        return false;
    };
    open.remove(&holder, &stream);
    stream.cancel();
    true
}

impl OpenStream {
    /// Completes when the stream ends for one of another holder.
    pub async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// Whether it ends for one of another holder.
    pub fn is_evicted(&self) -> bool {
        self.evicted.is_cancelled()
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.quota.lock().remove(&self.holder, &self.evicted);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn client(last: u8) -> Holder {
        IpAddr::from(Ipv4Addr::new(192, 0, 2, last)).into()
    }

    #[test]
    fn a_holder_with_few_streams_takes_one_from_the_holder_with_the_most() {
        let quota = StreamQuota::new(8, 4);
        let mut heavy: Vec<_> = [1, 1, 1, 1, 2, 2, 2]
            .map(|last| quota.open(client(last)).unwrap())
            .into();
        assert_eq!(quota.open(client(1)).unwrap_err(), Exceeded::Client);
        let first = quota.open(client(3)).unwrap();
        let second = quota.open(client(4)).unwrap();
        let evicted: Vec<_> = heavy.iter().map(OpenStream::is_evicted).collect();
        let newest = [false, false, false, true, false, false, false];
        assert_eq!(evicted, newest, "the newest of the first client");
        // Now 3, 3, 1 and 1: a second stream leaves the loser as many.
        let third = quota.open(Holder::user("alice")).unwrap();
        let fourth = quota.open(client(3)).unwrap();
        assert_eq!(heavy.iter().filter(|one| one.is_evicted()).count(), 3);
        // Now 2, 2, 2, 1 and 1: none has enough to give.
        assert_eq!(quota.open(client(4)).unwrap_err(), Exceeded::Total);
        assert_eq!(quota.open(client(1)).unwrap_err(), Exceeded::Total);
        assert!(quota.open(client(5)).is_ok());
        drop((first, second, third, fourth));
        heavy.clear();
        assert_eq!(quota.lock().total(), 0);
    }

    #[tokio::test]
    async fn an_evicted_stream_learns_of_it() {
        let quota = StreamQuota::new(2, 2);
        let own = [(); 2].map(|()| quota.open(client(1)).unwrap());
        let _other = quota.open(client(2)).unwrap();
        own[1].evicted().await;
        assert!(!own[0].is_evicted());
    }
}
