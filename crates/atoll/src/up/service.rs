//! The services that `up` runs, by name.

use std::fmt;

/// A service of this binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ServiceName {
    /// The container registry.
    Registry,
    /// The installer API.
    ApiServer,
    /// Discovery images.
    ImageService,
    /// The page.
    Webui,
    /// Operator catalogs.
    CatalogServer,
}

impl ServiceName {
    /// All, in the order in which they are started.
    pub(crate) const ALL: [Self; 5] = [
        Self::Registry,
        Self::ApiServer,
        Self::ImageService,
        Self::Webui,
        Self::CatalogServer,
    ];

    /// As `atoll serve` spells it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Registry => "registry",
            Self::ApiServer => "api-server",
            Self::ImageService => "image-service",
            Self::Webui => "webui",
            Self::CatalogServer => "catalog-server",
        }
    }

    /// Whether the variables of `--env-file` are its own, so that a change restarts it.
    pub(crate) fn follows_env_file(self) -> bool {
        matches!(self, Self::ApiServer | Self::ImageService)
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
