//! Where releases are asked for, as people say it on the command line.

use ::mirror::config;
use ::mirror::platform::Sources;
use ::mirror::web::Web;
use clap::Args;

/// Where releases are asked for.
#[derive(Debug, Clone, Args)]
pub(super) struct Arguments {
    /// The update service, instead of the public ones; it may speak plain HTTP
    #[arg(long, value_name = "URL", env = "UPDATE_URL_OVERRIDE")]
    update_url: Option<String>,
    /// Which versions may be the ends of channels: a regular expression
    #[arg(long, value_name = "EXPRESSION", env = "VERSION_FILTER")]
    version_filter: Option<String>,
}

impl Arguments {
    /// What the command line says; `ca_pem` is trusted besides the system's certificates.
    ///
    /// Errors: Invalid – an expression that is none, certificates that are none.
    pub(super) fn sources(&self, ca_pem: Option<&[u8]>) -> Result<Sources, model::Error> {
        let updates = self.update_url.as_deref().filter(|it| !it.is_empty());
        let updates = updates.map(str::parse).transpose();
        let filter = self.version_filter.as_deref().filter(|it| !it.is_empty());
        let filter = filter.map(config::expression).transpose();
        Ok(Sources {
            web: Web::new(ca_pem)?,
            updates: updates.map_err(|e: url::ParseError| {
                model::Error::invalid("UPDATE_URL_OVERRIDE", e.to_string())
            })?,
            version_filter: filter.map_err(|e| model::Error::invalid("VERSION_FILTER", e))?,
        })
    }
}
