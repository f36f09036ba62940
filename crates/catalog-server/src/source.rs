//! Sources of catalogs: folders, registry images, image layouts.
//!
//! A source yields its current revision, then the content of that very revision: a tag that moves meanwhile, or a
//! folder that is written while it is read, never results in a mixed catalog.

mod image;
mod staging;

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use catalog::cache::FolderStat;
use model::Error;
use oci::{Digest, Reference, Transport};
use oci_client::Client;
use oci_client::image::{ImageLocation, Layout};

pub use staging::Staging;

/// Suffix of cache files.
pub(crate) const CACHE_SUFFIX: &str = ".cache";
/// Digits of the source's digest in cache names: enough to distinguish a few images. Units: characters.
const NAME_LENGTH: usize = 16;

/// Source of a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CatalogSource {
    /// A folder of a file-based catalog.
    Folder(PathBuf),
    /// An image in a registry.
    Registry(Reference),
    /// An image in an image layout.
    Layout(Layout),
}

/// Revision of a source: changes with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision(String);

/// The files of a catalog. Those extracted from an image are removed on drop.
#[derive(Debug)]
pub struct CatalogFiles {
    folder: PathBuf,
    _staging: Option<Staging>,
}

impl CatalogSource {
    /// The current revision.
    ///
    /// Errors: NotFound – no such source; Unavailable, Unauthenticated, Forbidden – the registry's; Internal – an
    /// unreadable folder.
    pub async fn revision(&self, client: &Client) -> Result<Revision, Error> {
        match self.location(client) {
            Some(place) => Ok(Revision(place.digest().await?.to_string())),
            None => folder_revision(self.folder().to_owned()).await,
        }
    }

    /// The files of `revision`; those of an image are extracted below `scratch`.
    ///
    /// Errors: as [`Self::revision`]; Invalid – an image without a catalog, or with files that escape it; TooLarge.
    pub async fn content(
        &self,
        client: &Client,
        revision: &Revision,
        scratch: &Path,
    ) -> Result<CatalogFiles, Error> {
        let Some(place) = self.location(client) else {
            return Ok(CatalogFiles {
                folder: self.folder().to_owned(),
                _staging: None,
            });
        };
        let staging = image::extract(&place, &revision.0.parse()?, scratch).await?;
        Ok(CatalogFiles {
            folder: staging.path().join(image::CATALOG),
            _staging: Some(staging),
        })
    }

    /// File name of the cache of the catalog `name`. That of a folder does not depend on its path, so the cache
    /// survives a move; that of an image identifies the image.
    pub fn cache_file(&self, name: &str) -> String {
        if matches!(self, Self::Folder(_)) {
            return format!("{name}{CACHE_SUFFIX}");
        }
        let digest = Digest::sha256(self.to_string().as_bytes());
        format!("{name}-{}{CACHE_SUFFIX}", &digest.hex()[..NAME_LENGTH])
    }

    /// Whether the source is pinned by digest and can never change.
    pub fn is_fixed(&self) -> bool {
        matches!(self, Self::Registry(reference) if reference.digest.is_some())
    }

    /// Location of an image; `None` for a folder.
    pub fn location(&self, client: &Client) -> Option<ImageLocation> {
        match self {
            Self::Folder(_) => None,
            Self::Layout(layout) => Some(ImageLocation::Layout(layout.clone())),
            Self::Registry(reference) => Some(ImageLocation::Registry {
                client: client.clone(),
                reference: reference.clone(),
            }),
        }
    }

    fn folder(&self) -> &Path {
        match self {
            Self::Folder(folder) | Self::Layout(Layout { folder, .. }) => folder,
            Self::Registry(_) => Path::new(""),
        }
    }
}

/// Revision of a folder from file metadata: polling every few seconds reads no file.
async fn folder_revision(folder: PathBuf) -> Result<Revision, Error> {
    let stat = move || {
        // A missing folder is not found, rather than an invalid catalog.
        let found = fs::read_dir(&folder).and_then(|_| FolderStat::of_folder(&folder));
        let failed = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => Error::not_found("file or folder", folder.display()),
            _ => Error::internal(
                format!("reading the metadata of {}", folder.display()),
                error,
            ),
        };
        found.map(|stat| Revision(stat.to_string())).map_err(failed)
    };
    tokio::task::spawn_blocking(stat)
        .await
        .unwrap_or_else(|error| Err(Error::internal("reading the metadata of a folder", error)))
}

impl Revision {
    /// Revision of a cache of a previous run.
    pub(crate) fn unknown() -> Self {
        Self(String::new())
    }

    pub(crate) fn is_known(&self) -> bool {
        !self.0.is_empty()
    }
}

impl CatalogFiles {
    /// The files of a permanent folder.
    pub fn of_folder(folder: PathBuf) -> Self {
        Self {
            folder,
            _staging: None,
        }
    }

    /// The folder with the files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl FromStr for CatalogSource {
    type Err = String;

    /// Registry images start with a host; everything else is a folder.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is neither a folder nor an image");
        let parsed: Option<Result<Self, Error>> = match Transport::split(text) {
            (Some(Transport::Oci), layout) => Some(layout.parse().map(Self::Layout)),
            (Some(Transport::Docker), image) => Some(image.parse().map(Self::Registry)),
            (None, _) => None,
        };
        if let Some(parsed) = parsed {
            return parsed.map_err(|e| e.to_string());
        }
        if text.is_empty() {
            return Err(wrong());
        }
        if text.starts_with(['/', '.']) {
            return Ok(Self::Folder(text.into()));
        }
        match text.parse() {
            Ok(reference) => Ok(Self::Registry(reference)),
            // Names with a tag or digest are not folders.
            Err(error) if text.contains([':', '@']) => Err(Error::to_string(&error)),
            Err(_) => Ok(Self::Folder(text.into())),
        }
    }
}

impl fmt::Display for CatalogSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => folder.display().fmt(f),
            Self::Registry(reference) => reference.fmt(f),
            Self::Layout(layout) => write!(f, "{}{layout}", Transport::Oci),
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use oci_client::ClientOptions;

    use super::*;

    #[tokio::test]
    async fn every_change_of_a_folder_changes_its_revision() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let source = CatalogSource::Folder(folder.path().to_owned());
        let client = Client::new(ClientOptions::default()).unwrap();
        let mut seen = Vec::new();
        let mut changed = async |what: &str| {
            let revision = source.revision(&client).await.unwrap();
            assert!(!seen.contains(&revision), "{what}");
            assert_eq!(source.revision(&client).await.unwrap(), revision, "{what}");
            seen.push(revision);
        };
        fs::write(path("a"), "1").unwrap();
        changed("a file").await;
        fs::write(path("b"), "2").unwrap();
        fs::rename(path("b"), path("a")).unwrap();
        changed("a replaced file").await;
        fs::create_dir(path("deep")).unwrap();
        fs::rename(path("a"), path("deep/a")).unwrap();
        changed("a moved file").await;
        symlink("deep/a", path("link")).unwrap();
        changed("a link").await;
        fs::write(path("deep/a"), "other").unwrap();
        changed("behind the link").await;
        fs::remove_file(path("deep/a")).unwrap();
        changed("a dangling link").await;
    }

    #[tokio::test]
    async fn a_missing_folder_is_named() {
        let client = Client::new(ClientOptions::default()).unwrap();
        let source = CatalogSource::Folder("/none/here".into());
        let error = source.revision(&client).await.unwrap_err();
        assert!(
            matches!(&error, Error::NotFound { id, .. } if id == "/none/here"),
            "{error}"
        );
    }

    #[test]
    fn sources_are_parsed() {
        for (text, is_right) in [
            (
                "/configs",
                (|s| matches!(s, CatalogSource::Folder(_))) as fn(&CatalogSource) -> bool,
            ),
            ("./a.b/c", |s| matches!(s, CatalogSource::Folder(_))),
            ("configs", |s| matches!(s, CatalogSource::Folder(_))),
            ("/odd:name", |s| matches!(s, CatalogSource::Folder(_))),
            ("a.b/c:v1", |s| matches!(s, CatalogSource::Registry(_))),
            ("docker://localhost:5000/c", |s| {
                matches!(s, CatalogSource::Registry(_))
            }),
            ("docker://oci:5000/repo", |s| {
                matches!(s, CatalogSource::Registry(_))
            }),
            ("oci:5000/repo:tag", |s| {
                matches!(s, CatalogSource::Registry(_))
            }),
            ("oci.io/repo:tag", |s| {
                matches!(s, CatalogSource::Registry(_))
            }),
            ("oci/repo", |s| matches!(s, CatalogSource::Folder(_))),
            (
                "oci:/a/b",
                |s| matches!(s, CatalogSource::Layout(l) if l.name.is_none()),
            ),
            (
                "oci:/a/b:v1",
                |s| matches!(s, CatalogSource::Layout(l) if l.name.is_some()),
            ),
        ] {
            let source: CatalogSource = text.parse().unwrap();
            assert!(is_right(&source), "{text}: {source:?}");
            assert_eq!(source.to_string(), text.trim_start_matches("docker://"));
        }
        // As in image-set configurations.
        for (text, folder) in [
            ("oci:a/b", "a/b"),
            ("oci://a/b:v1", "a/b"),
            ("oci:///a/b", "/a/b"),
        ] {
            let source: CatalogSource = text.parse().unwrap();
            assert!(matches!(source, CatalogSource::Layout(_)), "{text}");
            assert_eq!(source.folder(), Path::new(folder), "{text}");
        }
        for wrong in [
            "",
            "oci:",
            "oci:/a:-x",
            "docker://",
            "a.b/c:d:e",
            "name:tag",
        ] {
            assert!(wrong.parse::<CatalogSource>().is_err(), "{wrong}");
        }
    }
}
