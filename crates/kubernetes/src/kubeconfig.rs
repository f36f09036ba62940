//! The kubeconfig: reading, and the context that is meant.

use std::path::Path;

use kube::config::{Kubeconfig, KubeconfigError};
use model::Error;
use model::error::chain;

/// Largest kubeconfig. Units: bytes.
const MAX_KUBECONFIG: u64 = 4 << 20;
/// Contexts that an error lists.
const SHOWN_CONTEXTS: usize = 8;

/// The kubeconfig of a path; none: of `KUBECONFIG`, or `~/.kube/config`.
///
/// Errors: Invalid – it cannot be read; `TooLarge`.
pub(super) fn read_kubeconfig(path: Option<&Path>) -> Result<Kubeconfig, Error> {
    let Some(path) = path else {
        return Kubeconfig::read().map_err(|error| {
            let reason = format!(
                "none is named, and the one of KUBECONFIG or ~/.kube/config cannot be read ({}); copy that of the \
                 cluster to this machine, and name it by --kubeconfig",
                unreadable(&error)
            );
            invalid(None, reason)
        });
    };
    // A device or a whole disk image is not read into memory.
    let size = path.metadata();
    let size = size.map_err(|error| invalid(Some(path), format!("{error}; check the path")))?;
    let size = size.len();
    if size > MAX_KUBECONFIG {
        return Err(Error::TooLarge {
            what: "the kubeconfig",
            limit: MAX_KUBECONFIG,
        });
    }
    Kubeconfig::read_from(path).map_err(|error| invalid(Some(path), unreadable(&error)))
}

/// The reason, without the values and lines of the file that errors of its syntax repeat: they may be credentials.
fn unreadable(error: &KubeconfigError) -> String {
    let reason = chain(error);
    if !matches!(error, KubeconfigError::Parse(_)) {
        return reason;
    }
    let place = reason.split(": ").find(|part| part.starts_with("line "));
    let place = place.unwrap_or("the text");
    format!("{place}: is no kubeconfig: give that of the cluster, as `oc login` writes it")
}

/// Checks that a kubeconfig has a context, with its cluster and user; none named: the current one.
///
/// Errors: the reason, with a way out.
pub(super) fn check_context(kubeconfig: &Kubeconfig, context: Option<&str>) -> Result<(), String> {
    let names: Vec<&str> = kubeconfig.contexts.iter().map(|it| &*it.name).collect();
    let known = match names.len() {
        0 => {
            return Err(
                "it has no contexts: give a kubeconfig, as `oc login` writes it".to_owned(),
            );
        }
        count if count > SHOWN_CONTEXTS => format!("{}, …", names[..SHOWN_CONTEXTS].join(", ")),
        _ => names.join(", "),
    };
    let current = kubeconfig.current_context.as_deref();
    let Some(name) = context.or(current.filter(|it| !it.is_empty())) else {
        return Err(format!(
            "it has no current context: name one by --context, of {known}"
        ));
    };
    let found = kubeconfig.contexts.iter().find(|it| it.name == name);
    let Some(found) = found.and_then(|it| it.context.as_ref()) else {
        return Err(format!(
            "it has no context {name}: name one by --context, of {known}"
        ));
    };
    let cluster = &found.cluster;
    if kubeconfig.clusters.iter().all(|it| it.name != *cluster) {
        return Err(format!(
            "its context {name} names the cluster {cluster:?}, which it does not have: correct one of them"
        ));
    }
    // A connection without credentials would be an anonymous one.
    let user = found.user.as_deref().filter(|it| !it.is_empty());
    match user {
        Some(user) if kubeconfig.auth_infos.iter().all(|it| it.name != user) => Err(format!(
            "its context {name} names the user {user:?}, which it does not have: correct one of them"
        )),
        _ => Ok(()),
    }
}

/// The error of an unusable kubeconfig.
pub(super) fn invalid(path: Option<&Path>, reason: String) -> Error {
    let field = match path {
        Some(path) => format!("kubeconfig {}", path.display()),
        None => "kubeconfig".to_owned(),
    };
    Error::invalid(field, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "clusters: [{name: c, cluster: {server: 'https://10.0.0.1:6443'}}]\n\
         contexts: [{name: a, context: {cluster: c, user: u}}]\n\
         users: [{name: u, user: {token: t}}]\ncurrent-context: a\n";

    #[test]
    fn errors_do_not_repeat_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        for text in ["s3cret\n", "users: [\n  s3cret", "users: s3cret\n"] {
            std::fs::write(&path, text).unwrap();
            let error = read_kubeconfig(Some(&path)).unwrap_err().to_string();
            assert!(error.contains("line") && !error.contains('\n'), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn contexts_have_their_parts_or_are_named() {
        for (from, to, context, expected) in [
            ("", "", None, ""),
            ("", "", Some("a"), ""),
            (", user: u", "", None, ""),
            (
                "",
                "",
                Some("zz"),
                "no context zz: name one by --context, of a",
            ),
            (
                "current-context: a",
                "current-context: b",
                None,
                "no context b",
            ),
            ("current-context: a", "", None, "no current context"),
            (
                "current-context: a",
                "current-context: ''",
                None,
                "no current context",
            ),
            ("user: u}", "user: x}", None, "names the user \"x\""),
            (
                "cluster: c,",
                "cluster: x,",
                None,
                "names the cluster \"x\"",
            ),
            (
                "contexts: [{name: a, context: {cluster: c, user: u}}]",
                "contexts: []",
                None,
                "no contexts",
            ),
        ] {
            let kubeconfig = Kubeconfig::from_yaml(&GOOD.replacen(from, to, 1)).unwrap();
            match check_context(&kubeconfig, context) {
                Ok(()) => assert_eq!(expected, "", "{from} {to}"),
                Err(error) => assert!(!expected.is_empty() && error.contains(expected), "{error}"),
            }
        }
    }
}
