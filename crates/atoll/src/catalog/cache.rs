//! `atoll catalog cache`: the cache file of the catalog server.

use std::path::PathBuf;

use ::catalog::cache::CatalogCache;
use catalog_server::{CatalogConfig, CatalogList, Settings};
use clap::Args;
use service::{CancellationToken, Error, ResultExt as _};

use super::notices;
use super::source::{Opener, RegistryAccessArgs};
use crate::terminal;

/// Arguments of `atoll catalog cache`.
#[derive(Debug, Clone, Args)]
pub(crate) struct CacheArgs {
    /// Catalog: a folder or an image
    catalog: String,
    /// Cache folder: CATALOG_CACHE_DIR of the server
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Name of the catalog in the server
    #[arg(long, default_value = "catalog")]
    name: String,
    #[command(flatten)]
    access: RegistryAccessArgs,
}

/// Builds the cache as the server does.
///
/// Errors: a catalog that is unavailable or invalid, a folder that cannot be written.
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
        .doing("starting the runtime")?;
    runtime.block_on(catalog_server::prepare(settings, CancellationToken::new()))?;
    if let Ok(cache) = CatalogCache::open_any(&path) {
        for notice in notices::of(&cache) {
            terminal::notice(&format!("{catalog}: {notice}"));
        }
    }
    terminal::print(&format!("{} written.", path.display()));
    Ok(())
}
