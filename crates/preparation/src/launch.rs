//! Command and environment of a cached installer.
//!
//! A dynamically linked one runs with the loader and the libraries of its own image, cached beside it: the service's
//! container has none, and the host's may be of another release.

use std::path::{Path, PathBuf};

/// Folder of the loader and the libraries, beside the program.
pub(crate) const LIBRARIES: &str = "lib";
/// Folder of OpenSSL's providers, in that of the libraries.
pub(crate) const PROVIDERS: &str = "ossl-modules";
/// OpenSSL's configuration, in that of the libraries.
pub(crate) const OPENSSL_CONFIG: &str = "openssl.cnf";

/// A program, and its dynamic loader.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    program: PathBuf,
    loader: Option<PathBuf>,
}

impl Launch {
    /// `program` with the `interpreter` of its header; its libraries are beside it.
    pub(crate) fn new(program: PathBuf, interpreter: Option<&str>) -> Self {
        let loader = interpreter.map(|interpreter| {
            let name = interpreter.rsplit('/').next().unwrap_or(interpreter);
            program.with_file_name(LIBRARIES).join(name)
        });
        Self { program, loader }
    }

    /// Whether the loader exists.
    pub(crate) fn is_complete(&self) -> bool {
        self.loader.as_deref().is_none_or(Path::is_file)
    }

    /// Executable, and the arguments before those of the program.
    pub(crate) fn command(&self) -> (PathBuf, Vec<String>) {
        let Some((loader, mut arguments)) = self.loader_command() else {
            return (self.program.clone(), Vec::new());
        };
        arguments.push(text(&self.program));
        (loader, arguments)
    }

    /// The same for `ld.so --list`, which prints the program's libraries without running it.
    pub(crate) fn list_command(&self) -> Option<(PathBuf, Vec<String>)> {
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
    pub(crate) fn folder(&self) -> PathBuf {
        self.program.parent().unwrap_or(&self.program).to_owned()
    }

    /// Folder of the libraries.
    pub(crate) fn libraries(&self) -> PathBuf {
        self.program.with_file_name(LIBRARIES)
    }

    /// Environment variables for OpenSSL, whose default paths are absolute.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
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

/// Text of a path below the service's own folder, which is UTF-8.
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
    fn static_programs_run_without_a_loader() {
        let launch = Launch::new("/cache/a/openshift-install".into(), None);
        assert_eq!(arguments(launch.command()), ["/cache/a/openshift-install"]);
        assert!(launch.list_command().is_none());
        assert!(launch.environment().is_empty());
        assert!(launch.is_complete());
    }

    #[test]
    fn dynamic_programs_run_with_their_own_loader() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let program = folder.path().join("openshift-install");
        let launch = Launch::new(program, Some("/lib64/ld-linux-x86-64.so.2"));
        assert!(!launch.is_complete());
        std::fs::create_dir_all(folder.path().join("lib/ossl-modules")).unwrap();
        std::fs::write(at("lib/ld-linux-x86-64.so.2"), "").unwrap();
        assert!(launch.is_complete());
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
