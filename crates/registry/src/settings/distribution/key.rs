//! Keys of the file, which are names of variables: their sections, their paths, and problems at them.

use service::settings::{Problem, Values};

/// Prefix of every name.
pub(super) const PREFIX: &str = "registry";

pub(super) const NO_SUCH_USERS: &str =
    "users come from a password file or with tokens here: auth.htpasswd, auth.token";

pub(super) fn is_below(above: &str, name: &str) -> bool {
    name.strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

pub(super) fn problem(values: &Values, name: &str, reason: &str) -> Problem {
    Problem::new(name.to_uppercase(), placed(values, name, reason))
}

pub(super) fn placed(values: &Values, name: &str, reason: &str) -> String {
    match values.place(name) {
        Some(place) => format!("{place}: {reason}"),
        None => reason.to_owned(),
    }
}

/// The path of a key in the file. Source: distribution, whose keys have no underscore.
pub(super) fn path(name: &str) -> String {
    let path = name.strip_prefix("registry_").unwrap_or(name);
    path.replace('_', ".")
}
