//! Authentication and authorization.
//!
//! The one invariant: access that no rule of the policy grants is refused, and a file that cannot be used leaves the one
//! before it in force.

mod access;
mod backoff;
mod checks;
mod credentials;
mod exposure;
mod gate;
mod grants;
mod issuer;
mod limits;
mod passwords;
mod policy;
mod users;

pub(crate) use access::Access;
pub(crate) use credentials::Credentials;
pub(crate) use exposure::is_open_to_everybody;
pub(crate) use gate::Gate;
pub(crate) use issuer::Lack;
pub(crate) use limits::limits;
pub(crate) use policy::Action;
pub(crate) use users::{TOKEN_LIFETIME_S, Users};
