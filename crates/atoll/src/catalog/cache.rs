//! The file from which the server starts at once.

use std::path::PathBuf;

use catalog_server::{CatalogConfig, CatalogList, Settings};
use clap::Args;
use service::{CancellationToken, Error};

use super::source::{Opener, RegistryAccessArgs};
use crate::terminal;

/// What is made, and where.
#[derive(Debug, Clone, Args)]
pub(crate) struct CacheArgs {
    /// A folder or an image
    catalog: String,
    /// Folder for it: the server's CATALOG_CACHE_DIR
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// What the server calls the catalog
    #[arg(long, default_value = "catalog")]
    name: String,
    #[command(flatten)]
    access: RegistryAccessArgs,
}

/// Makes it as the server would.
///
/// Errors: a catalog that cannot be had or has problems, a folder that cannot be written.
pub(crate) fn run(arguments: &CacheArgs) -> Result<(), Error> {
    let CacheArgs {
        catalog,
        dir,
        name,
        access,
    } = arguments;
    let source = Opener::source(catalog)?;
    let path = dir.join(source.cache_file(name));
    let config = CatalogConfig {
        name: name.clone(),
        port: None,
        source,
    };
    let settings = Settings {
        catalogs: CatalogList(vec![config]),
        catalog_cache_dir: Some(dir.clone()),
        registry_auth_file: access.authfile.clone(),
        catalog_ca_file: access.ca.clone(),
        catalog_insecure: access.insecure,
        ..Settings::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|e| Error::new("starting the runtime", e))?;
    runtime.block_on(catalog_server::prepare(settings, CancellationToken::new()))?;
    terminal::print(&format!("Made {}.", path.display()));
    Ok(())
}
