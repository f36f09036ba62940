//! Retries of requests: which failures, how often, after which pause.

use std::time::Duration;

use reqwest::Method;

use super::timing::RedfishTiming;

/// Messages of refusals that pass: the BMC takes the same request later.
///
/// Source: ironic, redfish/management.py (iLO during POST); DSP0268, Base message registry.
const TRANSIENT_MESSAGES: &[&str] = &[
    "UnableToModifyDuringSystemPOST",
    "ServiceTemporarilyUnavailable",
    "ServiceInUnknownState",
    "ServiceShuttingDown",
    "ResourceInUse",
    "ResourceInStandby",
    // A job of iDRAC is running. Source: sushy-oem-idrac, constants.py.
    "RAC0679",
];

/// A failure of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptFailure<'a> {
    /// The request did not reach the BMC.
    NeverSent,
    /// The BMC may have acted.
    Interrupted,
    /// A refusal, with the identifiers of its messages.
    Refused(u16, &'a [String]),
}

/// Whether the same request may succeed later.
///
/// Actions (POST) are repeated only when the BMC surely has not acted.
pub(super) fn is_transient(method: &Method, failure: AttemptFailure<'_>) -> bool {
    match failure {
        AttemptFailure::NeverSent | AttemptFailure::Refused(429 | 503, _) => true,
        AttemptFailure::Interrupted | AttemptFailure::Refused(500..=599, _) => {
            *method == Method::GET
        }
        AttemptFailure::Refused(_, messages) => {
            let is_listed = |id: &String| TRANSIENT_MESSAGES.contains(&id.as_str());
            messages.iter().any(is_listed)
        }
    }
}

/// The pause before the attempt after `failures`; none when there is no further attempt.
///
/// `asked` is the answer's `Retry-After`; `chance`, from 0 to 1, spreads clients that failed together.
pub(super) fn pause(
    failures: u32,
    asked: Option<Duration>,
    chance: f64,
    timing: &RedfishTiming,
) -> Option<Duration> {
    let is_too_long = asked.is_some_and(|asked| asked > timing.longest_retry_after);
    if failures >= timing.attempts || is_too_long {
        return None;
    }
    let factor = 2_u32.saturating_pow(failures.saturating_sub(1));
    let backoff = timing.first_pause.saturating_mul(factor);
    let backoff = backoff.min(timing.longest_pause);
    let jittered = backoff.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
    // Before the end of Retry-After the request would fail again.
    let asked = asked.map(|asked| asked + backoff.mul_f64(chance.clamp(0.0, 1.0) / 4.0));
    Some(jittered.max(asked.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_safe_failures_are_retried() {
        use AttemptFailure::{Interrupted, NeverSent, Refused};
        let post = ["UnableToModifyDuringSystemPOST".to_owned()];
        for (failure, get, patch, action) in [
            (NeverSent, true, true, true),
            (Interrupted, true, false, false),
            (Refused(429, &[]), true, true, true),
            (Refused(503, &[]), true, true, true),
            (Refused(500, &[]), true, false, false),
            (Refused(502, &[]), true, false, false),
            (Refused(400, &post), true, true, true),
            (Refused(400, &[]), false, false, false),
            (Refused(401, &[]), false, false, false),
            (Refused(404, &[]), false, false, false),
            (Refused(412, &[]), false, false, false),
        ] {
            for (method, expected) in [
                (Method::GET, get),
                (Method::PATCH, patch),
                (Method::POST, action),
            ] {
                assert_eq!(
                    is_transient(&method, failure),
                    expected,
                    "{method} {failure:?}"
                );
            }
        }
    }

    #[test]
    fn long_waits_are_not_granted() {
        let timing = RedfishTiming::default();
        let bound = timing.longest_retry_after;
        assert!(pause(1, Some(bound), 1.0, &timing) >= Some(bound));
        assert_eq!(
            pause(1, Some(bound + Duration::from_secs(1)), 1.0, &timing),
            None
        );
        assert!(pause(timing.attempts - 1, None, 1.0, &timing).is_some());
        assert_eq!(pause(timing.attempts, None, 1.0, &timing), None);
    }

    proptest! {
        #[test]
        fn pauses_are_within_their_bounds(failures in 1_u32..5, asked in proptest::option::of(0_u64..60), chance in 0.0..1.0) {
            let timing = RedfishTiming::default();
            let asked = asked.map(Duration::from_secs);
            let pause = pause(failures, asked, chance, &timing).unwrap();
            prop_assert!(pause >= asked.unwrap_or_default());
            prop_assert!(pause >= timing.first_pause / 2);
            prop_assert!(pause <= timing.longest_pause.max(asked.unwrap_or_default() + timing.longest_pause / 4));
        }
    }
}
