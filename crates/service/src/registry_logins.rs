//! Logins for registries, from where tools for containers keep them.
//!
//! Source: containers-auth.json(5); docker's `config.json`.

#![expect(unreachable_pub, reason = "the macro declares what a server exports")]

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use oci::Credentials;

use crate::Error;

crate::settings! {
    /// Where the files are.
    pub struct Places {
        /// A file of logins that is taken before the others.
        registry_auth_file: Option<PathBuf> = "",
        /// Folder of the session.
        xdg_runtime_dir: Option<PathBuf> = "",
        /// Folder of the user's settings.
        xdg_config_home: Option<PathBuf> = "",
        /// Folder of docker's settings, or the file itself.
        docker_config: Option<PathBuf> = "",
        /// Home directory of the user.
        home: Option<PathBuf> = "",
    }
}

/// Those in `file`; without one, those in the first of the usual files that is there; without any, none.
///
/// Errors: a file that cannot be read, or holds something else.
pub fn registry_logins(file: Option<&Path>) -> Result<Credentials, Error> {
    if let Some(file) = file {
        return read(file)?.ok_or_else(|| Error::new(reading(file), "it is not there"));
    }
    let places = Places::load(None).map_err(|e| Error::new("looking for logins", e))?;
    // Whoever names a file means that one.
    if let Some(file) = places.registry_auth_file {
        return registry_logins(Some(&file));
    }
    let below = |folder: Option<&PathBuf>, name: &str| folder.map(|folder| folder.join(name));
    let home = places.home.as_ref();
    let settings = places.xdg_config_home.or_else(|| below(home, ".config"));
    // The folder that docker's tools mean, or the file itself.
    let docker_config = match places.docker_config {
        Some(path) if path.is_file() => Some(path),
        folder => below(folder.as_ref(), "config.json"),
    };
    let candidates = [
        docker_config,
        below(places.xdg_runtime_dir.as_ref(), "containers/auth.json"),
        below(settings.as_ref(), "containers/auth.json"),
        below(home, ".docker/config.json"),
    ];
    for file in candidates.into_iter().flatten() {
        if let Some(credentials) = read(&file)? {
            return Ok(credentials);
        }
    }
    Ok(Credentials::anonymous())
}

fn reading(file: &Path) -> String {
    format!("reading the logins in {}", file.display())
}

fn read(file: &Path) -> Result<Option<Credentials>, Error> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::new(reading(file), error)),
    };
    let credentials = Credentials::from_auth_file(&text);
    credentials
        .map(Some)
        .map_err(|e| Error::new(reading(file), e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_file_has_to_be_there_and_to_be_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("auth.json");
        let refused = |text: Option<&str>| {
            if let Some(text) = text {
                std::fs::write(&file, text).unwrap();
            }
            registry_logins(Some(&file)).unwrap_err().to_string()
        };
        assert!(refused(None).contains("not there"));
        let told = refused(Some(r#"{"auths":{"a:1":{"auth":"hunter2"}}}"#));
        assert!(
            told.contains("auth.json") && !told.contains("hunter2"),
            "{told}"
        );
        std::fs::write(&file, r#"{"auths":{"a:1":{"auth":"dTpw"}}}"#).unwrap();
        let logins = registry_logins(Some(&file)).unwrap();
        assert_eq!(logins.lookup("a:1", None).unwrap().user, "u");
    }
}
