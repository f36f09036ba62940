//! Progress of boots until it is stored, and its texts without tokens.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::bmc_boot::BmcBootState;
use model::time::Timestamp;
use net::masks::{HIDDEN, masked, token};
use uuid::Uuid;

use crate::db::bmc_boots::BmcBootChange;

/// Longest stored error. Units: characters.
pub(crate) const ERROR_LENGTH: usize = 1000;

/// A report on one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BmcBootReport {
    /// Its turn: the login begins.
    Started,
    /// A step of the boot begins.
    Step(&'static str),
    /// It has booted, and the installation is awaited; with a step, the medium is ejected.
    Installing(&'static str),
    /// The end, with a warning or without.
    Done(String),
    /// The reason.
    Failed(String),
}

/// The newest change of each host that is not stored yet: a slow database does not make them more.
#[derive(Debug, Default)]
pub(super) struct PendingProgress(Mutex<BTreeMap<(Uuid, String), BmcBootChange>>);

impl PendingProgress {
    /// Adds a report on a host of a request.
    pub(super) fn add(&self, host: (Uuid, &str), report: BmcBootReport, now: Timestamp) {
        let change = change(host, report, now);
        let mut pending = self.lock();
        let older = pending.remove(&key(&change));
        pending.insert(key(&change), after(older, change));
    }

    /// Takes all changes, to store them.
    pub(super) fn take(&self) -> Vec<BmcBootChange> {
        std::mem::take(&mut *self.lock()).into_values().collect()
    }

    /// Returns changes that were not stored; newer ones stay.
    pub(super) fn put_back(&self, changes: Vec<BmcBootChange>) {
        let mut pending = self.lock();
        for older in changes {
            let newer = pending.remove(&key(&older));
            let change = match newer {
                Some(newer) => after(Some(older), newer),
                None => older,
            };
            pending.insert(key(&change), change);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Uuid, String), BmcBootChange>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(change: &BmcBootChange) -> (Uuid, String) {
    (change.request, change.name.clone())
}

/// The newer change, with the start that the older one brought.
fn after(older: Option<BmcBootChange>, mut newer: BmcBootChange) -> BmcBootChange {
    newer.started_at = older.and_then(|it| it.started_at).or(newer.started_at);
    newer
}

fn change((request, name): (Uuid, &str), report: BmcBootReport, now: Timestamp) -> BmcBootChange {
    use BmcBootState::{Done, Failed, Installing, Running};
    let started_at = (report == BmcBootReport::Started).then_some(now);
    let (state, step, error, warning) = match report {
        BmcBootReport::Started => (Running, "connect", String::new(), String::new()),
        BmcBootReport::Step(step) => (Running, step, String::new(), String::new()),
        BmcBootReport::Installing(step) => (Installing, step, String::new(), String::new()),
        BmcBootReport::Done(warning) => (Done, "", String::new(), warning),
        BmcBootReport::Failed(error) => (Failed, "", error, String::new()),
    };
    BmcBootChange {
        request,
        name: name.to_owned(),
        state,
        step: step.to_owned(),
        error,
        warning,
        started_at,
        ended_at: matches!(state, Done | Failed).then_some(now),
    }
}

/// A text of a BMC that may be stored: bounded, on one line, and without the tokens of images. The client hides
/// passwords and queries; these tokens are in paths, also in those of images that were inserted before.
pub(super) fn storable(text: &str, image_path: &str) -> String {
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let mut text = masked(&text).into_owned();
    // A BMC may repeat the token elsewhere than in an address.
    if let Some(own) = token(image_path) {
        text = text.replace(own, HIDDEN);
    }
    text.chars().take(ERROR_LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOKEN: &str = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl-_";

    #[test]
    fn tokens_are_hidden() {
        let path = format!("/bytoken/{TOKEN}/4.18/x86_64/full.iso");
        let shown = storable(&format!("value {TOKEN}.\n{TOKEN}, {path}"), &path);
        let image = "/bytoken/[hidden]/4.18/x86_64/full.iso";
        assert_eq!(shown, format!("value [hidden]. [hidden], {image}"));
        // limit: error of a boot by a BMC
        for (length, kept) in [
            (ERROR_LENGTH, ERROR_LENGTH),
            (ERROR_LENGTH + 1, ERROR_LENGTH),
        ] {
            assert_eq!(
                storable(&"ä".repeat(length), "/byid/1").chars().count(),
                kept
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_shows_the_token(before in "\\PC{0,20}", after in "\\PC{0,20}", cut in 1..60_usize) {
            let path = format!("/byapikey/{TOKEN}/x");
            let text = format!("{before}{TOKEN}{after} http://i/byapikey/{}", &TOKEN[..cut.min(TOKEN.len())]);
            let shown = storable(&text, &path);
            prop_assert!(!shown.contains(TOKEN));
            // A full stop at the cut is none of the token's content.
            let end = shown.trim_end_matches('.');
            prop_assert!(end.ends_with("/byapikey/[hidden]"), "{}", shown);
            prop_assert!(!shown.contains(char::is_control));
        }
    }

    #[test]
    fn the_newest_change_of_a_host_is_stored() {
        let (pending, request) = (PendingProgress::default(), Uuid::from_u128(1));
        let now = |seconds| Timestamp::from_timestamp(seconds, 0).unwrap();
        pending.add((request, "a"), BmcBootReport::Started, now(1));
        pending.add(
            (request, "a"),
            BmcBootReport::Step("check medium and boot source"),
            now(3),
        );
        pending.add(
            (request, "b"),
            BmcBootReport::Failed("cancelled".to_owned()),
            now(4),
        );
        let taken = pending.take();
        assert_eq!(pending.take(), []);
        let [a, b] = taken.as_slice() else {
            panic!("{taken:?}");
        };
        assert_eq!(
            (a.state, a.started_at),
            (BmcBootState::Running, Some(now(1)))
        );
        assert_eq!(a.step, "check medium and boot source");
        assert_eq!((b.state, b.started_at), (BmcBootState::Failed, None));
        pending.add(
            (request, "a"),
            BmcBootReport::Done("careful".to_owned()),
            now(5),
        );
        pending.put_back(taken.clone());
        let again = pending.take();
        assert_eq!(
            (again[0].state, again[0].started_at),
            (BmcBootState::Done, Some(now(1)))
        );
        assert_eq!(
            (again[0].ended_at, again[0].step.as_str()),
            (Some(now(5)), "")
        );
        assert_eq!(again[0].warning, "careful");
        assert_eq!(again[1], taken[1]);
        pending.add((request, "a"), BmcBootReport::Installing("connect"), now(6));
        let change = pending.take().remove(0);
        assert_eq!(
            (change.state, change.started_at),
            (BmcBootState::Installing, None)
        );
    }
}
