//! Open connections of a server, limited per client and in all.
//!
//! A new connection beyond the total limit evicts another one: first of all an idle one, since its client loses
//! nothing, else the quietest of the client with the most connections. So neither kept-alive connections nor slow
//! clients from many addresses keep the others out.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use futures_util::task::AtomicWaker;

use super::clients::ClientKey;
use super::held::HeldTable;
use super::quota::Exceeded;
use crate::tls::TlsVersion;

/// Shortest time without a request and without bytes after which a connection is idle: a response that has just ended
/// may still be on its way. Units: milliseconds.
const MIN_IDLE_MS: u64 = 1_000;

/// The connections of a server; shared by its clones.
#[derive(Debug, Clone)]
pub(super) struct Connections(Arc<ConnectionTable>);

#[derive(Debug)]
struct ConnectionTable {
    /// 0: no limit.
    max: usize,
    /// 0: no limit.
    max_per_client: usize,
    since: Instant,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    of_clients: HeldTable<ClientKey, Activity>,
    /// Connections of trusted proxies.
    of_proxies: usize,
}

/// Activity of one connection.
#[derive(Debug, Default)]
struct Activity {
    /// Last read or write. Units: milliseconds since the server's start.
    last_ms: AtomicU64,
    /// Until their responses have ended.
    requests_in_flight: AtomicUsize,
    /// Since it was opened.
    requests: AtomicUsize,
    /// Whether bytes wait for the client to read.
    is_stalled: AtomicBool,
    /// Whether it was upgraded, and has no requests any more.
    is_tunnel: AtomicBool,
    is_evicted: AtomicBool,
    /// Whether a request has shown that a trusted proxy sends over it.
    is_exempt: AtomicBool,
    /// Absent for plain connections.
    tls: OnceLock<TlsVersion>,
    waker: AtomicWaker,
}

/// The number of open connections of a server; shared by its clones.
#[derive(Debug, Clone)]
pub struct ConnectionCount(pub(super) Connections);

impl ConnectionCount {
    /// Open connections.
    pub fn open(&self) -> usize {
        self.0.lock().total()
    }

    /// Their bound.
    pub fn max(&self) -> usize {
        self.0.0.max
    }
}

/// Counts the requests of a connection; an extension of each of them.
#[derive(Debug, Clone)]
pub(crate) struct RequestCounter(Arc<Activity>);

/// A request in flight, until it is dropped.
#[derive(Debug)]
pub(super) struct CountedRequest(Arc<Activity>);

/// An open connection; dropping it releases its permit.
#[derive(Debug)]
pub(super) struct Connection {
    connections: Connections,
    /// None for a trusted proxy, which counts in the total only and is never evicted.
    client: Option<ClientKey>,
    activity: Arc<Activity>,
}

impl Connections {
    /// At most `max` connections in all and `max_per_client` of each client; 0: no limit.
    pub(super) fn new(max: usize, max_per_client: usize) -> Self {
        Self(Arc::new(ConnectionTable {
            max,
            max_per_client,
            since: Instant::now(),
            open: Mutex::default(),
        }))
    }

    /// Opens a connection of `client`; of a trusted proxy without one.
    ///
    /// Errors: the limit that is reached; the total one only when no connection is idle and no other client has more.
    pub(super) fn open(&self, client: Option<ClientKey>) -> Result<Connection, Exceeded> {
        let mut open = self.lock();
        let own = client.map_or(0, |client| open.of_client(client).count());
        if is_reached(own, self.0.max_per_client) {
            return Err(Exceeded::Client);
        }
        self.insert(&mut open, client, own)
    }

    /// Opens a connection of `client`, a trusted proxy that is still to prove itself, or another program at its address.
    /// Beyond the limit of the client, it takes the place of the quietest one without a proof.
    ///
    /// Errors: as [`Self::open`].
    pub(super) fn open_of_proxy(&self, client: ClientKey) -> Result<Connection, Exceeded> {
        let mut open = self.lock();
        let mut own = open.of_client(client).count();
        if is_reached(own, self.0.max_per_client) {
            let quiet = open.of_client(client).min_by_key(|one| one.last_ms());
            if let Some(quiet) = quiet.cloned() {
                open.end(client, &quiet);
                own -= 1;
            }
        }
        self.insert(&mut open, Some(client), own)
    }

    fn insert(
        &self,
        open: &mut OpenConnections,
        client: Option<ClientKey>,
        own: usize,
    ) -> Result<Connection, Exceeded> {
        if is_reached(open.total(), self.0.max) && !open.evict(own, self.now_ms()) {
            return Err(Exceeded::Total);
        }
        let activity = Arc::new(Activity {
            last_ms: AtomicU64::new(self.now_ms()),
            ..Activity::default()
        });
        match client {
            Some(client) => open.of_clients.insert(client, Arc::clone(&activity)),
            None => open.of_proxies += 1,
        }
        Ok(Connection {
            connections: self.clone(),
            client,
            activity,
        })
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.0.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether `count` is the limit; 0: no limit.
fn is_reached(count: usize, max: usize) -> bool {
    max > 0 && count >= max
}

impl OpenConnections {
    fn total(&self) -> usize {
        self.of_clients.total() + self.of_proxies
    }

    /// The connections of a client that count for it.
    fn of_client(&self, client: ClientKey) -> impl Iterator<Item = &Arc<Activity>> {
        countable(self.of_clients.of(&client))
    }

    /// Evicts a connection for a client that has `own` ones; false when none is idle and no other client has more.
    fn evict(&mut self, own: usize, now_ms: u64) -> bool {
        let all = || {
            let clients = self.of_clients.holders();
            clients.flat_map(|(client, its)| {
                let count = countable(its).count();
                countable(its).map(move |one| (count, *client, one))
            })
        };
        // The quietest one of the heaviest client.
        let rank =
            |(count, _, one): &(usize, ClientKey, &Arc<Activity>)| (Reverse(*count), one.last_ms());
        let idle = all().filter(|(_, _, one)| one.is_idle(now_ms));
        let heavier = || all().filter(|(count, _, _)| *count > own);
        let Some((_, client, activity)) =
            idle.min_by_key(rank).or_else(|| heavier().min_by_key(rank))
        else {
            return false;
        };
        let activity = Arc::clone(activity);
        self.end(client, &activity);
        true
    }

    /// Ends a connection. Its permit is released at once; the connection ends as soon as its task runs.
    fn end(&mut self, client: ClientKey, activity: &Arc<Activity>) {
        self.of_clients.remove(&client, activity);
        activity.is_evicted.store(true, Ordering::Release);
        activity.waker.wake();
    }
}

/// Those that are not exempt as connections of a trusted proxy.
fn countable(activities: &[Arc<Activity>]) -> impl Iterator<Item = &Arc<Activity>> {
    let activities = activities.iter();
    activities.filter(|one| !one.is_exempt.load(Ordering::Relaxed))
}

impl Activity {
    fn last_ms(&self) -> u64 {
        self.last_ms.load(Ordering::Relaxed)
    }

    fn is_idle(&self, now_ms: u64) -> bool {
        let quiet_ms = now_ms.saturating_sub(self.last_ms());
        quiet_ms >= MIN_IDLE_MS
            && self.requests_in_flight.load(Ordering::Relaxed) == 0
            && !self.is_stalled.load(Ordering::Relaxed)
            && !self.is_tunnel.load(Ordering::Relaxed)
    }
}

impl RequestCounter {
    /// Version of TLS of the connection; absent for plain ones.
    pub(crate) fn tls(&self) -> Option<TlsVersion> {
        self.0.tls.get().copied()
    }

    /// Counts a request in flight.
    pub(super) fn count(&self) -> CountedRequest {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
        self.0.requests_in_flight.fetch_add(1, Ordering::Relaxed);
        CountedRequest(Arc::clone(&self.0))
    }

    /// Records that a trusted proxy sends over the connection: it does not count for a client, and is never evicted.
    pub(super) fn exempt(&self) {
        self.0.is_exempt.store(true, Ordering::Relaxed);
    }

    /// Records that the connection was upgraded: silence is no sign that its client needs it no more.
    pub(super) fn upgrade(&self) {
        self.0.is_tunnel.store(true, Ordering::Relaxed);
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        self.0.requests_in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connection {
    /// The counter of its requests.
    pub(super) fn requests(&self) -> RequestCounter {
        RequestCounter(Arc::clone(&self.activity))
    }

    /// Records its version of TLS.
    pub(super) fn set_tls(&self, version: TlsVersion) {
        self.activity.tls.set(version).ok();
    }

    /// Requests since it was opened, unless one is in flight or it is a tunnel.
    pub(super) fn requests_before_idle(&self) -> Option<usize> {
        let is_busy = self.activity.requests_in_flight.load(Ordering::Relaxed) > 0
            || self.activity.is_tunnel.load(Ordering::Relaxed);
        (!is_busy).then(|| self.activity.requests.load(Ordering::Relaxed))
    }

    /// Records that bytes were read or written.
    pub(super) fn touch(&self) {
        let now = self.connections.now_ms();
        self.activity.last_ms.store(now, Ordering::Relaxed);
    }

    /// Records whether bytes wait for the client to read.
    pub(super) fn set_stalled(&self, is_stalled: bool) {
        self.activity
            .is_stalled
            .store(is_stalled, Ordering::Relaxed);
    }

    /// Ready once it is evicted; wakes the task then.
    pub(super) fn poll_evicted(&self, cx: &mut Context<'_>) -> Poll<()> {
        // Before the check: an eviction in between wakes the new waker.
        self.activity.waker.register(cx.waker());
        if self.activity.is_evicted.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.connections.lock();
        match self.client {
            Some(client) => open.of_clients.remove(&client, &self.activity),
            None => open.of_proxies -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use futures_util::task::noop_waker;

    use super::*;

    fn client(last: u8) -> ClientKey {
        IpAddr::from(Ipv4Addr::new(192, 0, 2, last)).into()
    }

    fn is_evicted(connection: &Connection) -> bool {
        let waker = noop_waker();
        connection
            .poll_evicted(&mut Context::from_waker(&waker))
            .is_ready()
    }

    #[test]
    fn an_idle_connection_is_evicted_before_busy_ones() {
        let connections = Connections::new(5, 3);
        let busy = [(); 2].map(|()| connections.open(Some(client(1))).unwrap());
        let _requests = busy.each_ref().map(|it| it.requests().count());
        let stalled = connections.open(Some(client(2))).unwrap();
        stalled.set_stalled(true);
        let idle = connections.open(Some(client(3))).unwrap();
        let tunnel = connections.open(Some(client(4))).unwrap();
        tunnel.requests().upgrade();
        let evicts = |now_ms| connections.lock().evict(2, now_ms);
        let last_ms = idle.activity.last_ms.load(Ordering::Relaxed);
        assert!(!evicts(last_ms + MIN_IDLE_MS - 1), "one below the bound");
        assert!(evicts(last_ms + MIN_IDLE_MS));
        assert!(is_evicted(&idle));
        assert!(!evicts(u64::MAX), "the others are busy");
        stalled.set_stalled(false);
        assert!(evicts(u64::MAX));
        assert!(is_evicted(&stalled));
        assert!(!busy.iter().chain([&tunnel]).any(is_evicted));
    }

    #[test]
    fn the_idlest_connection_of_the_heaviest_client_is_evicted() {
        let connections = Connections::new(4, 3);
        let heavy = [(); 3].map(|()| connections.open(Some(client(1))).unwrap());
        assert_eq!(
            connections.open(Some(client(1))).unwrap_err(),
            Exceeded::Client,
            "one above the bound of a client"
        );
        let light = connections.open(Some(client(2))).unwrap();
        for (connection, at) in heavy.iter().zip([7, 5, 9]) {
            connection.activity.last_ms.store(at, Ordering::Relaxed);
        }
        let _busy = [&heavy[0], &heavy[1], &heavy[2], &light].map(|it| it.requests().count());
        let newcomer = connections.open(Some(client(3))).unwrap();
        let _busy_newcomer = newcomer.requests().count();
        assert_eq!(heavy.each_ref().map(is_evicted), [false, true, false]);
        assert!(!is_evicted(&light));
        // Now two, one and one: a client with as many as the heaviest is refused.
        assert_eq!(
            connections.open(Some(client(1))).unwrap_err(),
            Exceeded::Total
        );
        let proxy = connections.open(None).unwrap();
        assert_eq!(heavy.each_ref().map(is_evicted), [true, true, false]);
        drop(heavy);
        drop(proxy);
        let open = connections.lock();
        assert_eq!((open.total(), open.of_clients.holders().count()), (2, 2));
    }

    #[test]
    fn a_proxy_gets_a_connection_beside_the_other_programs_at_its_address() {
        let connections = Connections::new(0, 2);
        let proxy = connections.open_of_proxy(client(1)).unwrap();
        proxy.requests().exempt();
        let others = [7, 5].map(|at| {
            let other = connections.open_of_proxy(client(1)).unwrap();
            other.activity.last_ms.store(at, Ordering::Relaxed);
            other
        });
        let newcomer = connections.open_of_proxy(client(1)).unwrap();
        assert_eq!(others.each_ref().map(is_evicted), [false, true]);
        assert!(!is_evicted(&proxy) && !is_evicted(&newcomer));
        assert_eq!(connections.lock().total(), 3);
        assert!(connections.lock().evict(0, u64::MAX));
        assert!(!is_evicted(&proxy));
    }
}
