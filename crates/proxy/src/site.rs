//! The site's names: which upstream serves a request, by the host that it names.

mod error_page;
mod host_table;
mod redirect;
mod router;
mod settings;
mod site_routes;

pub(crate) use redirect::redirect;
pub(crate) use router::{SitePorts, serve};
pub use settings::{Header, HostPort, SiteSettings};
pub(crate) use site_routes::SiteRoutes;
