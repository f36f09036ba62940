//! Sections that are named and not complete, or that exclude each other.

use service::settings::{Problems, Values};

use super::key::{is_below, problem};

/// A section that means nothing without one of its keys.
struct Needed {
    section: &'static str,
    /// One of them is enough.
    keys: &'static [&'static str],
    reason: &'static str,
}

static NEEDED: &[Needed] = &[
    Needed {
        section: "registry_auth_htpasswd",
        keys: &["registry_auth_htpasswd_path"],
        reason: "without auth.htpasswd.path every client could push",
    },
    Needed {
        section: "registry_auth_token",
        // Each of them makes the others required.
        keys: &[
            "registry_auth_token_service",
            "registry_auth_token_realm",
            "registry_auth_token_issuer",
            "registry_auth_token_rootcertbundle",
            "registry_auth_token_jwks",
        ],
        reason: "without auth.token.service every client could push",
    },
    Needed {
        section: "registry_storage_s3",
        keys: &["registry_storage_s3_bucket"],
        reason: "without storage.s3.bucket content would go to a folder",
    },
];

/// Reports sections that would silently not be used.
pub(super) fn judge(values: &Values, problems: &mut Problems) {
    let before = problems.0.len();
    judge_users(values, problems);
    if problems.0.len() > before {
        return;
    }
    for needed in NEEDED {
        let is_complete = needed.keys.iter().any(|key| is_set(values, key));
        if let Some(name) = mentioned(values, needed.section).filter(|_| !is_complete) {
            problems.0.push(problem(values, &name, needed.reason));
        }
    }
    judge_storage(values, problems);
}

/// `auth` may be the kind alone: it has to agree with the keys.
fn judge_users(values: &Values, problems: &mut Problems) {
    let name = "registry_auth";
    let has_users = is_set(values, "registry_auth_htpasswd_path");
    let has_tokens = is_set(values, "registry_auth_token_service");
    let reason = match values.text(name) {
        Some("token") if !has_tokens => {
            "without REGISTRY_AUTH_TOKEN_SERVICE every login would fail"
        }
        Some("none") if has_tokens => "contradicts REGISTRY_AUTH_TOKEN_SERVICE",
        Some("htpasswd") if !has_users => {
            "without REGISTRY_AUTH_HTPASSWD_PATH every login would fail"
        }
        Some("none") if has_users => "contradicts REGISTRY_AUTH_HTPASSWD_PATH",
        _ => return,
    };
    problems.0.push(problem(values, name, reason));
}

/// Content is in one place. `REGISTRY_STORAGE` decides where a file names the other.
fn judge_storage(values: &Values, problems: &mut Problems) {
    let name = "registry_storage";
    if is_set(values, name) {
        return;
    }
    let folder = mentioned(values, "registry_storage_filesystem");
    if let Some(folder) = folder.filter(|_| is_set(values, "registry_storage_s3_bucket")) {
        let reason = "storage.filesystem and storage.s3 exclude each other: remove one, or say which with REGISTRY_STORAGE";
        let place = values.place(&folder);
        let reason = place.map_or(reason.to_owned(), |place| format!("{place}: {reason}"));
        problems.0.push(problem(values, name, &reason));
    }
}

fn is_set(values: &Values, name: &str) -> bool {
    values.text(name).is_some_and(|text| !text.is_empty())
}

/// The first name of a section that a file mentions, if only as empty, or that has a value elsewhere.
fn mentioned(values: &Values, section: &str) -> Option<String> {
    let mut names = values.names(section).filter(|name| is_below(section, name));
    names
        .find(|name| is_set(values, name) || values.place(name).is_some())
        .map(str::to_owned)
}
