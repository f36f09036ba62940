//! The handle of a request that is under way, and the reports of its hosts.

use std::sync::{Arc, OnceLock};

use redfish::BmcEvent;
use service::CancellationToken;
use uuid::Uuid;

use super::progress::{BmcBootReport, PendingProgress, storable};

/// The end of a request that does not end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    Cancelled,
    ServerEnded,
    SessionLost,
    /// The credentials were kept as long as they may be.
    Expired,
}

impl StopReason {
    /// Its words, for a host that has booted the image or has not.
    pub(super) const fn text(self, is_booted: bool) -> &'static str {
        match (self, is_booted) {
            (Self::Cancelled, _) => "cancelled",
            (Self::ServerEnded, false) => {
                "the server that had the credentials ended: send the request again"
            }
            (Self::ServerEnded, true) => {
                "the server that had the credentials ended: eject the medium at the BMC after the installation"
            }
            (Self::SessionLost, false) => {
                "the server that had the credentials lost its connection to the database: send the request again"
            }
            (Self::SessionLost, true) => {
                "the server that had the credentials lost its connection to the database: eject the medium at the BMC \
                 after the installation"
            }
            (Self::Expired, _) => {
                "not installed within BMC_CREDENTIALS_LIFETIME, the credentials are forgotten: eject the medium at the \
                 BMC after the installation"
            }
        }
    }
}

/// The handle of a request that is under way.
#[derive(Debug, Default)]
pub(super) struct BmcBootRun {
    pub(super) cancel: CancellationToken,
    /// Set before the cancellation.
    reason: OnceLock<StopReason>,
}

impl BmcBootRun {
    /// Stops the request. The first reason counts.
    pub(super) fn stop(&self, reason: StopReason) {
        let _ = self.reason.set(reason);
        self.cancel.cancel();
    }
}

/// Reports the events of a request's hosts.
#[derive(Clone)]
pub(super) struct BmcBootReporter {
    pub(super) run: Arc<BmcBootRun>,
    pub(super) request: Uuid,
    pub(super) image_path: Arc<str>,
    pub(super) ejects: bool,
    pub(super) progress: Arc<PendingProgress>,
}

impl BmcBootReporter {
    /// Reports an event of a boot.
    pub(super) fn boot(&self, name: &str, event: BmcEvent) {
        self.add(
            name,
            match event {
                BmcEvent::Connecting => BmcBootReport::Started,
                BmcEvent::Connected(_) | BmcEvent::Warning(_) => return,
                BmcEvent::Step(step) => BmcBootReport::Step(step.title()),
                BmcEvent::Done if self.ejects => BmcBootReport::Installing(""),
                BmcEvent::Done => BmcBootReport::Done(String::new()),
                BmcEvent::Failed(text) => self.failure(&text, false),
            },
        );
    }

    /// Reports an event of an ejection; its success is reported with the boot order.
    pub(super) fn eject(&self, name: &str, event: BmcEvent) {
        self.add(
            name,
            match event {
                BmcEvent::Connecting => BmcBootReport::Installing("connect"),
                // The boot order has the warning.
                BmcEvent::Connected(_) | BmcEvent::Warning(_) | BmcEvent::Done => return,
                BmcEvent::Step(step) => BmcBootReport::Installing(step.title()),
                BmcEvent::Failed(text) => self.failure(&text, true),
            },
        );
    }

    pub(super) fn add(&self, name: &str, report: BmcBootReport) {
        let now = service::clock::now();
        self.progress.add((self.request, name), report, now);
    }

    /// A failure: for the reason of the stop, or else this one.
    pub(super) fn failure(&self, text: &str, is_booted: bool) -> BmcBootReport {
        let stopped = self.run.reason.get().map(|reason| reason.text(is_booted));
        let text = stopped.map_or_else(|| storable(text, &self.image_path), str::to_owned);
        BmcBootReport::Failed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_of_a_stop_counts() {
        let run = BmcBootRun::default();
        run.stop(StopReason::Cancelled);
        run.stop(StopReason::ServerEnded);
        assert_eq!(run.reason.get(), Some(&StopReason::Cancelled));
        assert!(run.cancel.is_cancelled());
    }

    #[test]
    fn a_booted_host_is_not_to_be_booted_again() {
        use StopReason::{Cancelled, Expired, ServerEnded, SessionLost};
        for reason in [Cancelled, ServerEnded, SessionLost, Expired] {
            assert!(!reason.text(true).contains("send the request again"));
        }
    }
}
