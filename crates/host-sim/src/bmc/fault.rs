//! Faults of simulated BMCs, for the requests that a rule selects.

/// A fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BmcFault {
    /// Answers with this status, and a reason.
    Status(u16),
    /// Answers 503, with `Retry-After`. Units: seconds.
    Busy(u64),
    /// Answers never.
    Silent,
    /// Closes the connection, and has not acted.
    Dropped,
    /// Acts, and closes the connection.
    DroppedAfter,
    /// Breaks off in the middle of the answer.
    Truncated,
    /// An answer that is cut, with a length that fits.
    HalfDocument,
    /// An answer without an end.
    Endless,
    /// An answer of this size. Units: bytes.
    Sized(usize),
    /// An answer nested this deeply.
    Nested(usize),
    /// A page in place of a document.
    Page,
    /// Redirects to this address.
    Redirect(String),
    /// Links of the answer lead to this origin.
    ForeignLinks(String),
    /// Each page of a collection has a next one.
    EndlessPages,
    /// Says that it is done, and does nothing.
    NoEffect,
    /// Is done by a task that needs this many polls.
    SlowTask(u32),
    /// Is done by a task that fails.
    FailedTask,
    /// An eject leaves `Inserted` and the image as they were; only `ConnectedVia` is right.
    KeepsImage,
    /// AMI's remote media support is off: insertions are accepted without an effect.
    RemoteMediaOff,
    /// Repeats the password in the reason of a refusal.
    RepeatsPassword,
    /// The session is forgotten.
    ForgetsSession,
    /// A power-off ends the boot override.
    ForgetsOverride,
    /// TLS with the certificate of another host.
    OtherCertificate,
}

/// A fault, and the requests that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BmcFaultRule {
    /// The fault.
    pub fault: BmcFault,
    /// Method of the requests; none for all.
    pub method: Option<&'static str>,
    /// A part of their paths.
    pub path: String,
    /// Number of requests with the fault; none for all.
    pub times: Option<u32>,
}

impl BmcFaultRule {
    /// The fault of every request.
    pub fn always(fault: BmcFault) -> Self {
        Self {
            fault,
            method: None,
            path: String::new(),
            times: None,
        }
    }

    /// The fault of requests with this method and this part of the path.
    pub fn on(method: &'static str, path: &str, fault: BmcFault) -> Self {
        Self {
            method: Some(method),
            path: path.to_owned(),
            ..Self::always(fault)
        }
    }

    /// The fault of the first `times` requests.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Takes one request, if the rule selects it.
    pub(super) fn take(&mut self, method: &str, path: &str) -> bool {
        let is_meant = self.method.is_none_or(|it| it == method) && path.contains(&self.path);
        if !is_meant || self.times == Some(0) {
            return false;
        }
        if let Some(times) = &mut self.times {
            *times -= 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_select_their_requests() {
        let mut rule = BmcFaultRule::on("GET", "/Systems", BmcFault::Silent).times(1);
        assert!(!rule.take("POST", "/redfish/v1/Systems/1"));
        assert!(!rule.take("GET", "/redfish/v1/Managers"));
        assert!(rule.take("GET", "/redfish/v1/Systems/1"));
        assert!(!rule.take("GET", "/redfish/v1/Systems/1"));
        let mut always = BmcFaultRule::always(BmcFault::Dropped);
        assert!((0..3).all(|_| always.take("PATCH", "/x")));
    }
}
