//! All services in one program, so that their images share its bytes: it runs the service that it is called by, like
//! busybox its applets.
//!
//! No logic of the services is here. The one invariant: each is listed once, in `SERVICES`, also for `atoll serve`.

mod multicall;
mod subcommand;

use std::process::ExitCode;

use service::program::{self, ServerArgs};

pub use multicall::main;
pub use subcommand::ServiceCommand;

/// A service.
#[derive(Debug)]
struct Service {
    name: &'static str,
    /// Help text.
    about: &'static str,
    /// Runs its command line; returns the exit code of the process.
    run: fn(&ServerArgs) -> ExitCode,
}

/// Every service.
static SERVICES: [Service; 6] = [
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
const CATALOG_SERVER: &str = "catalog-server";

impl Service {
    fn find(name: &str) -> Option<&'static Self> {
        SERVICES.iter().find(|service| service.name == name)
    }

    /// Its command line.
    fn command(&self) -> clap::Command {
        program::command(self.name).about(self.about)
    }
}
