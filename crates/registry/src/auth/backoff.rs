//! The budget of failed logins: beyond it, logins wait.
//!
//! Each user at each network has a budget; only a user's spending counts for the network, so that one client
//! with an old password, however long it retries, does not spend the budget of the others behind its address. Users that
//! have logged in from there before do not depend on the network's budget at all.

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use moka::ops::compute::Op;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

/// Failures of one user at one network before the next login has to wait.
pub(super) const FREE_FOR_LOGIN: u32 = 5;
/// Failures of all users of one network before logins of strangers there have to wait.
pub(super) const FREE_FOR_NETWORK: u32 = 50;
/// Doubled by each further failure.
const FIRST_WAIT: Duration = Duration::from_secs(1);
pub(super) const LONGEST_WAIT: Duration = Duration::from_mins(5);
/// Failures are forgotten when none has followed for this long.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(15);
/// How long a user counts as established without logging in again.
const ESTABLISHED_IDLE: Duration = Duration::from_hours(7 * 24);
/// Networks, and pairs of network and user, that are remembered at one time: about 1 MiB each.
pub(super) const RECORDS_LIMIT: u64 = 8192;

/// Failed logins.
#[derive(Debug)]
pub(super) struct Backoff {
    networks: Failures<IpAddr>,
    logins: Failures<LoginKey>,
    /// Successful logins: user and network.
    established: Cache<LoginKey, ()>,
    /// Users are kept as keyed hashes, since names may be long and anything.
    hasher: RandomState,
}

type LoginKey = (IpAddr, u64);

/// Where a login comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LoginSource {
    pub(super) network: IpAddr,
    user: u64,
}

#[derive(Debug)]
struct Failures<K: Hash + Eq + Send + Sync + 'static> {
    free: u32,
    records: Cache<K, Record>,
}

#[derive(Debug, Clone, Copy)]
struct Record {
    count: u32,
    /// Nothing is checked before.
    until: Instant,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self {
            networks: Failures::new(FREE_FOR_NETWORK),
            logins: Failures::new(FREE_FOR_LOGIN),
            established: Cache::builder()
                .max_capacity(RECORDS_LIMIT)
                .time_to_idle(ESTABLISHED_IDLE)
                .eviction_policy(EvictionPolicy::lru())
                .build(),
            hasher: RandomState::new(),
        }
    }

    pub(super) fn source(&self, address: IpAddr, user: &str) -> LoginSource {
        LoginSource {
            network: network(address),
            user: self.hasher.hash_one(user),
        }
    }

    /// Whether the user has logged in from there before.
    pub(super) fn is_established(&self, source: LoginSource) -> bool {
        self.established.get(&source.login()).is_some()
    }

    /// How long a login from there has to wait at `now`; nothing: it may be checked.
    pub(super) fn wait(&self, source: LoginSource, now: Instant) -> Option<Duration> {
        let login = self.logins.wait(&source.login(), now);
        if self.is_established(source) {
            return login;
        }
        login.max(self.networks.wait(&source.network, now))
    }

    /// Whether waiting begins with this failure.
    pub(super) fn failed(&self, source: LoginSource, now: Instant) -> bool {
        let count = self.logins.add(source.login(), now);
        let is_network_charged = count <= FREE_FOR_LOGIN && !self.is_established(source);
        let network = is_network_charged && {
            let count = self.networks.add(source.network, now);
            count == FREE_FOR_NETWORK
        };
        network || count == FREE_FOR_LOGIN
    }

    /// A right password forgives its user's failures, not the network's: a guesser may have an account too.
    pub(super) fn succeeded(&self, source: LoginSource) {
        self.logins.records.invalidate(&source.login());
        self.established.insert(source.login(), ());
    }
}

impl LoginSource {
    fn login(&self) -> LoginKey {
        (self.network, self.user)
    }
}

impl<K: Hash + Eq + Send + Sync + 'static> Failures<K> {
    fn new(free: u32) -> Self {
        let records = Cache::builder()
            .max_capacity(RECORDS_LIMIT)
            .time_to_live(FORGOTTEN_AFTER)
            .eviction_policy(EvictionPolicy::lru())
            .build();
        Self { free, records }
    }

    fn wait(&self, key: &K, now: Instant) -> Option<Duration> {
        let until = self.records.get(key)?.until;
        until
            .checked_duration_since(now)
            .filter(|wait| !wait.is_zero())
    }

    /// The number of failures with this one.
    fn add(&self, key: K, now: Instant) -> u32 {
        let mut count = 1;
        self.records.entry(key).and_compute_with(|record| {
            count = record
                .map_or(0, |record| record.value().count)
                .saturating_add(1);
            let until = now + wait_after(count, self.free);
            Op::Put(Record { count, until })
        });
        count
    }
}

/// How long the next login waits after `count` failures.
fn wait_after(count: u32, free: u32) -> Duration {
    match count.checked_sub(free) {
        None => Duration::ZERO,
        Some(more) => FIRST_WAIT
            .saturating_mul(2_u32.saturating_pow(more))
            .min(LONGEST_WAIT),
    }
}

/// The network of a client: an address, for IPv6 its /64.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let bits = u128::from(address) >> 64 << 64;
            Ipv6Addr::from(bits).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    // limit: wait after failed logins
    #[test]
    fn the_wait_grows_up_to_a_limit() {
        let seconds = |count| wait_after(count, 5).as_secs();
        for (count, wait) in [
            (0, 0),
            (4, 0),
            (5, 1),
            (6, 2),
            (13, 256),
            (14, 300),
            (u32::MAX, 300),
        ] {
            assert_eq!(seconds(count), wait, "{count}");
        }
    }

    #[test]
    fn networks() {
        for (one, other, is_same) in [
            ("10.0.0.1", "10.0.0.2", false),
            ("10.0.0.1", "::ffff:10.0.0.1", true),
            ("2001:db8::1", "2001:db8::2:1", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
        ] {
            let is_one = network(address(one)) == network(address(other));
            assert_eq!(is_one, is_same, "{one} {other}");
        }
    }

    // limit: failed logins of a user
    #[test]
    fn failures_slow_their_user_at_their_address() {
        let (backoff, start) = (Backoff::new(), Instant::now());
        let source = backoff.source(address("10.0.0.1"), "u");
        for count in 1..=FREE_FOR_LOGIN {
            assert_eq!(backoff.wait(source, start), None);
            assert_eq!(backoff.failed(source, start), count == FREE_FOR_LOGIN);
        }
        assert_eq!(backoff.wait(source, start), Some(FIRST_WAIT));
        for (other, user) in [("10.0.0.1", "other"), ("10.0.0.2", "u")] {
            let other = backoff.source(address(other), user);
            assert_eq!(backoff.wait(other, start), None, "{user}");
        }
        let later = start + FIRST_WAIT;
        assert_eq!(backoff.wait(source, later), None);
        backoff.failed(source, later);
        assert_eq!(backoff.wait(source, later), Some(2 * FIRST_WAIT));
        backoff.succeeded(source);
        assert_eq!(backoff.wait(source, later), None);
    }

    // limit: failed logins of strangers
    #[test]
    fn who_tries_many_users_is_slowed_too() {
        let (backoff, now) = (Backoff::new(), Instant::now());
        let guesser = address("10.0.0.1");
        for n in 0..FREE_FOR_NETWORK {
            let source = backoff.source(guesser, &format!("user{n}"));
            assert_eq!(backoff.wait(source, now), None);
            let begins = backoff.failed(source, now);
            assert_eq!(begins, n + 1 == FREE_FOR_NETWORK);
        }
        assert!(backoff.wait(backoff.source(guesser, "x"), now).is_some());
        let neighbour = backoff.source(address("10.0.0.2"), "x");
        assert_eq!(backoff.wait(neighbour, now), None);
    }

    #[test]
    fn an_old_password_does_not_spend_what_is_for_its_neighbours() {
        let (backoff, mut now) = (Backoff::new(), Instant::now());
        let shared = address("10.0.0.1");
        let noisy = backoff.source(shared, "robot");
        for _ in 0..10 * FREE_FOR_NETWORK {
            now += backoff.wait(noisy, now).unwrap_or_default();
            backoff.failed(noisy, now);
        }
        assert!(backoff.wait(noisy, now).is_some());
        let stranger = backoff.source(shared, "stranger");
        assert_eq!(backoff.wait(stranger, now), None);
    }

    #[test]
    fn who_has_logged_in_before_has_a_budget_of_its_own() {
        let (backoff, now) = (Backoff::new(), Instant::now());
        let shared = address("10.0.0.1");
        let good = backoff.source(shared, "good");
        backoff.succeeded(good);
        for n in 0..2 * FREE_FOR_NETWORK {
            backoff.failed(backoff.source(shared, &format!("user{n}")), now);
        }
        assert!(backoff.wait(backoff.source(shared, "new"), now).is_some());
        for _ in 0..FREE_FOR_LOGIN {
            assert_eq!(backoff.wait(good, now), None);
            backoff.failed(good, now);
        }
        assert!(backoff.wait(good, now).is_some(), "its own");
    }

    // limit: records of failed logins
    #[test]
    fn memory_is_bounded() {
        let (backoff, now) = (Backoff::new(), Instant::now());
        for n in 0..u32::try_from(RECORDS_LIMIT).unwrap() * 2 {
            let address = std::net::Ipv4Addr::from(n).into();
            backoff.failed(backoff.source(address, "u"), now);
            backoff.succeeded(backoff.source(address, "v"));
        }
        backoff.established.run_pending_tasks();
        for records in [
            backoff.networks.count(),
            backoff.logins.count(),
            backoff.established.entry_count(),
        ] {
            assert!(records <= RECORDS_LIMIT, "{records}");
        }
    }

    impl<K: Hash + Eq + Send + Sync + 'static> Failures<K> {
        fn count(&self) -> u64 {
            self.records.run_pending_tasks();
            self.records.entry_count()
        }
    }
}
