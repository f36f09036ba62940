//! Places of archives: a path of this machine, or the URL of a folder or file of a web server.

use std::fmt;
use std::path::{Path, PathBuf};

use model::Error;
use net::web::{self, FileServer};
use tokio::runtime::Handle;
use url::Url;

/// The place of an archive set.
#[derive(Debug, Clone)]
pub enum ArchiveSource {
    /// A folder, or a file of the set.
    Local(PathBuf),
    Web(WebArchives),
}

/// A folder of a web server, which lists its files, or a file of the set.
#[derive(Debug, Clone)]
pub struct WebArchives {
    pub(super) server: FileServer,
    pub(super) url: Url,
    pub(super) runtime: Handle,
}

impl ArchiveSource {
    /// Whether a text is a URL.
    pub fn is_url(text: &str) -> bool {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|it| ["http", "https"].contains(&it.to_ascii_lowercase().as_str()))
    }

    /// The folder or file at a URL. `runtime` drives the requests of blocking reads.
    pub fn web(server: FileServer, url: Url, runtime: Handle) -> Self {
        Self::Web(WebArchives {
            server,
            url,
            runtime,
        })
    }
}

/// Parses the URL of a folder or file. Errors do not repeat it: it may hold a password.
///
/// Errors: Invalid – malformed, or with a login, a query or a fragment.
pub fn archive_url(text: &str) -> Result<Url, Error> {
    let wrong = |reason: &str| Error::invalid("URL of archives", reason);
    let url: Url = text
        .parse()
        .map_err(|e: url::ParseError| wrong(&e.to_string()))?;
    if !url.username().is_empty() || url.password().is_some() {
        let reason = "it has a login, which others would read: put it into the authentication file, as `podman login` does";
        return Err(wrong(reason));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("expected a folder or file, without ? and #"));
    }
    Ok(url)
}

impl<P: AsRef<Path> + ?Sized> From<&P> for ArchiveSource {
    fn from(path: &P) -> Self {
        Self::Local(path.as_ref().to_owned())
    }
}

impl fmt::Display for ArchiveSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => path.display().fmt(f),
            Self::Web(place) => f.write_str(&web::shown(&place.url)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_no_login_and_errors_do_not_repeat_it() {
        for (text, part) in [
            ("https://me:secret@a.example/x/", "authentication file"),
            ("https://me@a.example/x/", "authentication file"),
            ("https://a.example/x/?token=secret", "without ?"),
            ("https://me:secret@", "empty host"),
        ] {
            let error = archive_url(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(archive_url("https://a.example/x").is_ok());
    }

    #[test]
    fn other_texts_are_paths() {
        assert!(ArchiveSource::is_url("HTTPS://a.example"));
        for path in ["out", "file://out", "https:/a", "./http", "http"] {
            assert!(!ArchiveSource::is_url(path), "{path}");
        }
    }
}
