//! Who may come in, and what each may do.
//!
//! The one invariant: what no rule of the policy grants is refused, and a file that cannot be used leaves the one
//! before it in force.

mod backoff;
mod credentials;
mod gate;
mod glob;
mod passwords;
mod policy;
mod watched;

pub(crate) use credentials::Credentials;
pub(crate) use gate::{Access, Gate, TOKEN_LIFETIME_S};
pub(crate) use policy::Action;
