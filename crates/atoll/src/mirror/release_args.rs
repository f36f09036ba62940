//! Where releases are asked for, as people say it on the command line.

use std::path::PathBuf;

use ::mirror::config;
use ::mirror::platform::{Sources, public_graph_data, usual_graph_base};
use clap::Args;
use net::web::Web;
use oci::Reference;
use oci_client::signature::{Keyring, SignatureStore};
use url::Url;

/// Where releases are asked for, and which ones are trusted.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub(super) struct ReleaseArgs {
    #[command(flatten)]
    updates: UpdateArgs,
    /// Where signatures of releases are, instead of the public stores: a URL, or the path of a folder
    #[arg(long, value_name = "STORE", env = "OCP_SIGNATURE_URL")]
    signature_url: Option<String>,
    /// Public keys of whoever may sign releases, as `gpg --export` writes them
    #[arg(long, value_name = "FILE", env = "OCP_SIGNATURE_VERIFICATION_PK")]
    release_keyring: Option<PathBuf>,
    /// Carry releases that nobody has signed whose key is known
    #[arg(long)]
    ignore_release_signature: bool,
    /// Data of the upgrade graph, instead of the public one: an archive, compressed by gzip
    #[arg(long, value_name = "URL", env = "GRAPH_DATA_URL")]
    graph_data_url: Option<String>,
    /// The image that it is put into; it has bash and cp
    #[arg(long, value_name = "IMAGE", default_value_t = usual_graph_base())]
    graph_base: Reference,
}

/// Where it is asked which releases there are.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct UpdateArgs {
    /// The update service, instead of the public ones; it may speak plain HTTP
    #[arg(long, value_name = "URL", env = "UPDATE_URL_OVERRIDE")]
    update_url: Option<String>,
    /// Which versions may be the ends of channels: a regular expression
    #[arg(long, value_name = "EXPRESSION", env = "VERSION_FILTER")]
    version_filter: Option<String>,
}

impl UpdateArgs {
    /// What the command line says; `ca_pem` is trusted besides the system's certificates. Releases are not looked at, so
    /// nobody's signature counts.
    ///
    /// Errors: Invalid – an address or expression that is none, certificates that are none.
    pub(super) fn sources(&self, ca_pem: Option<&[u8]>) -> Result<Sources, model::Error> {
        let filter = self.version_filter.as_deref().filter(|it| !it.is_empty());
        let filter = filter.map(config::expression).transpose();
        Ok(Sources {
            web: Web::new(ca_pem)?,
            updates: url("UPDATE_URL_OVERRIDE", self.update_url.as_deref())?,
            version_filter: filter.map_err(|e| model::Error::invalid("VERSION_FILTER", e))?,
            signature_stores: SignatureStore::public(),
            keyring: None,
            ignores_signatures: false,
            graph_data: public_graph_data(),
            graph_base: usual_graph_base(),
        })
    }
}

impl ReleaseArgs {
    /// What the command line says; `ca_pem` is trusted besides the system's certificates.
    ///
    /// Errors: as [`UpdateArgs::sources`]; Invalid – a keyring without keys.
    pub(super) fn sources(&self, ca_pem: Option<&[u8]>) -> Result<Sources, model::Error> {
        let mut sources = self.updates.sources(ca_pem)?;
        let own = self.signature_url.as_deref().filter(|it| !it.is_empty());
        if let Some(own) = own {
            sources.signature_stores = vec![SignatureStore::parse(own)?];
        }
        if let Some(own) = url("GRAPH_DATA_URL", self.graph_data_url.as_deref())? {
            sources.graph_data = own;
        }
        sources.graph_base = self.graph_base.clone();
        sources.keyring = self.keyring()?;
        sources.ignores_signatures = self.ignore_release_signature;
        Ok(sources)
    }

    fn keyring(&self) -> Result<Option<Keyring>, model::Error> {
        let path = self.release_keyring.as_ref();
        let Some(path) = path.filter(|it| !it.as_os_str().is_empty()) else {
            return Ok(None);
        };
        let wrong = |reason: String| model::Error::invalid(path.display().to_string(), reason);
        let bytes = std::fs::read(path).map_err(|e| wrong(e.to_string()))?;
        let keyring = Keyring::parse(&bytes);
        keyring.map(Some).map_err(|e| wrong(e.to_string()))
    }
}

/// An address; nothing where none is named.
fn url(name: &str, text: Option<&str>) -> Result<Option<Url>, model::Error> {
    let url = text.filter(|it| !it.is_empty()).map(str::parse).transpose();
    url.map_err(|e: url::ParseError| model::Error::invalid(name, e.to_string()))
}
