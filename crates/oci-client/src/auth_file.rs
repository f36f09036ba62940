//! Authentication files of container tools.
//!
//! Source: containers-auth.json(5); docker's `config.json`.

use std::env;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use model::Error;

use crate::Credentials;

/// Reads the logins from `file`, or else from the one that `REGISTRY_AUTH_FILE` names; by default from all the usual files
/// that exist: of those with a login for a registry, the first counts. A usual file that cannot be read is passed over.
///
/// Errors: Invalid – a named file that is missing, unreadable or malformed.
pub fn registry_logins(file: Option<&Path>) -> Result<Credentials, Error> {
    // A file that a flag or variable names must exist.
    if let Some(file) = file
        .map(PathBuf::from)
        .or_else(|| path("REGISTRY_AUTH_FILE"))
    {
        return read(&file)?.ok_or_else(|| invalid(&file, &"it does not exist"));
    }
    let mut all = Credentials::anonymous();
    for file in usual_files() {
        all = match read(&file) {
            Ok(Some(credentials)) => all.then(credentials),
            Ok(None) => all,
            Err(error) => all.then_unreadable(error.chain()),
        };
    }
    Ok(all)
}

/// Authentication files of podman and docker, in order. The variables are theirs, not settings of ours.
fn usual_files() -> impl Iterator<Item = PathBuf> {
    let home = path("HOME");
    let config_home = path("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
    // The folder of docker's tools, or the file itself.
    let docker = path("DOCKER_CONFIG").map(|path| {
        if path.is_file() {
            path
        } else {
            path.join("config.json")
        }
    });
    // Logins of users without a session, as of root in scripts.
    let per_user = || {
        PathBuf::from(format!(
            "/run/containers/{}",
            rustix::process::getuid().as_raw()
        ))
    };
    let runtime = Some(path("XDG_RUNTIME_DIR").map_or_else(
        || per_user().join("auth.json"),
        |folder| folder.join("containers/auth.json"),
    ));
    let config = config_home.map(|folder| folder.join("containers/auth.json"));
    let fallback = home.map(|home| home.join(".docker/config.json"));
    [docker, runtime, config, fallback].into_iter().flatten()
}

/// A path in an environment variable. Empty ones count as unset.
fn path(variable: &str) -> Option<PathBuf> {
    let value = env::var_os(variable).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

fn invalid(file: &Path, reason: &dyn std::fmt::Display) -> Error {
    Error::invalid(
        format!("the registry logins in {}", file.display()),
        reason.to_string(),
    )
}

fn read(file: &Path) -> Result<Option<Credentials>, Error> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(invalid(file, &error)),
    };
    let credentials = Credentials::from_auth_file(&text);
    credentials.map(Some).map_err(|e| invalid(file, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_file_must_exist_and_parse() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("auth.json");
        let refused = |text: Option<&str>| {
            if let Some(text) = text {
                std::fs::write(&file, text).unwrap();
            }
            registry_logins(Some(&file)).unwrap_err().to_string()
        };
        assert!(refused(None).contains("not exist"));
        let message = refused(Some(r#"{"auths":"hunter2"}"#));
        assert!(
            message.contains("auth.json") && !message.contains("hunter2"),
            "{message}"
        );
        std::fs::write(&file, r#"{"auths":{"a:1":{"auth":"dTpw"}}}"#).unwrap();
        let logins = registry_logins(Some(&file)).unwrap();
        assert_eq!(logins.lookup("a:1", None).unwrap().user, "u");
    }
}
