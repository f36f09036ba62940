//! One question, asked in several places: the mirrors of a registry, and then the registry itself.

use std::collections::VecDeque;
use std::sync::PoisonError;

use model::Error;

use super::Client;
use crate::mirrors::Sought;
use oci::Reference;

/// Where something is looked for.
pub(super) struct Places<'a> {
    client: &'a Client,
    current: Reference,
    rest: VecDeque<Reference>,
    /// Whether it is an extra of an image, which need not be anywhere.
    is_extra: bool,
    /// What the first mirror said that was reached and does not have it.
    missing: Option<Error>,
    /// What mirrors said.
    refusals: Vec<String>,
}

impl Client {
    /// Where to look. Mirrors that were away are left out.
    ///
    /// Errors: Forbidden – nobody may ask for it; Invalid – a mirror's place is none for this name.
    pub(super) fn places(
        &self,
        reference: &Reference,
        sought: Sought,
    ) -> Result<Places<'_>, Error> {
        let mut rest: VecDeque<_> = self.0.mirrors.places(reference, sought)?.into();
        let last = rest.pop_back().unwrap_or_else(|| reference.clone());
        let away = self.0.away.lock().unwrap_or_else(PoisonError::into_inner);
        rest.retain(|place| !away.contains(&place.registry));
        rest.push_back(last);
        Ok(Places {
            client: self,
            current: rest.pop_front().unwrap_or_else(|| reference.clone()),
            rest,
            is_extra: sought == Sought::Rest || Sought::is_extra(reference),
            missing: None,
            refusals: Vec::new(),
        })
    }
}

impl Places<'_> {
    /// Where it is looked for now.
    pub(super) fn current(&self) -> &Reference {
        &self.current
    }

    /// Goes on to the next place.
    ///
    /// Errors: there is none; then it is what the last one said, with what the mirrors said.
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
        tracing::debug!(refusal, "a mirror is passed by");
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
        // Where only mirrors can be reached, images come without the extras that these do not have.
        let missing = self.missing.take().filter(|_| self.is_extra);
        match (last, missing) {
            (Error::Unavailable { .. }, Some(missing)) => missing,
            (last, _) => told(last, &before),
        }
    }
}

fn told(last: Error, before: &str) -> Error {
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
