//! Flags for releases, their signatures and the update graph.

use std::path::PathBuf;

use ::mirror::config;
use ::mirror::platform::{ReleaseSources, public_graph_data, usual_graph_base};
use clap::Args;
use net::web::Web;
use oci::Reference;
use oci_client::signature::{Keyring, SignatureStore};
use url::Url;

use crate::web_address::web_address;

/// Update service, release signatures and update graph.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub(super) struct ReleaseArgs {
    #[command(flatten)]
    updates: UpdateArgs,
    /// Signature store of releases instead of the public ones: a URL or folder
    #[arg(long, value_name = "STORE", env = "OCP_SIGNATURE_URL")]
    signature_url: Option<String>,
    /// Keyring of release signers, as written by `gpg --export`
    #[arg(long, value_name = "FILE", env = "OCP_SIGNATURE_VERIFICATION_PK")]
    release_keyring: Option<PathBuf>,
    /// Mirror releases whose signature cannot be verified
    #[arg(long)]
    ignore_release_signature: bool,
    /// Update graph data instead of the public one: a tar.gz archive
    #[arg(long, value_name = "URL", env = "GRAPH_DATA_URL")]
    graph_data_url: Option<String>,
    /// Base image of the graph image; needs bash and cp
    #[arg(long, value_name = "IMAGE", default_value_t = usual_graph_base())]
    graph_base: Reference,
}

/// Update service and filter of versions.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct UpdateArgs {
    /// Update service instead of the public ones; plain HTTP is allowed
    #[arg(long, value_name = "URL", env = "UPDATE_URL_OVERRIDE")]
    update_url: Option<String>,
    /// Regular expression for versions that may be channel heads
    #[arg(long, value_name = "EXPRESSION", env = "VERSION_FILTER")]
    version_filter: Option<String>,
}

impl UpdateArgs {
    /// Release sources without signature verification; `ca_pem` is trusted in addition to the system's certificates.
    ///
    /// Errors: Invalid – malformed URL, expression or certificates.
    pub(super) fn sources(&self, ca_pem: Option<&[u8]>) -> Result<ReleaseSources, model::Error> {
        let filter = self.version_filter.as_deref().filter(|it| !it.is_empty());
        let filter = filter.map(config::expression).transpose();
        Ok(ReleaseSources {
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
    /// Release sources; `ca_pem` is trusted in addition to the system's certificates.
    ///
    /// Errors: as [`UpdateArgs::sources`]; Invalid – a keyring without keys.
    pub(super) fn sources(&self, ca_pem: Option<&[u8]>) -> Result<ReleaseSources, model::Error> {
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

/// Parses a URL; an empty one counts as unset.
fn url(name: &str, text: Option<&str>) -> Result<Option<Url>, model::Error> {
    let url = text
        .filter(|it| !it.is_empty())
        .map(web_address)
        .transpose();
    url.map_err(|reason| model::Error::invalid(name, reason))
}
