//! `atoll serve <service>`: command lines of the services.

use std::process::ExitCode;

use clap::Subcommand;
use service::program::{self, ServerArgs};

/// The services of this binary.
#[derive(Debug, Subcommand)]
pub(crate) enum Service {
    /// The installer API
    #[command(name = "api-server")]
    Api(ServerArgs),
    /// Discovery images
    #[command(name = "image-service")]
    Image(ServerArgs),
    /// The container registry
    Registry(ServerArgs),
    /// Operator catalogs
    #[command(name = "catalog-server")]
    Catalog(ServerArgs),
    /// The web UI, which proxies /api
    Webui(ServerArgs),
    /// The load balancer of scaled services
    Proxy(ServerArgs),
}

/// Runs one service until SIGTERM.
pub(crate) fn run(service: Service) -> ExitCode {
    // Children of a service gain no privileges, not even from set-user-ID programs. Failure is ignored: the service
    // works without it.
    rustix::thread::set_no_new_privs(true).ok();
    match service {
        Service::Api(arguments) => program::main_with("api-server", &arguments, api_server::run),
        Service::Image(arguments) => {
            program::main_with("image-service", &arguments, image_service::run)
        }
        Service::Registry(arguments) => program::main_with("registry", &arguments, registry::run),
        Service::Catalog(arguments) => {
            program::main_with("catalog-server", &arguments, catalog_server::run)
        }
        Service::Webui(arguments) => program::main_with("webui", &arguments, webui::run),
        Service::Proxy(arguments) => {
            program::main_reloading_with("proxy", &arguments, proxy::run_reloading)
        }
    }
}
