//! Flags for access to registries.

use std::ffi::OsStr;
use std::path::PathBuf;

use ::mirror::archive::ArchiveSource;
use ::mirror::history::MetadataStore;
use ::mirror::publish::MirrorTarget;
use ::mirror::target_name::TargetName;
use clap::Args;
use model::image_set::Storage;
use oci_client::{Client, ClientOptions, Mirrors};

use super::archives_args::AccessArgs;
use super::login_args::{GivenLogin, SourceLoginArgs, TargetLoginArgs};

/// Access to source registries.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub(super) struct SourceRegistryArgs {
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    login: SourceLoginArgs,
    /// Allow plain HTTP for source registries
    #[arg(long)]
    source_use_http: bool,
    /// Disable certificate verification for source registries
    #[arg(long)]
    source_skip_tls: bool,
    /// registries.conf with mirrors of source registries; there is no default file
    #[arg(long, value_name = "FILE", env = "CONTAINERS_REGISTRIES_CONF")]
    registries_conf: Option<PathBuf>,
}

/// Access to source and target registries.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub(super) struct RegistryArgs {
    #[command(flatten)]
    sources: SourceRegistryArgs,
    #[command(flatten)]
    login: TargetLoginArgs,
    /// Maximum path components of repository names in the target; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_nested_paths: usize,
    /// Allow plain HTTP for the target registry
    #[arg(long)]
    dest_use_http: bool,
    /// Disable certificate verification for the target registry
    #[arg(long)]
    dest_skip_tls: bool,
}

impl SourceRegistryArgs {
    /// Client for source registries.
    ///
    /// Errors: Invalid – an authentication, certificate or mirror file that cannot be read.
    pub(super) fn source(&self) -> Result<Client, model::Error> {
        Client::new(ClientOptions {
            mirrors: self.mirrors()?,
            ..self.options(&self.login.given(), self.is_any(), None)?
        })
    }

    /// Metadata store of an image set.
    ///
    /// Errors: as [`Self::source`]; Invalid – malformed image reference.
    pub(super) fn store(&self, storage: &Storage) -> Result<MetadataStore, model::Error> {
        let is_any = matches!(storage, Storage::Registry { skip_tls: true, .. });
        let options = self.options(&self.login.given(), is_any || self.is_any(), None)?;
        MetadataStore::new(storage, &Client::new(options)?)
    }

    /// As [`AccessArgs::ca_pem`].
    ///
    /// Errors: as there.
    pub(super) fn ca_pem(&self) -> Result<Option<Vec<u8>>, model::Error> {
        self.access.ca_pem()
    }

    /// Whether certificates of sources are not verified.
    fn is_any(&self) -> bool {
        self.source_use_http || self.source_skip_tls
    }

    /// Client options with credentials and certificates of one side, which may be one registry.
    fn options(
        &self,
        login: &GivenLogin<'_>,
        insecure: bool,
        registry: Option<&str>,
    ) -> Result<ClientOptions, model::Error> {
        let (trusted, identity) = login.certificates(registry)?;
        let ca_pem = [self.ca_pem()?.unwrap_or_default(), trusted].concat();
        Ok(ClientOptions {
            credentials: login.credentials(self.access.authfile.as_deref())?,
            ca_pem: Some(ca_pem).filter(|pem| !pem.is_empty()),
            identity,
            insecure,
            insecure_registries: self.access.insecure_registry.iter().cloned().collect(),
            plain_http_remedy: Some("--insecure-registry HOST[:PORT]"),
            ..ClientOptions::default()
        })
    }

    fn mirrors(&self) -> Result<Mirrors, model::Error> {
        let path = self.registries_conf.as_ref();
        let Some(path) = path.filter(|it| !it.as_os_str().is_empty()) else {
            return Ok(Mirrors::default());
        };
        let wrong = |reason: String| model::Error::invalid(path.display().to_string(), reason);
        let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
        Mirrors::parse(&text).map_err(|e| wrong(e.to_string()))
    }
}

impl RegistryArgs {
    /// As [`SourceRegistryArgs::source`].
    ///
    /// Errors: as there.
    pub(super) fn source(&self) -> Result<Client, model::Error> {
        self.sources.source()
    }

    /// Target of this name.
    ///
    /// Errors: as [`SourceRegistryArgs::source`].
    pub(super) fn target(&self, name: &TargetName) -> Result<MirrorTarget, model::Error> {
        let is_any = self.dest_use_http || self.dest_skip_tls;
        let login = self.login.given();
        let options = self.sources.options(&login, is_any, name.registry.host())?;
        Ok(MirrorTarget {
            client: Client::new(options)?,
            registry: name.registry.clone(),
            namespace: name.namespace.clone(),
            max_components: self.max_nested_paths,
        })
    }

    /// As [`SourceRegistryArgs::store`].
    ///
    /// Errors: as there.
    pub(super) fn store(&self, storage: &Storage) -> Result<MetadataStore, model::Error> {
        self.sources.store(storage)
    }

    /// As [`SourceRegistryArgs::ca_pem`].
    ///
    /// Errors: as there.
    pub(super) fn ca_pem(&self) -> Result<Option<Vec<u8>>, model::Error> {
        self.sources.ca_pem()
    }

    /// The place of archives that a path or URL names.
    ///
    /// Errors: as [`AccessArgs::archives`].
    pub(super) async fn archives(&self, named: &OsStr) -> Result<ArchiveSource, model::Error> {
        let sources = &self.sources;
        sources.access.archives(named, sources.is_any()).await
    }

    /// As [`AccessArgs::with_archives`].
    ///
    /// Errors: as there.
    pub(super) fn with_archives<T>(
        &self,
        named: &OsStr,
        work: impl FnOnce(ArchiveSource) -> T,
    ) -> Result<T, model::Error> {
        let sources = &self.sources;
        sources.access.with_archives(named, sources.is_any(), work)
    }
}
