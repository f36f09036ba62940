//! Bounds of the cost of logins.

use service::limits::{Bound, Limit, Share};

use super::backoff::{FREE_FOR_LOGIN, FREE_FOR_NETWORK, LONGEST_WAIT, RECORDS_LIMIT};
use super::checks::{ESTABLISHED_LIMIT, NETWORK_LIMIT, QUEUE_LIMIT};
use super::passwords::{REMEMBERED_LIMIT, TOKEN_LIFETIME};

const WAIT: &str = "429 with Retry-After";

/// The limits of logins with passwords.
pub(crate) fn limits() -> Vec<Limit> {
    let checks = |count: usize| Bound::Count(count as u64, "checks");
    let failures = |count: u32| Bound::Count(u64::from(count), "failures");
    vec![
        Limit::fixed(
            "failed logins of a user",
            failures(FREE_FOR_LOGIN),
            "user at a client address",
            WAIT,
        ),
        Limit::fixed(
            "failed logins of strangers",
            failures(FREE_FOR_NETWORK),
            "client address",
            WAIT,
        ),
        Limit::fixed(
            "wait after failed logins",
            Bound::Time(LONGEST_WAIT),
            "user at a client address",
            WAIT,
        ),
        Limit::fixed(
            "password checks that run or wait",
            checks(QUEUE_LIMIT),
            "queue",
            WAIT,
        )
        .shared(Share::of("client address", checks(ESTABLISHED_LIMIT), WAIT)),
        Limit::fixed(
            "password checks of strangers",
            checks(NETWORK_LIMIT),
            "client address",
            WAIT,
        ),
        Limit::fixed(
            "records of failed logins",
            Bound::Count(RECORDS_LIMIT, "records"),
            "server",
            "the least recently used is forgotten",
        )
        .unshared("the waits of client addresses count without them"),
        Limit::fixed(
            "remembered passwords",
            Bound::Count(REMEMBERED_LIMIT, "passwords"),
            "server",
            "the least recently used is checked again",
        )
        .unshared("derived, evicted"),
        Limit::fixed(
            "lifetime of a token for a password",
            Bound::Time(TOKEN_LIFETIME),
            "token",
            "401",
        ),
    ]
}
