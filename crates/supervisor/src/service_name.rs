//! Names of the services of `up`.

use std::fmt;

/// Name of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServiceName {
    /// The container registry.
    Registry,
    /// The installer API.
    ApiServer,
    /// Discovery images.
    ImageService,
    /// The web UI.
    Webui,
    /// Operator catalogs.
    CatalogServer,
}

impl ServiceName {
    /// All services, in start order.
    pub const ALL: [Self; 5] = [
        Self::Registry,
        Self::ApiServer,
        Self::ImageService,
        Self::Webui,
        Self::CatalogServer,
    ];

    /// The name in `atoll serve`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Registry => "registry",
            Self::ApiServer => "api-server",
            Self::ImageService => "image-service",
            Self::Webui => "webui",
            Self::CatalogServer => "catalog-server",
        }
    }

    /// Whether it is restarted when `--env-file` changes. The web UI is, as it shares the authentication of callers
    /// with the installer API.
    pub fn follows_env_file(self) -> bool {
        matches!(self, Self::ApiServer | Self::ImageService | Self::Webui)
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
