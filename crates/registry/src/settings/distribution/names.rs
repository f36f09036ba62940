//! Handling of each of distribution's names.

use service::settings::{FromValues as _, Problem, Problems, Shape, Values, Variable};

use super::key::{NO_SUCH_USERS, PREFIX, is_below, placed, problem};
use super::{Settings, closed, sections};

/// A name that distribution reads and we do not.
struct Foreign {
    /// The name, and all below it.
    name: &'static str,
    fate: Fate,
    why: &'static str,
}

#[derive(PartialEq)]
enum Fate {
    /// Its purpose is served anyway, or void here.
    NoEffect,
    /// A user would rely on it, and it is not done.
    Refused,
}

const fn no_effect(name: &'static str, why: &'static str) -> Foreign {
    let fate = Fate::NoEffect;
    Foreign { name, fate, why }
}

const fn refused(name: &'static str, why: &'static str) -> Foreign {
    let fate = Fate::Refused;
    Foreign { name, fate, why }
}

const NO_SUCH_STORAGE: &str =
    "content is kept in a folder or a bucket here: storage.filesystem, storage.s3";
const INDEXED: &str = "an index beside the content answers";

/// In the order in which they are looked at. Names of [`Settings`] are not among them.
static FOREIGN: &[Foreign] = &[
    no_effect(
        "registry_http_secret",
        "uploads have names that cannot be guessed, and survive restarts",
    ),
    refused(
        "registry_http_tls_letsencrypt",
        "certificates are not fetched: `atoll registry cert` makes one",
    ),
    no_effect("registry_log_fields", "the log has its own fields"),
    no_effect(
        "registry_log_hooks",
        "nothing is sent by mail: watch the log or the metrics",
    ),
    no_effect("registry_log_reportcaller", "errors name the operation"),
    no_effect("registry_reporting", "nothing is reported to strangers"),
    no_effect("registry_storage_cache", INDEXED),
    no_effect("registry_redis", INDEXED),
    no_effect(
        "registry_storage_redirect",
        "content is always sent by the registry",
    ),
    no_effect("registry_storage_tag", INDEXED),
    no_effect(
        "registry_storage_filesystem_maxthreads",
        "work on files is bounded",
    ),
    no_effect(
        "registry_storage_s3_storageclass",
        "objects have the class of the bucket; a rule of the bucket can change it",
    ),
    no_effect(
        "registry_storage_s3_objectacl",
        "access to objects is configured in the bucket",
    ),
    no_effect(
        "registry_storage_s3_v4auth",
        "requests are always signed so",
    ),
    no_effect(
        "registry_storage_s3_multipartcopychunksize",
        "copies are server-side where possible",
    ),
    no_effect(
        "registry_storage_s3_multipartcopymaxconcurrency",
        "copies are server-side where possible",
    ),
    no_effect(
        "registry_storage_s3_multipartcopythresholdsize",
        "copies are server-side where possible",
    ),
    no_effect(
        "registry_storage_s3_useragent",
        "the registry has a name of its own",
    ),
    no_effect(
        "registry_storage_s3_loglevel",
        "requests that fail are logged",
    ),
    refused(
        "registry_storage_s3_accelerate",
        "set the endpoint: storage.s3.regionendpoint",
    ),
    refused(
        "registry_storage_s3_usedualstack",
        "set the endpoint: storage.s3.regionendpoint",
    ),
    refused("registry_storage_gcs", NO_SUCH_STORAGE),
    refused("registry_storage_azure", NO_SUCH_STORAGE),
    refused("registry_storage_swift", NO_SUCH_STORAGE),
    refused("registry_storage_oss", NO_SUCH_STORAGE),
    refused("registry_storage_inmemory", NO_SUCH_STORAGE),
    refused("registry_auth_silly", NO_SUCH_USERS),
    refused(
        "registry_middleware",
        "nothing stands between the registry and its content",
    ),
    refused(
        "registry_proxy_exec",
        "nothing is run for a password: registry_proxy_password",
    ),
    no_effect(
        "registry_proxy_cachewritetimeout",
        "a fetch ends when its upstream sends nothing more",
    ),
    no_effect(
        "registry_policy_repository_classes",
        "push access covers images and plugins",
    ),
    no_effect("registry_health_http", "watch other servers from outside"),
    no_effect("registry_health_tcp", "watch other servers from outside"),
    no_effect(
        "registry_compatibility_schema1",
        "manifests of schema 1 are not signed anew",
    ),
    no_effect(
        "registry_validation_enabled",
        "manifests are checked unless validation.disabled",
    ),
];

/// Spelling of a section as one value.
struct Choice {
    name: &'static str,
    taken: &'static [&'static str],
    why: &'static str,
}

static CHOICES: &[Choice] = &[Choice {
    name: "registry_auth",
    taken: &["htpasswd", "token", "none"],
    why: NO_SUCH_USERS,
}];

/// Reports the handling of each name that is not one of the settings.
pub(super) fn judge(values: &Values, problems: &mut Problems, remarks: &mut Vec<Problem>) {
    let mut reported = Vec::new();
    let prefix = format!("{PREFIX}_");
    for name in values.names(&prefix) {
        let text = values.text(name).unwrap_or_default();
        let is_mentioned = text.is_empty() && is_above(name);
        if is_mentioned || Settings::VARIABLES.iter().any(|known| is_of(known, name)) {
            continue;
        }
        if let Some(choice) = CHOICES.iter().find(|choice| choice.name == name) {
            if !choice.taken.contains(&text) {
                problems.0.push(problem(values, name, choice.why));
            }
            continue;
        }
        match FOREIGN.iter().find(|foreign| is_below(foreign.name, name)) {
            // Nothing is asked for by an empty value, but by the name of a driver alone.
            Some(foreign) if foreign.fate == Fate::Refused => {
                if !text.is_empty() || foreign.name == name {
                    problems.0.push(problem(values, name, foreign.why));
                }
            }
            Some(foreign) => {
                if !reported.contains(&foreign.name) {
                    reported.push(foreign.name);
                    let why = format!("has no effect here: {}", foreign.why);
                    let place = placed(values, name, &why);
                    remarks.push(Problem::new(foreign.name.to_uppercase(), place));
                }
            }
            None => {
                let meant = nearest(name);
                if let Some(reason) = closed::refusal(values, name, meant) {
                    problems.0.push(problem(values, name, &reason));
                    continue;
                }
                let meant = meant.map_or(String::new(), |meant| {
                    format!("; {} may be meant", meant.to_uppercase())
                });
                let reason = format!("unknown and ignored{meant}");
                remarks.push(problem(values, name, &reason));
            }
        }
    }
    // Sections that a misspelt key leaves incomplete have been reported with it.
    if problems.0.is_empty() {
        sections::judge(values, problems);
    }
}

/// Whether `name` belongs to a setting.
fn is_of(known: &Variable, name: &str) -> bool {
    let Some(rest) = name.strip_prefix(known.field) else {
        return false;
    };
    match (rest.strip_prefix('_'), known.shape) {
        _ if rest.is_empty() => true,
        (Some(_), Shape::Parts) => true,
        (Some(index), Shape::List) => index.bytes().all(|byte| byte.is_ascii_digit()),
        (Some("file"), _) => known.is_secret,
        _ => false,
    }
}

/// Whether something that is known stands below `name`.
fn is_above(name: &str) -> bool {
    let settings = Settings::VARIABLES.iter().map(|known| known.field);
    let mut known = settings.chain(FOREIGN.iter().map(|foreign| foreign.name));
    known.any(|known| known != name && is_below(name, known))
}

/// The known name that is the least letters away, if that is near at all.
fn nearest(name: &str) -> Option<&'static str> {
    let settings = Settings::VARIABLES.iter().map(|known| known.field);
    let known = settings.chain(FOREIGN.iter().map(|foreign| foreign.name));
    model::nearest(name, known, name.len() / 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_foreign_that_is_ours() {
        for known in Settings::VARIABLES {
            let foreign = FOREIGN.iter().find(|foreign| foreign.name == known.field);
            assert!(foreign.is_none(), "{}", known.field);
        }
    }
}
