//! How a kept installer is started.
//!
//! A dynamically linked one always runs by the loader and on the libraries of its own image, kept beside it: the
//! service's container has none, and what another machine happens to have may be of another release.

use std::path::{Path, PathBuf};

/// Folder of the loader and the libraries, beside the program.
pub(super) const LIBRARIES: &str = "lib";
/// Folder of OpenSSL's providers, in that of the libraries.
pub(super) const PROVIDERS: &str = "ossl-modules";
/// OpenSSL's configuration, in the folder of the libraries.
pub(super) const OPENSSL_CONFIG: &str = "openssl.cnf";

/// A program, and the loader that starts it if it needs one.
#[derive(Debug, Clone)]
pub(super) struct Launch {
    program: PathBuf,
    loader: Option<PathBuf>,
}

impl Launch {
    /// `program`, whose header names `interpreter`; its libraries lie beside it.
    pub(super) fn new(program: PathBuf, interpreter: Option<&str>) -> Self {
        let loader = interpreter.map(|interpreter| {
            let name = interpreter.rsplit('/').next().unwrap_or(interpreter);
            program.with_file_name(LIBRARIES).join(name)
        });
        Self { program, loader }
    }

    /// Whether everything is there that was put beside the program.
    pub(super) fn is_whole(&self) -> bool {
        self.loader.as_deref().is_none_or(Path::is_file)
    }

    /// What is executed, and the arguments that come before those of the program.
    pub(super) fn command(&self) -> (PathBuf, Vec<String>) {
        let Some((loader, mut arguments)) = self.loader_command() else {
            return (self.program.clone(), Vec::new());
        };
        arguments.push(text(&self.program));
        (loader, arguments)
    }

    /// The same for the loader listing what the program needs and where it is found, without starting it.
    pub(super) fn list_command(&self) -> Option<(PathBuf, Vec<String>)> {
        let (loader, mut arguments) = self.loader_command()?;
        arguments.extend(["--list".to_owned(), text(&self.program)]);
        Some((loader, arguments))
    }

    fn loader_command(&self) -> Option<(PathBuf, Vec<String>)> {
        let loader = self.loader.clone()?;
        let arguments = vec!["--library-path".to_owned(), text(&self.libraries())];
        Some((loader, arguments))
    }

    /// The folder of the program and its libraries.
    pub(super) fn folder(&self) -> PathBuf {
        self.program.parent().unwrap_or(&self.program).to_owned()
    }

    /// Where the libraries are.
    pub(super) fn libraries(&self) -> PathBuf {
        self.program.with_file_name(LIBRARIES)
    }

    /// Variables that lead to what libraries look for at fixed places.
    pub(super) fn environment(&self) -> Vec<(&'static str, String)> {
        if self.loader.is_none() {
            return Vec::new();
        }
        let libraries = self.libraries();
        [
            ("OPENSSL_MODULES", libraries.join(PROVIDERS)),
            ("OPENSSL_CONF", libraries.join(OPENSSL_CONFIG)),
        ]
        .into_iter()
        .filter(|(_, path)| path.exists())
        .map(|(name, path)| (name, text(&path)))
        .collect()
    }
}

/// Paths below the service's own folder, whose name is text.
fn text(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments((program, arguments): (PathBuf, Vec<String>)) -> Vec<String> {
        std::iter::once(text(&program)).chain(arguments).collect()
    }

    #[test]
    fn a_static_program_runs_by_itself() {
        let launch = Launch::new("/cache/a/openshift-install".into(), None);
        assert_eq!(arguments(launch.command()), ["/cache/a/openshift-install"]);
        assert!(launch.list_command().is_none());
        assert!(launch.environment().is_empty());
        assert!(launch.is_whole());
    }

    #[test]
    fn a_dynamic_program_runs_by_its_own_loader() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let program = folder.path().join("openshift-install");
        let launch = Launch::new(program, Some("/lib64/ld-linux-x86-64.so.2"));
        assert!(!launch.is_whole());
        std::fs::create_dir_all(folder.path().join("lib/ossl-modules")).unwrap();
        std::fs::write(at("lib/ld-linux-x86-64.so.2"), "").unwrap();
        assert!(launch.is_whole());
        assert_eq!(
            arguments(launch.command()),
            [
                at("lib/ld-linux-x86-64.so.2"),
                "--library-path".to_owned(),
                at("lib"),
                at("openshift-install"),
            ]
        );
        let expected = [("OPENSSL_MODULES", at("lib/ossl-modules"))];
        assert_eq!(launch.environment(), expected);
        std::fs::write(at("lib/openssl.cnf"), "").unwrap();
        assert_eq!(launch.environment().len(), 2);
    }
}
