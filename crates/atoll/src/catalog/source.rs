//! Catalog arguments of the command line, and opening them.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::catalog::cache::{BuildError, CatalogCache, build_new};
use ::catalog::write::{CatalogFormat, CatalogWriter};
use ::catalog::{CatalogProblems, Document, cores, sqlite};
use catalog_server::{CatalogFiles, CatalogSource, Staging};
use clap::Args;
use oci::{Reference, Tag};
use oci_client::{Client, ClientOptions, registry_logins};
use service::{Error, ResultExt as _};
use supervisor::settings::Settings;
use tokio::runtime::Runtime;

use super::notices;
use crate::terminal;

/// First bytes of SQLite databases.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// Access to registries.
#[derive(Debug, Clone, Args)]
pub(crate) struct RegistryAccessArgs {
    /// Path of the authentication file (pull secret). Default: the files of podman and docker
    #[arg(long, value_name = "FILE")]
    pub(crate) authfile: Option<PathBuf>,
    /// CA certificates (PEM) to trust in addition to the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Allow plain HTTP and disable certificate verification
    #[arg(long)]
    pub(crate) insecure: bool,
}

/// Opens catalogs; its temporary files are removed with it.
pub(crate) struct Opener {
    pub(super) client: Client,
    pub(super) runtime: Runtime,
    pub(super) scratch: Staging,
}

/// Error of opening a catalog.
pub(super) enum OpenError {
    /// The catalog is invalid.
    Problems(CatalogProblems),
    Other(Error),
}

impl RegistryAccessArgs {
    /// Client for registries.
    ///
    /// Errors: unusable authentication or certificate files.
    pub(crate) fn client(&self) -> Result<Client, Error> {
        let read = |path: &PathBuf| fs::read(path).doing(|| format!("reading {}", path.display()));
        let options = ClientOptions {
            credentials: registry_logins(self.authfile.as_deref())
                .doing("reading the authentication file")?,
            ca_pem: self.ca.as_ref().map(read).transpose()?,
            insecure: self.insecure,
            plain_http_remedy: Some("--insecure"),
            ..ClientOptions::default()
        };
        Client::new(options).doing("creating the registry client")
    }

    /// Opener with a client of these arguments.
    ///
    /// Errors: unusable files, no space for temporary files.
    pub(crate) fn open(&self) -> Result<Opener, Error> {
        Opener::new(self.client()?)
    }
}

impl Opener {
    /// Opener with a client.
    ///
    /// Errors: no space for temporary files.
    pub(crate) fn new(client: Client) -> Result<Self, Error> {
        let doing = "preparing to read catalogs";
        let settings = Settings::load(None).doing(doing)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .doing(doing)?;
        Ok(Self {
            client,
            runtime,
            scratch: Staging::new(&settings.tmpdir).doing(doing)?,
        })
    }

    /// Source named by `text`: an existing folder, or any source of the catalog server.
    ///
    /// Errors: neither.
    pub(super) fn source(text: &str) -> Result<CatalogSource, Error> {
        if Path::new(text).is_dir() {
            return Ok(CatalogSource::Folder(text.into()));
        }
        text.parse()
            .map_err(|reason: String| Error::new(format!("opening {text}"), reason))
    }

    /// Files of the catalog.
    ///
    /// Errors: a missing or unreadable catalog.
    pub(super) fn content(&self, text: &str) -> Result<CatalogFiles, Error> {
        if Path::new(text).is_file() {
            if !is_database(Path::new(text)) {
                let reason =
                    "expected a folder, an image or a database: give the folder that has the file";
                return Err(Error::new(format!("opening the file {text}"), reason));
            }
            return self.import(text);
        }
        let source = Self::source(text)?;
        let content = async {
            let revision = source.revision(&self.client).await?;
            let scratch = self.scratch.path();
            source.content(&self.client, &revision, scratch).await
        };
        self.runtime
            .block_on(content)
            .map_err(|e| e.chain())
            .doing(|| format!("opening {text}"))
    }

    /// All tags of an image's repository.
    ///
    /// Errors: those of the registry.
    pub(crate) fn tags(&self, image: &Reference) -> Result<Vec<Tag>, Error> {
        let tags = self.client.tags(image);
        self.runtime
            .block_on(tags)
            .map_err(|e| e.chain())
            .doing(|| format!("listing the tags of {image}"))
    }

    /// Imports a SQLite database as file-based catalog.
    fn import(&self, text: &str) -> Result<CatalogFiles, Error> {
        let doing = || format!("importing {text}");
        let folder = self.scratch.path().join(content_name(text));
        let mut writer = CatalogWriter::create(&folder, CatalogFormat::Json).doing(doing)?;
        let each = |name: &str, documents: Vec<Document>| writer.package(name, &documents);
        let import = sqlite::import(Path::new(text), each)
            .map_err(|e| Error::new(doing(), e.to_string()))?;
        writer.finish().doing(doing)?;
        terminal::notice(&format!("{text}: {}", import.notice));
        if !import.left_out.is_empty() {
            let left_out = import.left_out.join(", ");
            terminal::notice(&format!("{text}: deprecated bundles left out: {left_out}"));
        }
        Ok(CatalogFiles::of_folder(folder))
    }

    /// The catalog with the problems of its packages.
    ///
    /// Errors: as [`Self::content`]; all problems of a catalog of which no package is valid.
    pub(super) fn judged(&self, text: &str) -> Result<Arc<CatalogCache>, OpenError> {
        let content = self.content(text).map_err(OpenError::Other)?;
        let name = format!("{}.cache", content_name(text));
        let path = self.scratch.path().join(name);
        if let Ok(opened) = CatalogCache::open_any(&path) {
            return Ok(Arc::new(opened));
        }
        build_new(content.folder(), &path, cores()).map_err(|failure| match failure {
            BuildError::Invalid(problems) => OpenError::Problems(problems),
            error => OpenError::Other(Error::new(format!("reading {text}"), error)),
        })
    }

    /// The valid packages of the catalog. Prints a notice for each of the others.
    ///
    /// Errors: as [`Self::judged`], as text.
    pub(crate) fn cache(&self, text: &str) -> Result<Arc<CatalogCache>, Error> {
        let cache = self.judged(text).map_err(|failure| match failure {
            OpenError::Problems(problems) => {
                let reason = format!("invalid catalog\n{problems}");
                Error::new(format!("reading {text}"), reason)
            }
            OpenError::Other(error) => error,
        })?;
        for notice in notices::of(&cache) {
            terminal::notice(&format!("{text}: {notice}"));
        }
        Ok(cache)
    }
}

/// Whether a file is a catalog database, or was meant as one.
pub(super) fn is_database(path: &Path) -> bool {
    if path.extension().is_some_and(|it| it == "db") {
        return true;
    }
    let mut start = [0; DATABASE.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == DATABASE
}

/// Unique file name per catalog: several may be open at once.
fn content_name(text: &str) -> String {
    oci::Digest::sha256(text.as_bytes()).hex().to_owned()
}
