//! All services: names, help texts and entry points.

use std::process::ExitCode;

use service::program::{self, ServerArgs};

/// A service.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) name: &'static str,
    /// Help text.
    about: &'static str,
    /// Runs its command line; returns the exit code of the process.
    pub(crate) run: fn(&ServerArgs) -> ExitCode,
}

/// Every service.
pub(crate) static SERVICES: [Service; 6] = [
    Service {
        name: "api-server",
        about: "The installer API",
        run: api_server::main,
    },
    Service {
        name: "image-service",
        about: "Discovery images",
        run: image_service::main,
    },
    Service {
        name: "registry",
        about: "The container registry",
        run: registry::main,
    },
    Service {
        name: CATALOG_SERVER,
        about: "Operator catalogs",
        run: catalog_server::main,
    },
    Service {
        name: "webui",
        about: "The web UI, which proxies /api",
        run: webui::main,
    },
    Service {
        name: "proxy",
        about: "The load balancer of scaled services",
        run: proxy::main,
    },
];

/// The service with programs that catalog images call.
pub(crate) const CATALOG_SERVER: &str = "catalog-server";

impl Service {
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        SERVICES.iter().find(|service| service.name == name)
    }

    /// Its command line.
    pub(crate) fn command(&self) -> clap::Command {
        program::command(self.name).about(self.about)
    }
}
