//! Failover: a request is sent to the mirrors of a registry in order, and then to the registry itself.

use std::collections::VecDeque;
use std::sync::PoisonError;

use model::Error;

use super::Client;
use crate::mirrors::RequestKind;
use oci::Reference;

/// The remaining locations of a request.
pub(super) struct Locations<'a> {
    client: &'a Client,
    current: Reference,
    rest: VecDeque<Reference>,
    /// An attached artifact, which may be absent everywhere.
    is_extra: bool,
    /// NotFound of the first mirror that was reached.
    missing: Option<Error>,
    /// Errors of mirrors.
    refusals: Vec<String>,
}

impl Client {
    /// The locations of a reference, without unreachable mirrors.
    ///
    /// Errors: Forbidden – the name is blocked; Invalid – a location that does not fit this name.
    pub(super) fn places(
        &self,
        reference: &Reference,
        sought: RequestKind,
    ) -> Result<Locations<'_>, Error> {
        let mut rest: VecDeque<_> = self.0.mirrors.places(reference, sought)?.into();
        let last = rest.pop_back().unwrap_or_else(|| reference.clone());
        let away = self.0.away.lock().unwrap_or_else(PoisonError::into_inner);
        rest.retain(|place| !away.contains(&place.registry));
        rest.push_back(last);
        Ok(Locations {
            client: self,
            current: rest.pop_front().unwrap_or_else(|| reference.clone()),
            rest,
            is_extra: sought == RequestKind::Rest || RequestKind::is_extra(reference),
            missing: None,
            refusals: Vec::new(),
        })
    }
}

impl Locations<'_> {
    /// The current location.
    pub(super) fn current(&self) -> &Reference {
        &self.current
    }

    /// Switches to the next location.
    ///
    /// Errors: no location is left; the error of the last one, with those of the mirrors.
    pub(super) fn pass(&mut self, error: Error) -> Result<(), Error> {
        let Some(next) = self.rest.pop_front() else {
            return Err(self.all(error));
        };
        if matches!(error, Error::Unavailable { .. }) {
            let away = &self.client.0.away;
            let mut away = away.lock().unwrap_or_else(PoisonError::into_inner);
            away.insert(self.current.registry.clone());
        }
        let refusal = format!("mirror {}: {}", self.current, error.chain());
        tracing::debug!(refusal, "mirror failed; trying the next location");
        self.refusals.push(refusal);
        if matches!(error, Error::NotFound { .. }) {
            self.missing.get_or_insert(error);
        }
        self.current = next;
        Ok(())
    }

    fn all(&mut self, last: Error) -> Error {
        if self.refusals.is_empty() {
            return last;
        }
        let before = self.refusals.join("; ");
        // Where only mirrors can be reached, images are pulled without artifacts that the mirrors do not have.
        let missing = self.missing.take().filter(|_| self.is_extra);
        match (last, missing) {
            (Error::Unavailable { .. }, Some(missing)) => missing,
            (last, _) => with_refusals(last, &before),
        }
    }
}

fn with_refusals(last: Error, before: &str) -> Error {
    match last {
        Error::Unavailable { what, source } => {
            let own = source.map_or_else(String::new, |it| it.to_string());
            Error::unavailable(what, format!("{own}; {before}"))
        }
        Error::Unauthenticated { reason } => Error::Unauthenticated {
            reason: format!("{reason}; {before}"),
        },
        other => other,
    }
}
